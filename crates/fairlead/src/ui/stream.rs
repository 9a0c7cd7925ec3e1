//! Changes of the board as they happen: lines of JSON that do not end.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fairlead_api::Failure;
use fairlead_server::pages::Answer;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Ui;
use super::board::{Shared, TooOld};

/// How many streams there are at most.
const STREAMS: usize = 256;
/// At most so many rows at once, and the least time between two times.
const ROWS: usize = 1000;
const PACE: Duration = Duration::from_millis(100);
/// How often a stream says that it is alive.
const BEAT: Duration = Duration::from_secs(10);
/// How long a stream lasts: whoever is no longer signed in hears no more after it.
const LASTS: Duration = Duration::from_secs(600);

/// Places of streams.
#[derive(Clone)]
pub(super) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Places {
        Places(Arc::new(Semaphore::new(STREAMS)))
    }
}

impl Ui {
    /// What changes after a revision; without one, all rows first.
    pub(super) async fn watch(&self, since: &str) -> Result<Answer, Failure> {
        let board = self.board.open().await?.clone();
        let at = match since {
            "" => 0,
            since => since.parse().map_err(|_| Failure::bad_request(format!("since: {since:?} is no revision")))?,
        };
        if !board.rows().knows(at) {
            return Err(too_old());
        }
        let full = || Failure::new(429, "TooManyRequests", "too many watch already: try again later");
        let place = self.streams.0.clone().try_acquire_owned().map_err(|_| full())?;
        let now = Instant::now();
        let reader = Reader {
            moved: board.moved(),
            board,
            at,
            // The first line comes at once: it tells how far this is.
            beat: now,
            free: now,
            end: now + LASTS,
            stop: self.stop.clone(),
            ended: false,
            _place: place,
        };
        let lines = stream::unfold(reader, |mut reader| async move { Some((reader.next().await?, reader)) });
        Ok(Answer::Lines(lines.boxed()))
    }
}

/// Somebody who watches.
struct Reader {
    board: Arc<Shared>,
    moved: watch::Receiver<u64>,
    at: u64,
    beat: Instant,
    /// When rows may be sent again.
    free: Instant,
    end: Instant,
    stop: CancellationToken,
    ended: bool,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    /// The next lines; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            if let Some(lines) = self.look() {
                return Some(lines);
            }
            let free = self.free;
            let news = async {
                // An error means that the board is gone, as when the program ends.
                let _ = self.moved.changed().await;
                tokio::time::sleep_until(free).await;
            };
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep_until(self.beat) => {}
                () = tokio::time::sleep_until(self.end) => self.ended = true,
                () = self.stop.cancelled() => self.ended = true,
            }
        }
        None
    }

    /// What there is to say now.
    fn look(&mut self) -> Option<Bytes> {
        self.moved.mark_unchanged();
        let (lines, reached) = match self.board.rows().since(self.at, ROWS) {
            Ok(found) => found,
            Err(TooOld) => {
                self.ended = true;
                return Some(line(&json!({"type": "ERROR", "status": too_old().status()})));
            }
        };
        let now = Instant::now();
        if reached == self.at && now < self.beat {
            return None;
        }
        (self.at, self.beat, self.free) = (reached, now + BEAT, now + PACE);
        let mut out = BytesMut::from(&lines[..]);
        out.extend_from_slice(&line(&json!({"type": "BEAT", "revision": reached.to_string()})));
        Some(out.freeze())
    }
}

fn line(value: &serde_json::Value) -> Bytes {
    Bytes::from(format!("{value}\n"))
}

/// 410: the page fetches the list again.
fn too_old() -> Failure {
    Failure::new(410, "Expired", "what changed since this revision is not known any more: fetch the list again")
}
