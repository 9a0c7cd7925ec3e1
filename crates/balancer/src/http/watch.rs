//! How long may something take? Work on a connection, the one deadline it has, the backend it ends
//! with, and what it holds.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::attempts::Failure;
use super::pump::Broken;
use super::refusal::Refusal;
use crate::backends::Chosen;
use crate::engine::Context as Engine;
use crate::engine::bond::Bond;
use crate::engine::deadline::Deadline;
use crate::engine::memory::MemoryHold;

/// Time for which a client may be waited for until its rate counts.
const PERIOD: Duration = Duration::from_secs(60);

/// The time a connection has.
#[derive(Debug)]
pub(crate) struct Watch {
    deadline: Deadline,
    /// Made when there is a backend for the first time.
    bond: Option<Bond>,
    pace: Pace,
    /// The memory that the exchange holds.
    pub(crate) held: MemoryHold,
}

/// Pace at which a client sends or takes a body while it is the one that is waited for.
#[derive(Debug)]
struct Pace {
    /// Least bytes in a period; 0: any pace will do.
    least: u64,
    since: Option<Instant>,
    spent: Duration,
    /// Bytes moved when the period began.
    from: u64,
    too_slow: bool,
}

/// Why it has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimedOut {
    /// It took too long.
    Late,
    /// Its backend has left, and the time to drain is over.
    Over,
    /// The client is slower than the least rate.
    Slow,
    /// Others need the memory or the backend connection that it holds.
    Displaced,
}

/// What that is for a message on its way.
impl From<TimedOut> for Broken {
    fn from(why: TimedOut) -> Broken {
        match why {
            // A client that takes nothing is gone.
            TimedOut::Late | TimedOut::Slow | TimedOut::Displaced => Broken::To,
            TimedOut::Over => Broken::From,
        }
    }
}

/// The failure of a request whose answer has not begun.
impl From<TimedOut> for Failure {
    fn from(why: TimedOut) -> Failure {
        match why {
            TimedOut::Late | TimedOut::Over => Failure::Late,
            TimedOut::Slow => Failure::Refused(Refusal::SLOW),
            TimedOut::Displaced => Failure::Client,
        }
    }
}

impl Watch {
    /// For waits of about so long.
    pub(crate) fn new(usual: Duration, engine: &Engine, held: MemoryHold) -> Watch {
        let least = engine.thread().options().least_rate.saturating_mul(PERIOD.as_secs());
        let pace = Pace { least, since: None, spent: Duration::ZERO, from: 0, too_slow: false };
        Watch { deadline: Deadline::after(usual), bond: None, pace, held }
    }

    /// What follows has so much time.
    pub(crate) fn start(&mut self, limit: Duration) {
        self.deadline.put_off(limit);
    }

    /// Records that bytes moved: the time begins anew.
    pub(crate) fn moved(&mut self, limit: Duration) {
        self.deadline.put_off(limit);
        self.held.progressed();
    }

    /// Records whether the client is the one that is waited for, and how many bytes of a body have
    /// moved. A client that is waited for all the time and moves less than the least rate is too
    /// slow.
    pub(crate) fn client_owes(&mut self, owes: bool, moved: u64) {
        self.held.waits_for_client(owes);
        let pace = &mut self.pace;
        if pace.least == 0 || (!owes && pace.since.is_none()) {
            return;
        }
        let now = Instant::now();
        if let Some(since) = pace.since {
            pace.spent += now.duration_since(since);
        }
        pace.since = owes.then_some(now);
        if pace.spent >= PERIOD {
            pace.too_slow |= moved.saturating_sub(pace.from) < pace.least;
            pace.spent = Duration::ZERO;
            pace.from = moved;
        }
    }

    /// Begins to measure the pace of a body.
    fn begin_pace(&mut self) {
        let Pace { least, too_slow, .. } = self.pace;
        self.pace = Pace { least, since: None, spent: Duration::ZERO, from: 0, too_slow };
    }

    /// What follows goes to this backend: when that leaves, there is the time to drain and no more.
    pub(crate) fn bind(&mut self, engine: &Engine, backend: &Chosen) {
        self.bond.get_or_insert_with(|| engine.bond()).to(backend);
    }

    /// What follows goes to nobody yet.
    pub(crate) fn release(&mut self) {
        self.bond.iter().for_each(Bond::release);
        self.held.set(0);
    }

    /// Waits, until the time is over.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<TimedOut> {
        if self.bond.as_ref().is_some_and(|bond| bond.poll_over(context).is_ready()) {
            return Poll::Ready(TimedOut::Over);
        }
        if self.pace.too_slow {
            return Poll::Ready(TimedOut::Slow);
        }
        if self.held.poll_ended(context).is_ready() {
            return Poll::Ready(TimedOut::Displaced);
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
        self.begin_pace();
        poll_fn(|context| self.step(context, limit, &mut started, &mut work)).await
    }

    /// Does something within the time that has started, or within so much time from now on.
    pub(crate) async fn limit_from<T>(
        &mut self,
        limit: Duration,
        started: &mut bool,
        mut work: impl FnMut(&mut Context<'_>, &mut Watch) -> Poll<T>,
    ) -> Result<T, TimedOut> {
        self.begin_pace();
        poll_fn(|context| self.step(context, limit, started, &mut work)).await
    }

    fn step<T>(
        &mut self,
        context: &mut Context<'_>,
        limit: Duration,
        started: &mut bool,
        work: &mut impl FnMut(&mut Context<'_>, &mut Watch) -> Poll<T>,
    ) -> Poll<Result<T, TimedOut>> {
        if let Poll::Ready(done) = work(context, self) {
            self.held.waits_for_client(false);
            return Poll::Ready(Ok(done));
        }
        if !*started {
            *started = true;
            self.start(limit);
        }
        let timed_out = self.poll(context);
        if timed_out.is_ready() {
            self.held.waits_for_client(false);
        }
        timed_out.map(Err)
    }
}
