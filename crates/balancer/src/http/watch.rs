//! How long may something take? One timer a connection, set seldom: most waits end long before their time, and moving a timer
//! costs more than reading a clock.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The timer of a connection.
#[derive(Debug)]
pub(crate) struct Watch {
    sleep: Pin<Box<Sleep>>,
    /// When the timer fires: never after a deadline, often before.
    armed: Instant,
    deadline: Instant,
}

/// It took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimedOut;

impl Watch {
    /// A timer for waits of about so long.
    pub(crate) fn new(usual: Duration) -> Watch {
        let armed = Instant::now() + usual;
        Watch { sleep: Box::pin(sleep_until(armed)), armed, deadline: armed }
    }

    /// What follows has so much time.
    pub(crate) fn start(&mut self, limit: Duration) {
        self.deadline = Instant::now() + limit;
    }

    /// Waits, until the deadline at most.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<TimedOut> {
        if self.deadline < self.armed {
            self.armed = self.deadline;
            self.sleep.as_mut().reset(self.deadline);
        }
        while self.sleep.as_mut().poll(context).is_ready() {
            if Instant::now() >= self.deadline {
                return Poll::Ready(TimedOut);
            }
            self.armed = self.deadline;
            self.sleep.as_mut().reset(self.deadline);
        }
        Poll::Pending
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
