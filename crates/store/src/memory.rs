//! A store that forgets: everything is in memory and gone with the process.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::state::{Present, State};
use crate::{Backend, Entry, Error, Outcome, Page, Range, Revision, Txn, Watch};

/// Keeps objects in memory.
#[derive(Debug)]
pub struct Memory {
    state: State,
    /// Held from plan to apply, so that readers wait only for the apply.
    committing: Mutex<()>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Memory {
        Memory { state: State::new(Present::default(), Revision(0), Vec::new()), committing: Mutex::new(()) }
    }

    fn write(&self, txn: &Txn) -> Result<Outcome, Error> {
        let _alone = self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut plan = self.state.plan([txn]);
        self.state.apply(plan.events, plan.revision);
        plan.outcomes.pop().ok_or_else(|| Error::Unavailable("no outcome was planned".into()))
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Backend for Memory {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, Error>> {
        ready(Ok(self.state.entry(key))).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        ready(self.state.page(&range)).boxed()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        async move { self.write(&txn) }.boxed()
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Watch, Error>> {
        ready(self.state.watch(prefix, after)).boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        ready(Ok(self.state.revision())).boxed()
    }
}
