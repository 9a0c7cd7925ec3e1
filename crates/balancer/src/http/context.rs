//! What the code of one connection gets of its thread.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tokio_util::sync::CancellationToken;

/// What the code of a connection gets. Cheap to clone; stays on its thread.
#[derive(Debug, Clone, Default)]
pub struct Context {
    things: Rc<RefCell<HashMap<TypeId, Rc<dyn Any>>>>,
    /// No new requests.
    pub drain: CancellationToken,
}

impl Context {
    /// The thread's own value of a type.
    pub fn own<T: Default + 'static>(&self) -> Rc<T> {
        let mut things = self.things.borrow_mut();
        let thing = things.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default())).clone();
        thing.downcast().expect("it is kept under its own type")
    }

    /// Comes when no new requests are to be taken.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Whether no new requests are to be taken.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }
}

impl Context {
    /// Counters.
    pub fn counters(&self) -> Counters {
        Counters::default()
    }
}

/// Counters.
#[derive(Debug, Default)]
pub struct Counters {
    /// .
    pub dial_failures: Counter,
    /// .
    pub no_backend: Counter,
    /// .
    pub retries: Counter,
}

/// A counter.
#[derive(Debug, Default)]
pub struct Counter;

impl Counter {
    /// More.
    pub fn add(&self, _: u64) {}
}

impl Counters {
    /// .
    pub fn answered(&self, _: u16) {}
}
