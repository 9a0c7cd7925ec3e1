//! Changes as etcd tells them: one watch stream.

use super::client::{Client, WatchStream};
use super::keys::{Span, revision, wire};
use super::messages::{WatchAsk, WatchCreate, WatchEvent, WatchProgress, WatchRequest, WatchResponse};
use super::unavailable;
use crate::{Error, Revision};

/// A watch stream.
#[derive(Debug)]
pub(super) struct Feed {
    stream: WatchStream,
    /// Everything up to here has been handed out.
    seen: Revision,
}

/// Some changes, and the revision up to which there are no others.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) events: Vec<WatchEvent>,
    pub(super) upto: Revision,
}

impl Feed {
    /// Watches keys after a revision. Returns once etcd has said it does.
    pub(super) async fn open(client: &Client, span: Span, after: Revision) -> Result<Feed, Error> {
        let create = WatchCreate {
            key: span.start,
            range_end: span.end,
            start_revision: wire(after).saturating_add(1),
            progress_notify: true,
            prev_kv: true,
        };
        let first = WatchRequest { ask: Some(WatchAsk::Create(create)) };
        let stream = client.stream(first).await.map_err(|status| unavailable(&status))?;
        let mut feed = Feed { stream, seen: after };
        match feed.answer().await?.created {
            true => Ok(feed),
            false => Err(Error::Unavailable("etcd did not confirm the watch".into())),
        }
    }

    /// The next changes, or word that there were none. Dropping the future loses nothing. Fails with
    /// [`Error::Compacted`] if changes have been missed; after any other failure the feed can be opened again where it ended.
    pub(super) async fn next(&mut self) -> Result<Told, Error> {
        let answer = self.answer().await?;
        let newest = match (answer.events.last(), answer.header) {
            // The header of an answer with events may run ahead of them; that of one without does not.
            (Some(event), _) => event.kv.as_ref().map(|kv| kv.mod_revision),
            (None, header) => header.map(|header| header.revision),
        };
        self.seen = self.seen.max(newest.map(revision).unwrap_or_default());
        Ok(Told { events: answer.events, upto: self.seen })
    }

    /// Asks etcd how far it is; the answer comes as word that there was nothing else.
    pub(super) fn ask_progress(&self) {
        // A full queue means that a question is already on its way.
        let _ = self.stream.requests.try_send(WatchRequest { ask: Some(WatchAsk::Progress(WatchProgress {})) });
    }

    async fn answer(&mut self) -> Result<WatchResponse, Error> {
        let answer = match self.stream.message().await {
            Ok(Some(answer)) => answer,
            Ok(None) => return Err(Error::Unavailable("etcd ended the watch".into())),
            Err(status) => return Err(unavailable(&status)),
        };
        if answer.compact_revision > 0 {
            return Err(Error::Compacted { requested: self.seen, oldest: revision(answer.compact_revision) });
        }
        if answer.canceled {
            return Err(Error::Unavailable(format!("etcd ended the watch: {}", answer.cancel_reason)));
        }
        Ok(answer)
    }
}
