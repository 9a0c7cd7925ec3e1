//! Where orders lie until the thread takes them. There is one place: orders say all that is to be held, so newer ones take the place
//! of those nobody took. Nothing waits for room, however often they change and however long the thread takes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Orders;

/// The place.
#[derive(Debug, Default)]
pub(super) struct Desk(Mutex<Told>);

/// What the thread is told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What is to be held from now on, if that changed.
    pub(super) hold: Option<Orders>,
    /// The thread is to end.
    pub(super) stop: bool,
}

impl Desk {
    /// These count, and no earlier ones; but that everything is to be announced once more is not forgotten.
    pub(super) fn put(&self, orders: Orders) {
        let mut told = self.told();
        let again = told.hold.take().is_some_and(|before| before.again);
        told.hold = Some(Orders { again: again || orders.again, ..orders });
    }

    /// Has the thread end.
    pub(super) fn stop(&self) {
        self.told().stop = true;
    }

    /// Takes what was not taken yet.
    pub(super) fn take(&self) -> Told {
        let mut told = self.told();
        Told { hold: told.hold.take(), stop: told.stop }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
