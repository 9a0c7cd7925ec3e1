//! Permits for connections to backends: bounded for each thread, for each backend and for each
//! client address.
//!
//! A request or connection of bytes first has a place of its client address, then a new connection
//! has a permit of its backend and of the thread. All three are waited for in the order of arrival,
//! for a bounded time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairlead_runtime::budget::{Budget, Permit};
use foldhash::fast::RandomState;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::quotas::Quotas;
use super::sources::Source;

/// Number of backends after which those without connections are forgotten.
const KNOWN: usize = 1024;

/// Time after which room is asked for again.
const RETRY: Duration = Duration::from_millis(50);

/// The connections to backends that a thread may have.
#[derive(Debug)]
pub(crate) struct BackendPermits {
    all: Arc<Semaphore>,
    each: RefCell<HashMap<SocketAddr, Arc<Semaphore>, RandomState>>,
    most_each: usize,
    waiting: Cell<usize>,
    budget: Budget,
}

/// Permission to have one connection to a backend.
#[derive(Debug)]
pub(crate) struct BackendPermit {
    _permits: Box<Permits>,
}

#[derive(Debug)]
struct Permits {
    _thread: OwnedSemaphorePermit,
    _backend: OwnedSemaphorePermit,
    /// For metrics.
    _counted: Option<Permit>,
}

/// A place of a client address among those that use backends.
#[derive(Debug)]
pub(crate) struct SourcePlace(Arc<Semaphore>);

impl Drop for SourcePlace {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// Counts one that waits.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn begin(count: &'a Cell<usize>) -> Waiting<'a> {
        count.set(count.get() + 1);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl BackendPermits {
    pub(super) fn new(quotas: &Quotas) -> BackendPermits {
        BackendPermits {
            all: Arc::new(Semaphore::new(quotas.backends.min(Semaphore::MAX_PERMITS))),
            each: RefCell::default(),
            most_each: quotas.each_backend.min(Semaphore::MAX_PERMITS),
            waiting: Cell::new(0),
            budget: quotas.backend_budget.clone(),
        }
    }

    /// True if connections that wait for their next request should be closed for those that wait
    /// for a connection.
    pub(crate) fn are_awaited(&self) -> bool {
        self.waiting.get() > 0
    }

    /// Waits for a permit of a backend. `make_room` closes a connection that is not in use.
    pub(crate) async fn acquire(&self, to: SocketAddr, limit: Duration, make_room: impl Fn()) -> Option<BackendPermit> {
        let backend = self.backend(to);
        if let Some(permit) = self.try_acquire(&backend) {
            return Some(permit);
        }
        let _waiting = Waiting::begin(&self.waiting);
        let both = async {
            let backend = backend.acquire_owned().await.ok()?;
            let thread = self.all.clone().acquire_owned().await.ok()?;
            Some(self.permit(thread, backend))
        };
        wait(both, limit, make_room).await
    }

    fn try_acquire(&self, backend: &Arc<Semaphore>) -> Option<BackendPermit> {
        let backend = backend.clone().try_acquire_owned().ok()?;
        let thread = self.all.clone().try_acquire_owned().ok()?;
        Some(self.permit(thread, backend))
    }

    fn permit(&self, thread: OwnedSemaphorePermit, backend: OwnedSemaphorePermit) -> BackendPermit {
        let counted = self.budget.acquire_unattributed(1).ok();
        BackendPermit { _permits: Box::new(Permits { _thread: thread, _backend: backend, _counted: counted }) }
    }

    fn backend(&self, to: SocketAddr) -> Arc<Semaphore> {
        let mut each = self.each.borrow_mut();
        if each.len() > KNOWN {
            each.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        each.entry(to).or_insert_with(|| Arc::new(Semaphore::new(self.most_each))).clone()
    }
}

impl Source {
    /// Returns a place of this client address among those that use backends, if one is free.
    pub(crate) fn try_place(&self) -> Option<SourcePlace> {
        self.backends.try_acquire().ok()?.forget();
        Some(SourcePlace(self.backends.clone()))
    }

    /// Waits for a place of this client address among those that use backends.
    pub(crate) async fn place(&self, limit: Duration, make_room: impl Fn()) -> Option<SourcePlace> {
        let place = async {
            self.backends.acquire().await.ok()?.forget();
            Some(SourcePlace(self.backends.clone()))
        };
        wait(place, limit, make_room).await
    }
}

/// Waits for a permit. Asks again and again for room, since what stalls now may stall for long
/// enough in a moment.
async fn wait<T>(permit: impl Future<Output = Option<T>>, limit: Duration, make_room: impl Fn()) -> Option<T> {
    let asking = async {
        loop {
            make_room();
            sleep(RETRY).await;
        }
    };
    tokio::select! {
        permit = permit => permit,
        () = asking => None,
        () = sleep(limit) => None,
    }
}
