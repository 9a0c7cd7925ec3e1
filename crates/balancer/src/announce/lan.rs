//! The part of an announcer that touches the machine: a thread of its own that holds addresses, answers for them and tells who has
//! them. It does what it is told and reports what it hears; it decides nothing about who should have what.
//!
//! ```text
//! told to hold --> probing --nobody answers--> announcing <--> suspended (its link went down; goes on when told again)
//!                     '--somebody does--> taken, and probing again later
//! another Node's now --> leaving --that one announces it, or a moment passes--> gone
//! ```
//! A killed process answers nothing from that moment on; what it left in the kernel is silent (see [`crate::guard`]).

mod desk;
mod held;
mod port;
mod thread;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use fairlead_kernel::Error;
use fairlead_kernel::packet::Hardware;
use fairlead_kernel::relay::Waker;
use tokio::sync::{mpsc, watch};

use crate::guard::Program;
use crate::owner::Attachment;

use desk::Desk;
pub use held::Here;

/// Reports nobody took; who listens is behind, and the next ones say the same.
const REPORTS: usize = 256;
/// The number of our local routes among those of others.
pub(super) const OWNER: u8 = 208;

/// What is to be held from now on, and nothing else.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    /// What may reach this machine: in force before an address is held.
    pub(super) guard: Arc<Program>,
    /// The addresses; `None`: it is not known yet which, and what an earlier process held stays.
    pub(super) posts: Option<BTreeMap<IpAddr, Post>>,
    /// Addresses that other Nodes have now: those of them that we hold are handed over.
    pub(super) handed: BTreeSet<IpAddr>,
    /// The hardware addresses of other Nodes: they may have had an address a moment ago.
    pub(super) friends: BTreeSet<Hardware>,
    /// Whether this was decided by who sees whose heart beats: then what was suspended goes on.
    pub(super) sighted: bool,
    /// Whether to announce everything once more, as others may have done so meanwhile.
    pub(super) again: bool,
}

/// How an address is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Post {
    /// By which links it is announced; none: it is only held.
    pub(super) links: Vec<String>,
    /// Whether to ask first if somebody has it.
    pub(super) probe: bool,
}

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rival {
    /// The address we announce.
    pub(super) address: IpAddr,
    /// Who says that it has it.
    pub(super) hardware: Hardware,
}

/// The thread. It ends, and holds nothing any more, when this is dropped.
#[derive(Debug)]
pub(super) struct Lan {
    desk: Arc<Desk>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    /// The links of this machine.
    pub(super) attachments: watch::Receiver<Vec<Attachment>>,
    /// How it is with what is held.
    pub(super) here: watch::Receiver<BTreeMap<IpAddr, Here>>,
    /// Why the rules that guard addresses are not in force; `None`: they are. Without them no
    /// address is held.
    pub(super) unguarded: watch::Receiver<Option<String>>,
    /// Others who say that they have what we announce.
    pub(super) rivals: mpsc::Receiver<Rival>,
}

/// Where the thread says things.
struct Says {
    attachments: watch::Sender<Vec<Attachment>>,
    here: watch::Sender<BTreeMap<IpAddr, Here>>,
    unguarded: watch::Sender<Option<String>>,
    rivals: mpsc::Sender<Rival>,
}

impl Lan {
    /// Starts the thread, in the network namespace of this one.
    pub(super) fn start() -> Result<Lan, Error> {
        let failed = |source: io::Error| Error::System { action: "starting the announcer".into(), source };
        let waker = Arc::new(Waker::new().map_err(failed)?);
        let desk = Arc::new(Desk::default());
        let (attachments, attached) = watch::channel(Vec::new());
        let (here, heres) = watch::channel(BTreeMap::new());
        let (unguarded, trouble) = watch::channel(None);
        let (rivals, heard) = mpsc::channel(REPORTS);
        let says = Says { attachments, here, unguarded, rivals };
        let thread = thread::Thread::open(desk.clone(), waker.clone(), says)?;
        let thread = std::thread::Builder::new().name("announcer".into()).spawn(|| thread.run()).map_err(failed)?;
        Ok(Lan {
            desk,
            waker,
            thread: Some(thread),
            attachments: attached,
            here: heres,
            unguarded: trouble,
            rivals: heard,
        })
    }

    /// Has it hold these and no others.
    pub(super) fn hold(&self, orders: Orders) {
        self.desk.put(orders);
        self.waker.wake();
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        self.desk.stop();
        self.waker.wake();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
