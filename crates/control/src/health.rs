//! The EndpointSlice health controller: hand-made slices that ask for it get their endpoints' readiness from looks at them.
//! Kubernetes leaves such endpoints ready for ever.
//!
//! ```text
//! slice --> plan --> targets, each looked at in its time, some at once --> state changes --> slice written, Event
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fairlead_api::kinds;
use fairlead_api::view::EndpointSlice;
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Change, Cluster, Error, Key, Mirror, Recorder, Reference, Selection, Severity};
use fairlead_probe::{Check, Outcome, State, Tally};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;
use plan::Plan;

mod plan;

/// The most looks at a time.
const LOOKS: usize = 64;
/// The most slices written at a time.
const WRITES: usize = 16;
/// The name Events are written under.
const COMPONENT: &str = "endpointslice-health-controller";

/// Runs until told to stop.
pub(crate) async fn run(cluster: Cluster, host: String, meter: QueueMeter, stop: CancellationToken) {
    let others = format!("endpointslice.kubernetes.io/managed-by notin ({})", plan::MANAGERS[..2].join(","));
    let slices = Selection::all(&kinds::ENDPOINT_SLICE).with_labels(others);
    let mirror = Mirror::builder(&cluster).with_only::<EndpointSlice>(slices).build();
    let recorder = Recorder::new(&cluster, COMPONENT, &host);
    let mut keeper = Keeper {
        cluster,
        mirror,
        recorder,
        watch: Watch::default(),
        queue: Queue::new(meter),
        looks: JoinSet::new(),
        writes: JoinSet::new(),
    };
    while stop.run_until_cancelled(keeper.step()).await.is_some() {}
}

struct Keeper {
    cluster: Cluster,
    mirror: Mirror,
    recorder: Recorder,
    watch: Watch,
    /// Slices that may have to be written.
    queue: Queue<Key>,
    looks: JoinSet<(u64, Outcome)>,
    writes: JoinSet<(Key, Result<(), Error>)>,
}

