//! Requests that are much work: bodies of more than [`LARGE`] bytes, and changes of objects of that
//! size. They are decoded, checked and encoded apart from the workers of the run time, a few at a
//! time. Their bytes are counted in `shares`.
//!
//! A body of 3 MiB keeps a processor busy for up to a second. On the workers, two of them would
//! keep all other requests waiting.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Size in bytes from which on a body or an object is large. Most objects have less than 10 KiB.
pub(crate) const LARGE: usize = 64 << 10;
/// Number of users from which on those without requests are forgotten.
const USERS: usize = 256;

/// The places of large requests.
#[derive(Debug)]
pub(crate) struct LargeRequests {
    /// As many as processors: more at a time would only be slower.
    places: Arc<Semaphore>,
    /// Places per user. Half of all, so that there is room for a second user whatever the first one
    /// does.
    per_user: usize,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A place in which a large request is worked on.
#[derive(Debug)]
pub(crate) struct WorkPermit {
    _own: OwnedSemaphorePermit,
    _common: OwnedSemaphorePermit,
}

impl LargeRequests {
    /// Returns as many places as there are processors.
    pub(crate) fn new() -> LargeRequests {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let places = processors.clamp(2, 8);
        LargeRequests { places: Arc::new(Semaphore::new(places)), per_user: places / 2, users: Mutex::default() }
    }

    /// Waits for a place if `size` is large. A user's own places come first, so that at most that
    /// many of theirs stand in the common queue.
    pub(crate) async fn enter(&self, user: &str, size: usize) -> Option<WorkPermit> {
        if size <= LARGE {
            return None;
        }
        // The semaphores are never closed.
        let own = self.places_of(user).acquire_owned().await.ok()?;
        let common = self.places.clone().acquire_owned().await.ok()?;
        Some(WorkPermit { _own: own, _common: common })
    }

    fn places_of(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = users.get(user).and_then(Weak::upgrade) {
            return places;
        }
        if users.len() >= USERS {
            users.retain(|_, places| places.strong_count() > 0);
        }
        let places = Arc::new(Semaphore::new(self.per_user));
        users.insert(user.to_owned(), Arc::downgrade(&places));
        places
    }
}

/// Polls a future apart from the workers of the run time if it has a place for large requests.
pub(crate) async fn beside_workers<F: Future>(place: Option<&WorkPermit>, future: F) -> F::Output {
    if place.is_none() {
        return future.await;
    }
    let mut future = pin!(future);
    std::future::poll_fn(|context| apart(|| future.as_mut().poll(context))).await
}

/// Does work apart from the workers of the run time, if it has any: another thread takes the tasks
/// of this one meanwhile.
pub(crate) fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::CurrentThread) | Err(_) => work(),
        Ok(_) => tokio::task::block_in_place(work),
    }
}

/// Does work apart from the workers of the run time if it is much.
pub(crate) fn apart_if<T>(large: bool, work: impl FnOnce() -> T) -> T {
    if large { apart(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_user_does_not_have_all_places() {
        let large = LargeRequests::new();
        let mut held = Vec::new();
        for _ in 0..large.per_user {
            held.push(large.enter("ann", LARGE + 1).await);
        }
        let third = large.enter("ann", LARGE + 1);
        let mut third = pin!(third);
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        assert!(large.enter("bob", LARGE + 1).await.is_some());
        assert!(large.enter("ann", LARGE).await.is_none());
        held.clear();
        assert!(third.await.is_some());
    }
}
