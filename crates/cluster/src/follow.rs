//! One selection followed for ever: listed, watched, watched again after a break, listed again when changes were missed.
//!
//! ```text
//! start --> list --> page --last page--> open --> watching --changes--> watching
//!             ^-more---'
//! A failure is told and followed by a wait and another try at the same place, or after changes were missed (410) at the start.
//! ```
//! It works only while it is polled: what happens meanwhile waits in the store's window or in the connection.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::Failure;
use fairlead_api::source::{Event, Object, Selection, Source, Watch};
use futures_util::stream::{self, BoxStream, StreamExt};

use crate::Backoff;

/// How many objects of a list are handed on at once, so that a long list does not keep others waiting.
const PART: usize = 256;
/// A source that fails is asked again for ever, if ever more rarely.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(30), tries: u32::MAX };

/// What following brings.
#[derive(Debug)]
pub enum Step {
    /// A list begins.
    Listing,
    /// A part of it.
    Objects(Vec<Object>),
    /// The list is complete: what was not in it is not there.
    Listed(u64),
    /// Changes, in order, and the revision up to which there are no others. None at all means that it works again.
    Changed(Vec<Event>, u64),
    /// It does not work at the moment; it is tried again.
    Trouble(Failure),
}

/// Follows a selection, from a list on or, without one, from what follows a revision.
pub(crate) fn follow(source: Arc<dyn Source>, selection: Selection, after: Option<u64>) -> BoxStream<'static, Step> {
    let state = after.map_or(State::Start, State::Open);
    let follower = Follower { source, selection, state, failed: 0, wait: false };
    stream::unfold(follower, |mut follower| async move {
        let step = follower.step().await;
        Some((step, follower))
    })
    .boxed()
}

struct Follower {
    source: Arc<dyn Source>,
    selection: Selection,
    state: State,
    /// Failures since changes came last.
    failed: u32,
    /// Whether to wait before the next attempt.
    wait: bool,
}

enum State {
    Start,
    /// How to ask for the page, and the revision of the first.
    List(Option<String>, Option<u64>),
    /// A page, how to ask for the next, and the revision of the first.
    Page(std::vec::IntoIter<Object>, Option<String>, u64),
    Open(u64),
    Watching(Box<dyn Watch>),
}

impl Follower {
    async fn step(&mut self) -> Step {
        let step = self.advance().await;
        match &step {
            Ok(Step::Changed(events, _)) if !events.is_empty() => self.failed = 0,
            Ok(_) => {}
            Err(_) => self.wait = true,
        }
        step.unwrap_or_else(Step::Trouble)
    }

    async fn advance(&mut self) -> Result<Step, Failure> {
        loop {
            if std::mem::take(&mut self.wait) {
                self.failed = self.failed.saturating_add(1);
                tokio::time::sleep(BACKOFF.wait(self.failed - 1)).await;
            }
            match &mut self.state {
                State::Start => {
                    self.state = State::List(None, None);
                    return Ok(Step::Listing);
                }
                State::List(more, first) => match self.source.list(&self.selection, more.as_deref()).await {
                    Ok(page) => {
                        self.state = State::Page(page.objects.into_iter(), page.more, first.unwrap_or(page.revision));
                    }
                    Err(failure) => self.broken(failure)?,
                },
                State::Page(objects, more, first) => {
                    let part: Vec<Object> = objects.take(PART).collect();
                    if !part.is_empty() {
                        return Ok(Step::Objects(part));
                    }
                    let (more, first) = (more.take(), *first);
                    if more.is_none() {
                        self.state = State::Open(first);
                        return Ok(Step::Listed(first));
                    }
                    self.state = State::List(more, Some(first));
                }
                State::Open(after) => {
                    let after = *after;
                    match self.source.watch(&self.selection, after).await {
                        Ok(watch) => self.state = State::Watching(watch),
                        Err(failure) => self.broken(failure)?,
                    }
                    if self.failed > 0 && matches!(self.state, State::Watching(_)) {
                        return Ok(Step::Changed(Vec::new(), after));
                    }
                }
                State::Watching(watch) => match watch.next().await {
                    Ok(events) => return Ok(Step::Changed(events, watch.progress())),
                    Err(failure) => {
                        let after = watch.progress();
                        self.state = State::Open(after);
                        self.broken(failure)?;
                    }
                },
            }
        }
    }

    /// Changes were missed: list again, at once if this is the first time since it went well. Anything else is told.
    fn broken(&mut self, failure: Failure) -> Result<(), Failure> {
        if failure.code != 410 {
            return Err(failure);
        }
        tracing::debug!(kind = self.selection.kind.kind, why = failure.message, "listing again");
        self.state = State::Start;
        self.wait = self.failed > 0;
        self.failed = self.failed.max(1);
        Ok(())
    }
}
