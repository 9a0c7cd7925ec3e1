//! How long may something take? Work on a connection, the one deadline it has, and the backend it ends with.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use super::pump::Broken;
use crate::backends::Chosen;
use crate::engine::Context as Engine;
use crate::engine::bond::Bond;
use crate::engine::deadline::Deadline;

/// The time a connection has.
#[derive(Debug)]
pub(crate) struct Watch {
    deadline: Deadline,
    /// Made when there is a backend for the first time.
    bond: Option<Bond>,
}

/// Why it has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimedOut {
    /// It took too long.
    Late,
    /// Its backend has left, and the time to drain is over.
    Over,
}

/// What that is for a message on its way.
impl From<TimedOut> for Broken {
    fn from(why: TimedOut) -> Broken {
        match why {
            // A client that takes nothing is gone.
            TimedOut::Late => Broken::To,
            TimedOut::Over => Broken::From,
        }
    }
}

impl Watch {
    /// For waits of about so long.
    pub(crate) fn new(usual: Duration) -> Watch {
        Watch { deadline: Deadline::after(usual), bond: None }
    }

    /// What follows has so much time.
    pub(crate) fn start(&mut self, limit: Duration) {
        self.deadline.put_off(limit);
    }

    /// What follows goes to this backend: when that leaves, there is the time to drain and no more.
    pub(crate) fn bind(&mut self, engine: &Engine, backend: &Chosen) {
        self.bond.get_or_insert_with(|| engine.bond()).to(backend);
    }

    /// What follows goes to nobody yet.
    pub(crate) fn release(&mut self) {
        self.bond.iter().for_each(Bond::release);
    }

    /// Waits, until the time is over.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<TimedOut> {
        if self.bond.as_ref().is_some_and(|bond| bond.poll_over(context).is_ready()) {
            return Poll::Ready(TimedOut::Over);
        }
        self.deadline.poll(context).map(|()| TimedOut::Late)
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
