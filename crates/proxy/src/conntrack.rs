//! Which flows must the kernel forget? It remembers where it sent the first packet of a UDP flow and sends the rest there
//! too, for as long as the client goes on: to an endpoint that is gone, to a Service that is gone, past a Service that is
//! new. After every change, and now and then, its memory is compared with the plan.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairlead_kernel::conntrack as kernel;
use fairlead_plan::{Family, FrontendKey, Plan, PlanChange, PortKey, family_of};

use crate::Error;
use removed::Removed;
use scope::Scope;
pub use traffic::{ACCOUNTING, Meter};

mod removed;
mod scope;
mod stale;
#[cfg(test)]
mod tests;
mod traffic;

/// How long after a look the next one is: a packet may have passed the old rules before they changed, and be remembered
/// only after the look. Few take longer than the first; what waits in a queue may.
const LOOKS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(50), Duration::from_secs(1)];
/// Looks may take this long at a stretch, and in the long run one part of so many of a processor's time.
const STRETCH: Duration = Duration::from_millis(200);
const PART: u32 = 10;
/// The longest rest, on machines too busy to do better.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// After the kernel refused to be read.
const RETRY: Duration = Duration::from_secs(1);

/// Keeps the kernel's memory of flows in line with the plan. It works in the network namespace of the thread that first
/// uses it. TCP connections are left alone: their clients notice by themselves, and endpoints may want to end them in
/// peace. So are SCTP associations, but not attempts to begin one.
#[derive(Debug, Default)]
pub struct Reconciler {
    connection: Option<kernel::Conntrack>,
    removed: Removed,
    portals: HashSet<(PortKey, SocketAddr)>,
    /// What is to be looked at, by how often it was.
    rounds: [Option<Round>; LOOKS.len()],
    effort: Effort,
}

/// How long looks took lately: less and less as time passes.
#[derive(Debug, Default)]
struct Effort {
    spent: Duration,
    at: Option<Instant>,
}

impl Effort {
    fn left(&self, now: Instant) -> Duration {
        let passed = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.spent.saturating_sub(passed / PART)
    }

    fn add(&mut self, took: Duration, now: Instant) {
        let most = STRETCH + LONGEST_REST / PART;
        *self = Effort { spent: (self.left(now) + took).min(most), at: Some(now) };
    }

    /// For how long to rest.
    fn rest(&self, now: Instant) -> Duration {
        self.left(now).saturating_sub(STRETCH) * PART
    }
}

#[derive(Debug)]
struct Round {
    due: Instant,
    /// Until then it may be put off.
    latest: Instant,
    scope: Scope,
}

/// What came of a look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// How many flows were forgotten.
    pub deleted: BTreeMap<Family, u64>,
    /// How long it took; `None`: there was nothing to look at.
    pub took: Option<Duration>,
    /// When [`Reconciler::look`] should be called, if nothing happens before.
    pub next_look: Option<Duration>,
}

impl Reconciler {
    /// One that has seen nothing yet.
    pub fn new() -> Reconciler {
        Reconciler::default()
    }

    /// Looks at everything: at the start, and now and then.
    pub fn full(&mut self, plan: &Plan) -> Result<Reconciled, Error> {
        // Once is enough: it comes again.
        let (mut scope, last) = (Scope::of(plan, &self.removed), LOOKS.len() - 1);
        scope.merge(self.rounds[last].take().map(|round| round.scope).unwrap_or_default());
        let now = Instant::now();
        self.rounds[last] = Some(Round { due: now, latest: now, scope });
        self.effort = Effort::default();
        self.look(plan)
    }

    /// Looks at what a change may have made stale. The kernel must have been told of it, and `plan` is as it is after it.
    pub fn change(&mut self, plan: &Plan, change: &PlanChange) -> Result<Reconciled, Error> {
        let now = Instant::now();
        self.removed.note(plan, change, now);
        let (at_once, soon) = Scope::changed(plan, change).split();
        self.schedule(0, at_once, now);
        // Not at once: what an endpoint that leaves has answered already may be under way, and would not find its client.
        self.schedule(1, soon, now);
        self.look(plan)
    }

    /// Looks again at what is due; see [`Reconciled::next_look`].
    pub fn look(&mut self, plan: &Plan) -> Result<Reconciled, Error> {
        let mut done = Reconciled::default();
        let start = Instant::now();
        if self.effort.rest(start).is_zero() {
            let due = self.take_due(start);
            if !due.is_empty() {
                self.look_at(plan, &due, &mut done)?;
                let took = start.elapsed();
                done.took = Some(took);
                self.effort.add(took, start + took);
            }
        }
        done.next_look = self.next_look();
        Ok(done)
    }

    /// In how long [`Reconciler::look`] should be called.
    pub fn next_look(&self) -> Option<Duration> {
        let due = self.rounds.iter().flatten().map(|round| round.due).min()?;
        let now = Instant::now();
        Some(due.saturating_duration_since(now).max(self.effort.rest(now)))
    }

    /// A frontend that was there and is no more, of which no [`PlanChange`] tells: an earlier run served it.
    pub fn was_removed(&mut self, frontend: FrontendKey) {
        self.removed.insert(frontend, None, Instant::now());
    }

    /// Where a process of this Node serves ports in the place of their endpoints: mode userspace. Flows there may stay.
    pub fn set_portals(&mut self, portals: impl IntoIterator<Item = (PortKey, SocketAddr)>) {
        self.portals = portals.into_iter().collect();
    }

    fn schedule(&mut self, stage: usize, scope: Scope, now: Instant) {
        if scope.is_empty() {
            return;
        }
        let due = now + LOOKS[stage];
        match &mut self.rounds[stage] {
            // Put off for what is new, but not for ever: else changes without end would mean no look.
            Some(round) => {
                round.due = round.due.max(due).min(round.latest);
                round.scope.merge(scope);
            }
            empty => *empty = Some(Round { due, latest: now + LOOKS[stage] * 4, scope }),
        }
    }

    /// What is to be looked at now; all of it but the last time is to be looked at again.
    fn take_due(&mut self, now: Instant) -> Scope {
        let mut due = Scope::default();
        for stage in (0..LOOKS.len()).rev() {
            if let Some(round) = self.rounds[stage].take_if(|round| round.due <= now) {
                if stage + 1 < LOOKS.len() {
                    self.schedule(stage + 1, round.scope.clone(), now);
                }
                due.merge(round.scope);
            }
        }
        due
    }

    fn look_at(&mut self, plan: &Plan, scope: &Scope, done: &mut Reconciled) -> Result<(), Error> {
        let result = self.forget_stale(plan, scope, done);
        if result.is_err() {
            // Whatever is left of the answer must not be taken for another.
            self.connection = None;
            self.schedule(0, scope.clone(), Instant::now() + RETRY);
        }
        self.removed.expire(Instant::now());
        result
    }

    fn forget_stale(&mut self, plan: &Plan, scope: &Scope, done: &mut Reconciled) -> Result<(), Error> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(kernel::Conntrack::open()?),
        };
        let known = connection.count()?;
        for filter in scope.filters(known) {
            let stale = |entry: &_| stale::is_stale(plan, &self.removed, &self.portals, entry);
            for entry in connection.read(filter, |entry| Some(entry).filter(stale))? {
                if connection.delete(&entry)? {
                    *done.deleted.entry(family_of(entry.original.destination)).or_default() += 1;
                }
            }
        }
        Ok(())
    }
}
