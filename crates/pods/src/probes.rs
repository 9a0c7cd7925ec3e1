//! Looks at containers: has it started, does it live, is it ready? One task for each probe of a run.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::Look;
use fairlead_cluster::Severity;
use fairlead_probe::{Handler, Outcome, Spec, State, Tally, look};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::container::Run;
use crate::exec;
use crate::node::Node;

/// The first of the looks between looks, at what is not there yet; each is twice as far from the one before.
const SOON: Duration = Duration::from_millis(50);

/// Which probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Startup,
    Liveness,
    Readiness,
}

impl Kind {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Startup => "Startup",
            Kind::Liveness => "Liveness",
            Kind::Readiness => "Readiness",
        }
    }

    /// Its field in the container.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Kind::Startup => "startupProbe",
            Kind::Liveness => "livenessProbe",
            Kind::Readiness => "readinessProbe",
        }
    }

    /// What is believed before the first look.
    pub(crate) fn initial(self, ready: bool) -> State {
        match self {
            Kind::Startup => State::Unknown,
            Kind::Liveness => State::Healthy,
            Kind::Readiness if ready => State::Healthy,
            Kind::Readiness => State::Unhealthy,
        }
    }
}

/// A probe of a run of a container.
pub(crate) struct Probing {
    pub(crate) node: Arc<Node>,
    pub(crate) pod: Arc<Value>,
    pub(crate) container: Value,
    pub(crate) address: String,
    pub(crate) run: Run,
    pub(crate) kind: Kind,
    /// What is believed.
    pub(crate) initial: State,
    /// When the container was started.
    pub(crate) began: Instant,
}

impl Probing {
    /// Looks for ever, and tells each change.
    pub(crate) async fn run(self, changes: mpsc::Sender<State>) {
        let spec = match Spec::read(self.container.at(self.kind.field()), &self.container, &self.address) {
            Ok(spec) => spec,
            Err(why) => {
                let message = format!("{:?} probe errored and resulted in unknown state: {why}", self.kind);
                return self.node.tell(&self.pod, Severity::Warning, "Unhealthy", message);
            }
        };
        let mut tally = Tally::new(spec.schedule, self.initial);
        let mut soon = SOON;
        // What has never answered is looked at more often, so that it need not wait for a whole period once it does. Only looks
        // at their time count as failures.
        let mut answered = self.initial == State::Healthy;
        loop {
            let due = self.began + tally.due();
            let early = Instant::now() + soon;
            let between = !answered && early < due && self.began.elapsed() >= spec.schedule.initial_delay;
            sleep_until(if between { early } else { due }).await;
            let (outcome, took) = self.look(&spec).await;
            soon = (soon * 2).min(Duration::from_secs(1));
            if between && !outcome.is_success() {
                continue;
            }
            // Looks between looks that find nothing yet are nobody's failures.
            self.node.metrics.probed(self.kind, &outcome, took);
            answered |= outcome.is_success();
            self.tell(&outcome);
            if let Some(state) = tally.count(self.began.elapsed(), outcome.is_success())
                && changes.send(state).await.is_err()
            {
                return;
            }
        }
    }

    /// What is found, and how long that took.
    async fn look(&self, spec: &Spec) -> (Outcome, Duration) {
        let began = Instant::now();
        let outcome = match &spec.handler {
            Handler::Look(check) => look(check, spec.schedule.timeout).await,
            Handler::Exec(words) => {
                let limit = Some(spec.schedule.timeout);
                match exec::run(&self.node.settings, &self.run, words.clone(), limit).await {
                    Ok((0, _)) => Outcome::Success,
                    Ok((_, said)) => Outcome::Failure(said),
                    Err(why) => Outcome::Failure(why),
                }
            }
        };
        (outcome, began.elapsed())
    }

    fn tell(&self, outcome: &Outcome) {
        let (reason, what) = match outcome {
            Outcome::Success => return,
            Outcome::Warning(_) => ("ProbeWarning", "warning"),
            Outcome::Failure(_) => ("Unhealthy", "failed"),
        };
        let message = format!("{:?} probe {what}: {}", self.kind, outcome.message());
        self.node.tell(&self.pod, Severity::Warning, reason, message);
    }
}