impl Keeper {
    /// Starts what can be started, then waits for news.
    async fn step(&mut self) {
        self.start_looks();
        self.start_writes();
        let look = self.watch.next().filter(|_| self.looks.len() < LOOKS);
        let write = self.queue.due().filter(|_| self.writes.len() < WRITES);
        let due = look.into_iter().chain(write).min();
        tokio::select! {
            changes = self.mirror.next() => changes.of::<EndpointSlice>().iter().for_each(|change| self.see(change)),
            Some(looked) = self.looks.join_next() => match looked {
                Ok((target, outcome)) => self.looked(target, &outcome),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            Some(written) = self.writes.join_next() => match written {
                Ok((key, written)) => self.written(key, written),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }

    fn start_looks(&mut self) {
        while self.looks.len() < LOOKS {
            let Some((id, check, timeout)) = self.watch.take(Instant::now()) else { return };
            self.looks.spawn(async move { (id, fairlead_probe::look(&check, timeout).await) });
        }
    }

    fn start_writes(&mut self) {
        while self.writes.len() < WRITES {
            let Some(key) = self.queue.take() else { return };
            let slice = self.mirror.get::<EndpointSlice>(&key.namespace, &key.name);
            let Some(judged) = slice.and_then(|slice| plan::judged(slice, |address| self.watch.state(&key, address)))
            else {
                self.queue.done(key);
                continue;
            };
            let cluster = self.cluster.clone();
            self.writes.spawn(async move { (key, cluster.update_view(&judged).await.map(drop)) });
        }
    }

    /// A slice has changed.
    fn see(&mut self, change: &Change<EndpointSlice>) {
        let Some(slice) = &change.new else { return self.watch.forget(&change.key) };
        match plan::read(slice) {
            None => self.watch.forget(&change.key),
            Some(Ok(plan)) => {
                self.watch.follow(&change.key, slice, plan);
                self.queue.add(change.key.clone());
            }
            Some(Err(mistake)) => {
                self.watch.forget(&change.key);
                let before = change.old.as_ref().and_then(|old| plan::read(old)).and_then(Result::err);
                if before.as_ref() != Some(&mistake) {
                    self.tell(slice, Severity::Warning, "InvalidHealthCheck", mistake.to_string());
                }
            }
        }
    }

    fn looked(&mut self, target: u64, outcome: &Outcome) {
        let Some((key, address, state)) = self.watch.looked(target, outcome.is_success(), Instant::now()) else {
            return;
        };
        self.queue.add(key.clone());
        let Some(slice) = self.mirror.get::<EndpointSlice>(&key.namespace, &key.name).cloned() else { return };
        match state {
            State::Unhealthy => {
                let told = format!("{address} is not ready: {}", outcome.message());
                self.tell(&slice, Severity::Warning, "EndpointUnhealthy", told);
            }
            _ => self.tell(&slice, Severity::Normal, "EndpointHealthy", format!("{address} is ready")),
        }
    }

    fn written(&mut self, key: Key, written: Result<(), Error>) {
        match written {
            Ok(()) => self.queue.done(key),
            Err(Error::NotFound(_)) => self.queue.done(key),
            Err(error) => {
                if !error.is_conflict() {
                    tracing::warn!(slice = %key, %error, "cannot write what was seen of endpoints");
                }
                self.queue.failed(key);
            }
        }
    }

    fn tell(&self, slice: &EndpointSlice, severity: Severity, reason: &'static str, message: String) {
        self.recorder.record(Reference::of(slice), severity, reason, message);
    }
}

/// What is looked at.
#[derive(Default)]
struct Watch {
    /// By slice and address.
    slices: HashMap<Key, BTreeMap<String, u64>>,
    targets: HashMap<u64, Target>,
    /// When each is to be looked at next, but for those that are being looked at.
    due: BTreeSet<(Instant, u64)>,
    last: u64,
}

struct Target {
    slice: Key,
    address: String,
    check: Check,
    schedule: fairlead_probe::Schedule,
    tally: Tally,
    began: Instant,
}

impl Watch {
    /// The plan of a slice. Targets that are looked at as before keep what is known of them.
    fn follow(&mut self, key: &Key, slice: &Arc<EndpointSlice>, plan: Plan) {
        let mut before = self.slices.remove(key).unwrap_or_default();
        let mut now = BTreeMap::new();
        for (address, check) in plan.checks {
            let same = |id: &u64| {
                self.targets.get(id).is_some_and(|target| target.check == check && target.schedule == plan.schedule)
            };
            let id = match before.get(&address).copied().filter(same) {
                Some(id) => {
                    before.remove(&address);
                    id
                }
                None => {
                    let tally = Tally::new(plan.schedule, plan::initial(slice, &address));
                    let (slice, began, schedule) = (key.clone(), Instant::now(), plan.schedule);
                    self.add(Target { slice, address: address.clone(), check, schedule, tally, began })
                }
            };
            now.insert(address, id);
        }
        before.into_values().for_each(|id| self.drop_target(id));
        self.slices.insert(key.clone(), now);
    }

    fn forget(&mut self, key: &Key) {
        for id in self.slices.remove(key).unwrap_or_default().into_values() {
            self.drop_target(id);
        }
    }

    fn add(&mut self, target: Target) -> u64 {
        self.last += 1;
        self.due.insert((target.began + target.tally.due(), self.last));
        self.targets.insert(self.last, target);
        self.last
    }

    fn drop_target(&mut self, id: u64) {
        if let Some(target) = self.targets.remove(&id) {
            self.due.remove(&(target.began + target.tally.due(), id));
        }
    }

    /// When the next look is due.
    fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A look that is due; it is the caller's until it says what it showed.
    fn take(&mut self, now: Instant) -> Option<(u64, Check, std::time::Duration)> {
        let (at, id) = *self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, id));
        let target = self.targets.get(&id)?;
        Some((id, target.check.clone(), target.schedule.timeout))
    }

    /// What a look showed. Returns whose state is another now.
    fn looked(&mut self, id: u64, success: bool, now: Instant) -> Option<(Key, String, State)> {
        let target = self.targets.get_mut(&id)?;
        let changed = target.tally.count(now.duration_since(target.began), success);
        self.due.insert((target.began + target.tally.due(), id));
        changed.map(|state| (target.slice.clone(), target.address.clone(), state))
    }

    /// How an endpoint does.
    fn state(&self, key: &Key, address: &str) -> State {
        let id = self.slices.get(key).and_then(|targets| targets.get(address));
        id.and_then(|id| self.targets.get(id)).map_or(State::Unknown, |target| target.tally.state())
    }
}
