//! The garbage collector: what belongs to objects that are gone goes too, and an object that is to go after its dependents, or
//! without them, waits until that is done.
//!
//! It follows every kind of our table that can have owners and remembers only who belongs to whom ([`graph`]). An owner of a
//! kind we do not follow is believed to be there: its dependents are never touched.

use std::time::Duration;

use fairlead_api::{Kind, kinds, kinds::Verb};
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Cluster, Error, Event, Object, Recorder, Selection, Step};
use futures_util::FutureExt;
use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use tokio::task::{JoinSet, coop};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;
use collect::Collect;
use graph::{Graph, Id};
use head::Head;

mod collect;
mod graph;
mod head;

/// So many objects are looked after at a time.
const AT_ONCE: usize = 16;
/// So many steps are read before something is done about them: enough to see what belongs together.
const BATCH: usize = 64;

/// Runs until told to stop.
pub(crate) async fn run(cluster: Cluster, host: String, meter: QueueMeter, stop: CancellationToken) {
    let mut steps = SelectAll::new();
    for (place, kind) in kinds::KINDS.iter().enumerate().filter(|(_, kind)| can_own(kind)) {
        let numbered = cluster.follow(Selection::all(kind)).map(move |step| (place, step));
        steps.push(numbered.boxed());
    }
    let recorder = Recorder::new(&cluster, "garbage-collector-controller", &host);
    let (graph, queue, tasks, kinds, skipped) =
        (Graph::default(), Queue::new(meter), JoinSet::new(), Vec::new(), Skipped(0));
    let mut collector = Collector { cluster, recorder, graph, queue, tasks, kinds, skipped };
    collector.kinds =
        kinds::KINDS.iter().map(|kind| if can_own(kind) { State::Awaited } else { State::Listed }).collect();
    loop {
        collector.start();
        let due = collector.queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            Some((kind, step)) = steps.next() => collector.read(kind, step, &mut steps).await,
            Some(ended) = collector.tasks.join_next() => match ended {
                Ok((id, result)) => collector.ended(id, result),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

/// Whether objects of a kind own others or are owned. Events come and go by themselves, and are too many to be looked at; a
/// kind that is kept as another is seen as that one.
fn can_own(kind: &Kind) -> bool {
    kind.offers(Verb::List) && kind.conversion.is_none() && kind.kind != kinds::EVENT.kind
}

/// The place in the table of the kind an owner reference names, if we follow it. The version does not matter.
fn followed(api_version: &str, kind: &str) -> Option<usize> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    kinds::KINDS.iter().position(|known| known.kind == kind && known.group == group && can_own(known))
}

/// Kinds the server does not serve, or that we may not see, by their places in the table.
#[derive(Debug, Clone, Copy)]
struct Skipped(u64);

impl Skipped {
    fn has(self, place: usize) -> bool {
        self.0 & 1 << place != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Awaited,
    Listed,
    Skipped,
}

struct Collector {
    cluster: Cluster,
    recorder: Recorder,
    graph: Graph,
    queue: Queue<Id>,
    tasks: JoinSet<(Id, Result<(), Error>)>,
    kinds: Vec<State>,
    skipped: Skipped,
}

impl Collector {
    /// Starts what there is to do. Nothing is done before everything was seen once: a dependent may be in the last list.
    fn start(&mut self) {
        while self.graph.is_synced() && self.tasks.len() < AT_ONCE {
            let Some(id) = self.queue.take() else { return };
            let Some(work) = self.graph.work(&id) else {
                self.queue.done(id);
                continue;
            };
            let collect =
                Collect { cluster: self.cluster.clone(), recorder: self.recorder.clone(), skipped: self.skipped };
            self.tasks.spawn(async move {
                let result = collect.work(&id, work).await;
                (id, result)
            });
        }
    }

    fn ended(&mut self, id: Id, result: Result<(), Error>) {
        match result {
            Ok(()) => self.queue.done(id),
            Err(error) => {
                // Somebody wrote to it meanwhile, as happens every day.
                if !error.is_conflict() {
                    tracing::warn!(object = %id, %error, "cannot collect");
                }
                self.queue.failed(id);
            }
        }
    }

    /// Reads a step and those that came with it: of an owner and its dependents made together, both are known.
    async fn read(&mut self, kind: usize, step: Step, steps: &mut SelectAll<BoxStream<'static, (usize, Step)>>) {
        let mut todo = Vec::new();
        self.step(kind, step, &mut todo).await;
        for _ in 0..BATCH {
            let Some((kind, step)) = steps.next().now_or_never().flatten() else { break };
            self.step(kind, step, &mut todo).await;
        }
        todo.into_iter().for_each(|id| self.queue.add(id));
    }

    async fn step(&mut self, kind: usize, step: Step, todo: &mut Vec<Id>) {
        match step {
            Step::Listing => self.graph.listing(kind),
            Step::Objects(objects) => {
                for object in objects {
                    self.put(kind, &object, todo);
                    coop::consume_budget().await;
                }
            }
            Step::Listed(_) => {
                self.graph.listed(kind, todo);
                self.set(kind, State::Listed, todo);
            }
            Step::Changed(events, _) => {
                for event in events {
                    match event {
                        Event::Put(object) => self.put(kind, &object, todo),
                        Event::Delete(key, _) => self.graph.delete(&Id::of(kind, &key), todo),
                    }
                    coop::consume_budget().await;
                }
            }
            Step::Trouble(failure) if self.kinds[kind] == State::Awaited && matches!(failure.code, 403 | 404) => {
                let kind_name = kinds::KINDS[kind].kind;
                tracing::warn!(
                    kind = kind_name,
                    why = failure.message,
                    "not looked after: objects of this kind cannot be seen"
                );
                self.set(kind, State::Skipped, todo);
            }
            Step::Trouble(failure) => {
                tracing::debug!(kind = kinds::KINDS[kind].kind, why = failure.message, "cannot follow changes");
            }
        }
    }

    fn put(&mut self, kind: usize, object: &Object, todo: &mut Vec<Id>) {
        match Head::read(&object.json) {
            Some(head) => self.graph.put(Id::of(kind, &object.key), &head, todo),
            None => tracing::warn!(kind = kinds::KINDS[kind].kind, key = %object.key, "cannot read an object"),
        }
    }

    fn set(&mut self, kind: usize, state: State, todo: &mut Vec<Id>) {
        self.kinds[kind] = state;
        match state {
            State::Skipped => self.skipped.0 |= 1 << kind,
            _ => self.skipped.0 &= !(1 << kind),
        }
        if !self.graph.is_synced() && !self.kinds.contains(&State::Awaited) {
            self.graph.sync(todo);
        }
    }
}
