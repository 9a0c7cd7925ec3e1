//! Notices of the kernel about links of ours, gathered: whatever removes ten links at once causes
//! one look at them.

use std::time::Duration;

use fairlead_kernel::link::{LinkMonitor, LinkNotice};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Time for further notices after the first.
const GATHERED: Duration = Duration::from_millis(200);
/// Time between looks at links without any notice, which catches what the kernel does not report.
const LOOK: Duration = Duration::from_secs(30);
/// Time between two looks where notices cannot be had.
const LOOK_WITHOUT_NOTICES: Duration = Duration::from_secs(2);
/// Notices on their way. With more, the kernel's own buffer fills, which then says that some were
/// lost.
const QUEUE: usize = 256;

/// Waits for changes of links, addresses and routes in the network namespace it was opened in.
#[derive(Debug)]
pub struct LinkChanges {
    notices: mpsc::Receiver<LinkNotice>,
}

impl LinkChanges {
    /// Listens from now on. Without notices, which is logged, changes are looked for every two
    /// seconds.
    pub fn open() -> LinkChanges {
        let (sender, notices) = mpsc::channel(QUEUE);
        let started = LinkMonitor::open_with_routes().map_err(|error| error.to_string()).and_then(|monitor| {
            let thread = std::thread::Builder::new().name("links".into());
            let thread = thread.spawn(move || listen(monitor, &sender));
            thread.map(drop).map_err(|error| error.to_string())
        });
        if let Err(error) = started {
            tracing::warn!(error, "links are looked at every two seconds, for the kernel's notices cannot be had");
        }
        LinkChanges { notices }
    }

    /// Waits for a notice that concerns the caller, or until it is time to look without one.
    pub async fn changed(&mut self, concerns: impl Fn(&LinkNotice) -> bool) {
        let concerned = async {
            while let Some(notice) = self.notices.recv().await {
                if notice == LinkNotice::Lost || concerns(&notice) {
                    return true;
                }
            }
            false
        };
        match timeout(LOOK, concerned).await {
            Ok(true) => {
                sleep(GATHERED).await;
                while self.notices.try_recv().is_ok() {}
            }
            Ok(false) => sleep(LOOK_WITHOUT_NOTICES).await,
            Err(_) => {}
        }
    }
}

/// Passes notices on until the receiver is dropped, which is noticed within [`LOOK`], or the kernel
/// has no more of them.
fn listen(mut monitor: LinkMonitor, notices: &mpsc::Sender<LinkNotice>) {
    while !notices.is_closed() {
        let mut gathered = Vec::new();
        let waited = monitor.wait(LOOK).and_then(|_| monitor.notices(|notice| gathered.push(notice)));
        if let Err(error) = waited {
            tracing::warn!(%error, "notices of links are not heard any more; links are looked at every two seconds");
            return;
        }
        for notice in gathered {
            if notices.blocking_send(notice).is_err() {
                return;
            }
        }
    }
}
