//! Clients by address, as a thread sees them: what each address uses of the thread, so that one
//! client cannot use all of it.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use fairlead_runtime::budget::Sender;
use foldhash::fast::RandomState;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Resources of a thread that the connections of one client address use.
#[derive(Debug)]
pub(crate) struct Source {
    /// `None` for a trusted front before it has named its client: the front is not limited.
    sender: Option<Sender>,
    pub(super) connections: Cell<usize>,
    pub(super) openings: Cell<usize>,
    /// Bytes held for its exchanges.
    pub(super) held: Cell<u64>,
    /// Requests and connections of bytes that may have a connection to a backend.
    pub(super) backends: Arc<Semaphore>,
}

/// The client addresses that have connections on a thread.
#[derive(Debug, Default)]
pub(super) struct Sources {
    all: RefCell<HashMap<Sender, Rc<Source>, RandomState>>,
}

/// A connection that has not finished its PROXY header or TLS handshake.
#[derive(Debug)]
pub(super) struct OpeningEntry {
    /// The turn of the thread in which it began.
    pub(super) turn: u64,
    pub(super) since: Instant,
    pub(super) source: Rc<Source>,
    pub(super) connection: Rc<super::context::Connection>,
}

/// Connections that have not finished their PROXY header or TLS handshake, the oldest first.
pub(super) type Openings = RefCell<VecDeque<OpeningEntry>>;

impl Source {
    /// Returns the source of a trusted front, which speaks for many clients.
    pub(super) fn front(backends: usize) -> Rc<Source> {
        Rc::new(Source::new(None, backends))
    }

    fn new(sender: Option<Sender>, backends: usize) -> Source {
        Source {
            sender,
            connections: Cell::new(0),
            openings: Cell::new(0),
            held: Cell::new(0),
            backends: Arc::new(Semaphore::new(backends.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// True if its connections are limited.
    pub(super) fn is_limited(&self) -> bool {
        self.sender.is_some()
    }
}

impl Sources {
    /// Returns the source of a client's address and counts a connection of it. `backends`: its
    /// share of backend connections.
    pub(super) fn enter(&self, client: IpAddr, backends: usize) -> Rc<Source> {
        let sender = Sender::from_address(client);
        let mut all = self.all.borrow_mut();
        let source = all.entry(sender.clone()).or_insert_with(|| Rc::new(Source::new(Some(sender), backends))).clone();
        source.connections.set(source.connections.get() + 1);
        source
    }

    /// Counts a connection less.
    pub(super) fn leave(&self, source: &Source) {
        let Some(sender) = &source.sender else { return };
        source.connections.set(source.connections.get() - 1);
        if source.connections.get() == 0 {
            self.all.borrow_mut().remove(sender);
        }
    }
}
