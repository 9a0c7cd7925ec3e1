//! Orders for a thread, one a listener at most: what is ordered while an earlier order still waits is joined with it. So what waits is
//! bounded by how many listeners there are, however long the thread takes and however often they change.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[cfg(test)]
mod tests;

/// Orders that wait, and whom that concerns.
#[derive(Debug)]
struct Waiting<K, O> {
    state: Mutex<State<K, O>>,
    news: Notify,
}

#[derive(Debug)]
struct State<K, O> {
    orders: HashMap<K, O>,
    closed: bool,
}

/// Gives orders. With it goes the reason for the thread to be.
#[derive(Debug)]
pub(crate) struct Giver<K, O>(Arc<Waiting<K, O>>);

/// Takes them.
#[derive(Debug)]
pub(crate) struct Taker<K, O>(Arc<Waiting<K, O>>);

/// A way for orders.
pub(crate) fn orders<K, O>() -> (Giver<K, O>, Taker<K, O>) {
    let state = Mutex::new(State { orders: HashMap::new(), closed: false });
    let waiting = Arc::new(Waiting { state, news: Notify::new() });
    (Giver(waiting.clone()), Taker(waiting))
}

impl<K: Eq + Hash, O> Giver<K, O> {
    /// Puts in the place of the order that waits for a listener, if one does, what is to be done now; `None`: nothing.
    pub(crate) fn give(&self, listener: K, join: impl FnOnce(Option<O>) -> Option<O>) {
        let mut state = self.0.state();
        let before = state.orders.remove(&listener);
        if let Some(now) = join(before) {
            state.orders.insert(listener, now);
            drop(state);
            self.0.news.notify_one();
        }
    }
}

impl<K, O> Drop for Giver<K, O> {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.news.notify_one();
    }
}

impl<K, O> Taker<K, O> {
    /// All that wait, at least one; `None`: nobody gives orders any more, and all were taken.
    pub(crate) async fn take(&self) -> Option<HashMap<K, O>> {
        loop {
            let (orders, closed) = {
                let mut state = self.0.state();
                (std::mem::take(&mut state.orders), state.closed)
            };
            match (orders.is_empty(), closed) {
                (false, _) => return Some(orders),
                (true, true) => return None,
                (true, false) => self.0.news.notified().await,
            }
        }
    }
}

impl<K, O> Waiting<K, O> {
    fn state(&self) -> MutexGuard<'_, State<K, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
