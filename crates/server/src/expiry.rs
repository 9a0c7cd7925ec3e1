//! Events do not live for ever: an hour after it was last written, unless the administrator says otherwise, an Event goes. A scan
//! knows when the next one is due, so that nobody looks while nothing can be.

use std::time::Duration;

use fairlead_api::{Failure, kinds};
use fairlead_store::{Entry, Guard, Range, Txn, Write};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::read::unavailable;
use crate::{Inner, Server, object};

/// At least so long between two scans, unless Events live for less; then the shorter.
const PAUSE: Duration = Duration::from_secs(60);
const SHORT_PAUSE: Duration = Duration::from_secs(1);
/// Events looked at, and deleted, at a time.
const PAGE: usize = 500;

impl Server {
    /// Deletes Events that were not written for so long, until the server stops; without a lifetime they stay for ever.
    pub async fn keep_expired(self, lifetime: Duration) {
        if lifetime.is_zero() {
            return;
        }
        let stop = self.inner.stop.clone();
        let scans = async {
            loop {
                let next = match self.expire_events(lifetime, Timestamp::now()).await {
                    Ok(next) => next,
                    Err(failure) => {
                        tracing::warn!(why = failure.message, "old Events cannot be looked for");
                        None
                    }
                };
                let due = next.and_then(|next| Duration::try_from(next.duration_since(Timestamp::now())).ok());
                tokio::time::sleep(due.unwrap_or_default().max(PAUSE.min(lifetime).max(SHORT_PAUSE))).await;
            }
        };
        let _ = stop.run_until_cancelled(scans).await;
    }

    /// Deletes Events that are too old at a time; returns when the next one will be.
    pub async fn expire_events(&self, lifetime: Duration, now: Timestamp) -> Result<Option<Timestamp>, Failure> {
        let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
        let (mut after, mut next) = (None, None);
        loop {
            let prefix = object::prefix(&kinds::EVENT, "").into();
            let range = Range { prefix, after: after.take(), limit: PAGE, at: None };
            let page = self.inner.store.range(range).await.map_err(unavailable)?;
            for entry in &page.entries {
                let due = written(entry).and_then(|written| written.checked_add(lifetime).ok());
                match due {
                    Some(due) if due <= now => delete(&self.inner, entry).await?,
                    Some(due) => next = Some(next.map_or(due, |next: Timestamp| next.min(due))),
                    None => {}
                }
            }
            after = page.entries.last().filter(|_| page.entries.len() == PAGE).map(|entry| entry.key.clone());
            if after.is_none() {
                return Ok(next);
            }
        }
    }
}

/// When an Event was written last, as far as it tells. One that does not tell stays.
fn written(entry: &Entry) -> Option<Timestamp> {
    let Event { metadata, series, event_time, last_timestamp } = serde_json::from_slice(&entry.json).ok()?;
    let seen = series.unwrap_or_default().last_observed_time;
    let times = [metadata.creation_timestamp, seen, event_time, last_timestamp];
    times.into_iter().flatten().filter_map(|time| time.parse().ok()).max()
}

/// What an Event says about time.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Event {
    metadata: Metadata,
    series: Option<Series>,
    event_time: Option<String>,
    last_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    creation_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Series {
    last_observed_time: Option<String>,
}

/// Unless it was written meanwhile.
async fn delete(server: &Inner, entry: &Entry) -> Result<(), Failure> {
    let guards = vec![Guard::At(entry.key.clone(), entry.revision)];
    let txn = Txn { guards, writes: vec![Write::Delete(entry.key.clone())] };
    server.store.commit(txn).await.map(drop).map_err(unavailable)
}
