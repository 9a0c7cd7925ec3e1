//! The endpoint controllers: from Services and Pods to EndpointSlices and Endpoints, and from hand-made Endpoints to
//! EndpointSlices. They share one look at the cluster and one queue.
//!
//! ```text
//! mirror --changes--> what they concern --> queue --> what should be there --> writes --> wait until the mirror shows them
//! ```
//! A Service is looked at again only when the mirror shows what was written for it last: who decides on what was true a moment
//! ago writes everything twice.

use std::sync::Arc;

use fairlead_api::view::{EndpointSlice, Endpoints, Node, Pod, Service};
use fairlead_cluster::{Cluster, Key, Mirror, Recorder, Reference, Severity};
use fairlead_endpoints::Notice;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use crate::metrics::SliceMeter;
use crate::queue::Queue;
use crate::{Choice, Controller, Metrics, Options};
use concern::Concern;
use flight::{Flights, Settled};
use state::State;
use write::{Landed, Writing};

mod concern;
mod flight;
mod state;
mod write;

/// The most Services written for at a time: enough to keep an API server busy, few enough to leave it room for others.
const FLIGHTS: usize = 64;

/// Which of the controllers is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Task {
    Slices,
    Endpoints,
    Mirroring,
}

impl Task {
    const ALL: [Task; 3] = [Task::Slices, Task::Endpoints, Task::Mirroring];

    fn controller(self) -> Controller {
        match self {
            Task::Slices => Controller::EndpointSlice,
            Task::Endpoints => Controller::Endpoints,
            Task::Mirroring => Controller::EndpointSliceMirroring,
        }
    }

    /// The name of its queue, in kube-controller-manager's words.
    fn queue(self) -> &'static str {
        match self {
            Task::Slices => "endpoint_slice",
            Task::Endpoints => "endpoint",
            Task::Mirroring => "endpoint_slice_mirroring",
        }
    }

    /// The name Events are written under.
    fn component(self) -> &'static str {
        match self {
            Task::Slices => "endpoint-slice-controller",
            Task::Endpoints => "endpoint-controller",
            Task::Mirroring => "endpoint-slice-mirroring-controller",
        }
    }
}

/// One thing to do: a controller looks at a Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Work {
    task: Task,
    service: Key,
}

/// Whether any of the controllers is to run.
pub(crate) fn wanted(choice: &Choice) -> bool {
    Task::ALL.iter().any(|task| choice.has(task.controller()))
}

/// Runs the controllers until told to stop. What is being written then is written to the end.
pub(crate) async fn run(cluster: Cluster, options: Options, metrics: Metrics, stop: CancellationToken) {
    let mut mirror = Mirror::builder(&cluster)
        .with::<Service>()
        .with::<Pod>()
        .with::<Node>()
        .with::<EndpointSlice>()
        .with::<Endpoints>()
        .build();
    if stop.run_until_cancelled(mirror.sync()).await.is_none() {
        return;
    }
    let mut keeper = Keeper::new(cluster, options, &metrics, mirror);
    keeper.state.all().into_iter().for_each(|work| keeper.want(work));
    while stop.run_until_cancelled(keeper.step()).await.is_some() {}
    while keeper.writing.next().await.is_some() {}
}

struct Keeper {
    cluster: Cluster,
    options: Options,
    recorders: [Recorder; 3],
    meter: Arc<SliceMeter>,
    state: State,
    queue: Queue<Work>,
    flights: Flights,
    writing: FuturesUnordered<Writing>,
}

impl Keeper {
    fn new(cluster: Cluster, options: Options, metrics: &Metrics, mirror: Mirror) -> Keeper {
        let recorders = Task::ALL.map(|task| Recorder::new(&cluster, task.component(), &options.host));
        // All three are told of, whichever run: what does not run has nothing to do.
        let meters = Task::ALL.map(|task| metrics.queue(task.queue())).to_vec();
        let queue = Queue::shared(meters, |work: &Work| work.task as usize);
        let (flights, writing, meter) = (Flights::default(), FuturesUnordered::new(), metrics.slices());
        let state = State::new(mirror, meter.clone());
        Keeper { cluster, options, recorders, meter, state, queue, flights, writing }
    }

    /// Starts what can be started, then waits for news: changes, writes that are done, or time gone by.
    async fn step(&mut self) {
        while self.flights.len() < FLIGHTS {
            let Some(work) = self.queue.take() else { break };
            self.start(work);
        }
        let due = self.queue.due().filter(|_| self.flights.len() < FLIGHTS);
        tokio::select! {
            changes = self.state.mirror.next() => {
                for concern in self.state.observe(&changes) {
                    self.heard(concern);
                }
            }
            Some(landed) = self.writing.next() => self.landed(landed),
            () = sleep_until(due.unwrap_or_else(tokio::time::Instant::now)), if due.is_some() => {}
        }
        for Settled { work, failed, disturbed } in self.flights.settled(&self.state.mirror) {
            if disturbed {
                self.queue.add(work.clone());
            }
            self.finish(work, failed);
        }
    }

    fn finish(&mut self, work: Work, failed: bool) {
        if work.task == Task::Slices {
            self.meter.synced(failed);
        }
        if failed { self.queue.failed(work) } else { self.queue.done(work) }
    }

    /// Something has changed that a controller looks at. Our own writes come by here too, and need no second look.
    fn heard(&mut self, concern: Concern) {
        match concern.touched {
            Some(touched) if self.flights.heard(&concern.work, &touched) => {}
            _ => self.want(concern.work),
        }
    }

    fn want(&mut self, work: Work) {
        if self.options.choice.has(work.task.controller()) {
            self.queue.add(work);
        }
    }

    fn start(&mut self, work: Work) {
        let todo = self.state.decide(&work, &self.options);
        todo.notices.into_iter().for_each(|(about, notice)| self.tell(work.task, about, notice));
        if todo.writes.is_empty() {
            return self.finish(work, false);
        }
        tracing::debug!(controller = work.task.component(), service = %work.service, writes = todo.writes.len(), "writing");
        self.flights.start(work.clone());
        self.writing.push(write::write(self.cluster.clone(), work, todo.writes));
    }

    /// The writes of a Service are done, or one of them was refused and the others were left.
    fn landed(&mut self, landed: Landed) {
        let Landed { work, written, operations, error } = landed;
        if work.task == Task::Slices {
            operations.into_iter().for_each(|operation| self.meter.changed(operation));
        }
        // Nothing can be made in a namespace that goes, and nothing needs to be.
        let error = error.filter(|error| !error.is_namespace_terminating());
        self.flights.landed(&work, written, error.is_some());
        let Some(error) = error else { return };
        tracing::debug!(controller = work.task.component(), service = %work.service, %error, "a write failed");
        // A race is over by the next try; what stays wrong is worth telling.
        let race = error.is_transient() || error.is_conflict() || error.is_not_found();
        let told = self.state.failure(&work, &error).filter(|_| !race);
        told.into_iter().for_each(|(about, notice)| self.tell(work.task, about, notice));
    }

    fn tell(&self, task: Task, about: Reference, notice: Notice) {
        let severity = match notice.severity {
            fairlead_endpoints::Severity::Normal => Severity::Normal,
            fairlead_endpoints::Severity::Warning => Severity::Warning,
        };
        self.recorders[task as usize].record(about, severity, notice.reason, notice.message);
    }
}
