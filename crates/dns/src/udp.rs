//! Datagrams: a few threads, each with a socket of its own at one address. What can be answered at once is; the rest is handed
//! to the run time, a bounded number at a time.

use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fairlead_kernel::datagrams::{self, Inbox, Outbox, Peer};
use fairlead_runtime::SlotTable;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::ask::Transport;
use crate::listen::Place;
use crate::names::Held;
use crate::router::{Came, Now, Router};

/// A thread that answers datagrams.
pub(crate) struct Worker {
    pub(crate) socket: Arc<UdpSocket>,
    pub(crate) place: Arc<Place>,
    pub(crate) stopped: Arc<AtomicBool>,
    pub(crate) runtime: Handle,
    /// Questions that wait for others.
    pub(crate) questions: SlotTable,
}

impl Worker {
    /// Answers until told to stop.
    pub(crate) fn run(self) {
        let (mut inbox, mut outbox, mut reply) = (Inbox::default(), Outbox::default(), Vec::with_capacity(4096));
        let mut turn = fastrand::u32(..);
        while !self.stopped.load(Ordering::Relaxed) {
            if let Err(error) = inbox.receive(&self.socket) {
                // An error of a socket that stays is one of somebody else's packets.
                tracing::debug!(%error, "receiving");
                std::thread::yield_now();
                continue;
            }
            self.answer_all(&inbox, &mut outbox, &mut reply, &mut turn);
            outbox.send(&self.socket);
        }
    }

    /// Answers what came in one batch.
    fn answer_all(&self, inbox: &Inbox, outbox: &mut Outbox, reply: &mut Vec<u8>, turn: &mut u32) {
        let mut arrived = inbox.iter().peekable();
        if arrived.peek().is_none() {
            return;
        }
        let (at, router) = (Instant::now(), self.place.router());
        let mut held = Held::default();
        for (bytes, peer) in arrived {
            *turn = turn.wrapping_add(1);
            let local = SocketAddr::new(peer.to.unwrap_or(self.place.address.ip()), self.place.address.port());
            let came = Came { bytes, from: peer.from, local, transport: Transport::Udp, at };
            // A defect answers one question wrong, and must not end the others.
            let now = catch_unwind(AssertUnwindSafe(|| router.now(&came, *turn, &mut held, reply)));
            if self.settle(now, &router, &came, peer, *turn, reply) && !reply.is_empty() {
                outbox.push(peer, reply);
            }
        }
    }

    /// Does what is to be done about a question; whether there is something to send now.
    fn settle(
        &self,
        now: std::thread::Result<Now>,
        router: &Arc<Router>,
        came: &Came<'_>,
        peer: Peer,
        turn: u32,
        reply: &mut Vec<u8>,
    ) -> bool {
        match now {
            Ok(Now::Answered) => true,
            Ok(Now::Ignored) => false,
            Ok(Now::Later) => self.later(router, came, peer, turn, reply),
            Err(_) => {
                router.metrics().panicked();
                router.refuse(came, reply);
                true
            }
        }
    }

    /// Hands one over; whether there is no room, and a refusal to send.
    fn later(&self, router: &Arc<Router>, came: &Came<'_>, peer: Peer, turn: u32, reply: &mut Vec<u8>) -> bool {
        let evicted = CancellationToken::new();
        let evict = evicted.clone();
        let Ok(slot) = self.questions.admit(came.from.ip(), move || evict.cancel()) else {
            router.metrics().full();
            router.refuse(came, reply);
            return true;
        };
        let (router, socket, bytes) = (router.clone(), self.socket.clone(), came.bytes.to_vec());
        let (from, local, transport, at) = (came.from, came.local, came.transport, came.at);
        self.runtime.spawn(async move {
            let mut out = Vec::new();
            let came = Came { bytes: &bytes, from, local, transport, at };
            router.later(&came, turn, &evicted, &mut out).await;
            let sent = if out.is_empty() { Ok(()) } else { datagrams::send(&socket, peer, &out) };
            if let Err(error) = sent {
                tracing::debug!(%error, "sending an answer");
            }
            drop(slot);
        });
        false
    }
}
