//! The task that keeps the windows filled: one watch of everything, opened again whenever it breaks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Shared;
use super::feed::{Feed, Told};
use crate::{Error, Revision};

/// Waits between attempts, doubled up to the greater: quick after a hiccup, gentle during an outage.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often etcd is asked how far it is, so that idle watches get bookmarks.
const PROGRESS: Duration = Duration::from_secs(5);

/// Follows etcd from a revision on; never returns.
pub(super) async fn follow(shared: Arc<Shared>, start: Revision) {
    let mut seen = start;
    let mut pause = FIRST_PAUSE;
    loop {
        let before = seen;
        let error = match feed(&shared, &mut seen).await {
            Err(Error::Compacted { requested, oldest }) => match shared.revision().await {
                Ok(now) => {
                    tracing::warn!(%requested, %oldest, %now, "changes in etcd were missed; watchers start over");
                    shared.note_compacted(oldest);
                    shared.windows.reset(now);
                    shared.told.store(now.0, Ordering::Relaxed);
                    seen = now;
                    continue;
                }
                Err(error) => error,
            },
            Err(error) => error,
            Ok(never) => match never {},
        };
        // Said once for each outage, not for each attempt.
        if pause == FIRST_PAUSE || seen > before {
            tracing::warn!(%error, "the watch of etcd broke off; trying again");
        }
        pause = if seen > before { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        tokio::time::sleep(pause).await;
    }
}

async fn feed(shared: &Shared, seen: &mut Revision) -> Result<std::convert::Infallible, Error> {
    // Read before etcd is asked: a write meanwhile must not look like a future that etcd has lost.
    let told = Revision(shared.told.load(Ordering::Relaxed)).max(*seen);
    let now = shared.revision().await?;
    if now < told {
        // The cluster was put back to an older state: what watchers know is not the past of what is there.
        return Err(Error::Compacted { requested: told, oldest: now });
    }
    let mut feed = Feed::open(&shared.client, shared.reader.all(), *seen).await?;
    let asks = shared.progress_can_be_asked().await;
    let mut timer = tokio::time::interval(PROGRESS);
    loop {
        tokio::select! {
            told = feed.next() => {
                let told = told?;
                *seen = told.upto;
                publish(shared, told);
            }
            _ = timer.tick(), if asks => feed.ask_progress(),
        }
    }
}

fn publish(shared: &Shared, told: Told) {
    let wanted = shared.windows.announce(told.upto);
    let mut events = Vec::new();
    for raw in &told.events {
        let key = raw.kv.as_ref().and_then(|kv| shared.reader.inside(&kv.key));
        let Some(key) = key.filter(|key| wanted(key)) else { continue };
        match shared.reader.event(raw) {
            Ok(event) => events.push(event),
            Err(error) => {
                // Nobody may believe to have seen a change that cannot be shown: they must list again.
                tracing::warn!(%error, "a change in etcd cannot be read; watchers of its resource start over");
                shared.windows.lose(&key);
            }
        }
    }
    shared.windows.publish(events, told.upto);
}
