//! When was a change written? Tells it to whoever follows changes on their way to Nodes, as an event of `tracing`: it costs
//! nothing while nobody does.

use std::time::Instant;

use fairlead_api::Failure;
use fairlead_store::{Outcome, Txn, Write};

use crate::Inner;
use crate::read::unavailable;

impl Inner {
    /// Commits what a request that came at `started` writes. Its first write is the object.
    pub(crate) async fn commit(&self, txn: Txn, started: Instant) -> Result<Outcome, Failure> {
        let followed = tracing::enabled!(target: "fairlead_path", tracing::Level::TRACE);
        let key = followed.then(|| txn.writes.first().map(key)).flatten();
        let began = Instant::now();
        let outcome = self.store.commit(txn).await.map_err(unavailable)?;
        if let Outcome::Done(revision) = &outcome {
            self.writers.made(revision.0);
        }
        if let (Outcome::Done(revision), Some(key)) = (&outcome, key) {
            let micros = |since: Instant| u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
            tracing::trace!(
                target: "fairlead_path",
                stage = "committed",
                revision = revision.0,
                key = &*key,
                request_us = micros(started),
                took_us = micros(began),
            );
        }
        Ok(outcome)
    }
}

fn key(write: &Write) -> Box<str> {
    match write {
        Write::Put(key, _) | Write::Delete(key) => key.clone(),
    }
}
