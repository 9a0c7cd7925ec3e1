//! What goes to a backend for a while, and ends when that has left and its time is over: a request of HTTP, a tunnel. A connection
//! of bytes has one backend to its end, and is bound itself.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use super::context::Context;
use super::listener::Local;
use crate::backends::{Chosen, Tie};

/// A bond that its listener knows of as long as this lives.
#[derive(Debug)]
pub(crate) struct Bond {
    local: Rc<Local>,
    bound: Rc<Bound>,
    slot: usize,
}

/// One as its listener sees it.
#[derive(Debug, Default)]
pub(super) struct Bound {
    tie: RefCell<Option<Tie>>,
    over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Context {
    /// A bond to nobody yet.
    pub(crate) fn bond(&self) -> Bond {
        let (local, bound) = (self.local.clone(), Rc::<Bound>::default());
        let slot = local.tie(bound.clone());
        Bond { local, bound, slot }
    }
}

impl Bond {
    /// What follows goes to this backend, and to no other.
    pub(crate) fn to(&self, backend: &Chosen) {
        self.bound.over.set(false);
        self.bound.tie.replace(Some(backend.tie()));
    }

    /// What follows goes to nobody yet.
    pub(crate) fn release(&self) {
        self.bound.over.set(false);
        self.bound.tie.take();
    }

    /// Ready when the backend has left and the time is over.
    pub(crate) fn poll_over(&self, cx: &mut Task<'_>) -> Poll<()> {
        if self.bound.over.get() {
            return Poll::Ready(());
        }
        let mut waker = self.bound.waker.borrow_mut();
        match &mut *waker {
            Some(known) => known.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Bond {
    fn drop(&mut self) {
        self.local.untie(self.slot);
    }
}

impl Bound {
    /// How long ago its backend left, if it has.
    pub(super) fn orphaned(&self) -> Option<Duration> {
        self.tie.borrow().as_ref().filter(|_| !self.over.get()).and_then(Tie::gone_for)
    }

    /// Its time is over.
    pub(super) fn end(&self) {
        self.over.set(true);
        self.waker.take().into_iter().for_each(Waker::wake);
    }
}
