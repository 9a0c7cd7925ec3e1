//! How long may something take? Work on a connection, and the one deadline it has.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::engine::deadline::Deadline;

/// The time a connection has.
#[derive(Debug)]
pub(crate) struct Watch(Deadline);

/// It took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimedOut;

impl Watch {
    /// For waits of about so long.
    pub(crate) fn new(usual: Duration) -> Watch {
        Watch(Deadline::after(usual))
    }

    /// What follows has so much time.
    pub(crate) fn start(&mut self, limit: Duration) {
        self.0.put_off(limit);
    }

    /// Waits, until the time is over.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<TimedOut> {
        self.0.poll(context).map(|()| TimedOut)
    }

    /// Does something within so much time. The work may start the time anew.
    pub(crate) async fn limit<T>(
        &mut self,
        limit: Duration,
        mut work: impl FnMut(&mut Context<'_>, &mut Watch) -> Poll<T>,
    ) -> Result<T, TimedOut> {
        let mut started = false;
        poll_fn(|context| {
            if let Poll::Ready(done) = work(context, self) {
                return Poll::Ready(Ok(done));
            }
            if !started {
                started = true;
                self.start(limit);
            }
            self.poll(context).map(Err)
        })
        .await
    }
}
