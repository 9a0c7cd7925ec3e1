//! Where questions come in: an address with its sockets, kept while Corefiles come and go.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use fairlead_kernel::datagrams;
use fairlead_monitor::http;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::bounds::Bounds;
use crate::router::Router;
use crate::settings::Bind;
use crate::tcp;
use crate::udp::Worker;

/// How long a thread waits before it looks whether it is to stop.
const WAIT: Duration = Duration::from_millis(200);

/// An address that questions are sent to, and who answers there.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    router: RwLock<Arc<Router>>,
}

impl Place {
    /// Who answers now.
    pub(crate) fn router(&self) -> Arc<Router> {
        self.router.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets somebody else answer.
    pub(crate) fn set(&self, router: Arc<Router>) {
        *self.router.write().unwrap_or_else(PoisonError::into_inner) = router;
    }
}

/// The sockets of a place. They are closed with it.
pub(crate) struct Listener {
    pub(crate) place: Arc<Place>,
    stopped: Arc<AtomicBool>,
    stop: CancellationToken,
    threads: Vec<JoinHandle<()>>,
    opened: Option<(Vec<std::net::UdpSocket>, tokio::net::TcpListener)>,
}

impl Listener {
    /// Takes an address. Nothing is answered before [`Listener::start`].
    pub(crate) fn open(address: SocketAddr, sockets: usize, router: Arc<Router>) -> io::Result<Listener> {
        // Streams first: datagrams are shared with whoever else runs as we do, and must not be taken from somebody.
        let tcp = http::listen(address)?;
        let address = tcp.local_addr()?;
        let options = datagrams::Options { shared: sockets > 1, wait: WAIT };
        let udp = (0..sockets).map(|_| datagrams::bind(address, options)).collect::<io::Result<Vec<_>>>()?;
        let place = Arc::new(Place { address, router: RwLock::new(router) });
        let (stopped, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        Ok(Listener { place, stopped, stop, threads: Vec::new(), opened: Some((udp, tcp)) })
    }

    /// Begins to answer within these bounds.
    pub(crate) fn start(&mut self, bounds: &Bounds) -> io::Result<()> {
        let Some((udp, tcp)) = self.opened.take() else { return Ok(()) };
        for socket in udp {
            let worker = Worker {
                socket: Arc::new(socket),
                place: self.place.clone(),
                stopped: self.stopped.clone(),
                runtime: Handle::current(),
                questions: bounds.questions.clone(),
            };
            let thread = std::thread::Builder::new().name("dns-udp".to_owned()).spawn(move || worker.run())?;
            self.threads.push(thread);
        }
        tokio::spawn(tcp::serve(tcp, self.place.clone(), bounds.clone(), self.stop.clone()));
        Ok(())
    }

    /// Stops, and waits for the threads.
    pub(crate) async fn close(mut self) {
        self.tell();
        let threads = std::mem::take(&mut self.threads);
        let _ = tokio::task::spawn_blocking(|| threads.into_iter().for_each(|thread| drop(thread.join()))).await;
    }

    fn tell(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.stop.cancel();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.tell();
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("address", &self.place.address).finish_non_exhaustive()
    }
}

/// The addresses a block listens at: as `bind` says, else `usual`, else everywhere.
pub(crate) fn addresses(binds: &[Bind], usual: &[IpAddr], of_interface: impl Fn(&str) -> Vec<IpAddr>) -> Vec<IpAddr> {
    let of = |bind: &Bind| match bind {
        Bind::Address(address) => vec![*address],
        Bind::Interface(name) => of_interface(name),
        Bind::Except(_) => Vec::new(),
    };
    let except: Vec<IpAddr> = binds
        .iter()
        .filter_map(|bind| if let Bind::Except(not) = bind { Some(of(not)) } else { None })
        .flatten()
        .collect();
    let mut addresses: Vec<IpAddr> = match binds {
        [] => usual.to_vec(),
        binds => binds.iter().flat_map(of).filter(|address| !except.contains(address)).collect(),
    };
    if binds.is_empty() && addresses.is_empty() {
        addresses = vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    }
    addresses.sort();
    addresses.dedup();
    addresses
}
