//! `fairlead register`: an endpoint of a Service for something that is no Pod, a process, a VM or a foreign host, for as long as
//! this program runs: looked at, drained and removed in order.
//!
//! ```text
//! Service there or made --> slice, not ready --looks--> ready <--> not ready --signal--> terminating
//!        --> every node knows --> drain --> SIGTERM to the command, if it is ours --> slice, Lease and Service of ours removed
//! ```

use std::io::Write;
use std::time::Duration;

use fairlead_api::view::EndpointConditions;
use fairlead_cluster::Cluster;
use fairlead_cluster::programmed::await_programmed;
use fairlead_probe::{State, Tally};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::door;
pub(crate) use flags::RegisterFlags;
use flags::Wanted;
use keeper::{Keeper, Kept};
use subject::Subject;

mod checker;
mod flags;
mod keeper;
mod service;
mod slice;
mod subject;

/// How long the nodes may take to hear that the endpoint goes.
const NODES: Duration = Duration::from_secs(10);
/// How long the API may take to take note of it.
const API: Duration = Duration::from_secs(10);

/// Registers until told to stop, or until what is registered has ended. Returns the code to exit with: the command's, if it
/// ended by itself.
pub(crate) async fn run(flags: &RegisterFlags, stop: CancellationToken) -> anyhow::Result<i32> {
    let wanted = Wanted::read(flags)?;
    let cluster = door::open(flags.kubeconfig()).await?;
    let cluster = cluster.managed_by(slice::MANAGER);
    let mut keeper = Keeper::new(cluster.clone(), wanted.clone());
    if stop.run_until_cancelled(keeper.begin()).await.transpose()?.is_none() {
        return Ok(0);
    }
    let subject = match Subject::start(flags) {
        Ok(subject) => subject,
        Err(error) => {
            // A Service nobody stands behind helps nobody.
            keeper.remove().await;
            return Err(error);
        }
    };
    Registration::start(cluster, wanted, keeper, subject).run(&stop).await
}

/// Says what has happened.
fn say(wanted: &Wanted, text: &str) {
    let _ = writeln!(std::io::stdout(), "{}: {text}", wanted.name);
}

/// A registration that is kept.
struct Registration {
    cluster: Cluster,
    wanted: Wanted,
    subject: Subject,
    tally: Tally,
    /// What the slice is to say.
    conditions: watch::Sender<EndpointConditions>,
    /// What it says.
    kept: watch::Receiver<Option<Kept>>,
    keeper: tokio::task::JoinHandle<Keeper>,
}

impl Registration {
    fn start(cluster: Cluster, wanted: Wanted, keeper: Keeper, subject: Subject) -> Registration {
        let initial = if wanted.check.is_some() { State::Unknown } else { State::Healthy };
        let tally = Tally::new(wanted.schedule, initial);
        let (conditions, wishes) = watch::channel(conditions(initial == State::Healthy, false));
        let (tell, kept) = watch::channel(None);
        let keeper = tokio::spawn(keeper.run(wishes, tell));
        Registration { cluster, wanted, subject, tally, conditions, kept, keeper }
    }

    async fn run(mut self, stop: &CancellationToken) -> anyhow::Result<i32> {
        if self.wanted.check.is_none() {
            say(&self.wanted, &format!("{} is registered; nobody checks it", self.wanted.endpoint()));
        }
        let ended = self.stay(stop).await;
        let code = match ended {
            None => {
                self.drain().await;
                self.subject.end(self.wanted.grace).await;
                0
            }
            Some(ended) => {
                say(&self.wanted, &ended.told);
                ended.code
            }
        };
        // The keeper ends with the channel, and nothing is made again behind our back.
        let Registration { wanted, conditions, keeper, .. } = self;
        drop(conditions);
        keeper.await?.remove().await;
        say(&wanted, &format!("{} is removed", wanted.endpoint()));
        Ok(code)
    }

    /// Looks until told to stop, or until what is registered has ended.
    async fn stay(&mut self, stop: &CancellationToken) -> Option<subject::Ended> {
        let began = Instant::now();
        loop {
            let due = began + self.tally.due();
            let wanted = &self.wanted;
            let look = async {
                match &wanted.check {
                    Some(check) => {
                        sleep_until(due).await;
                        checker::look(check, wanted.schedule.timeout).await
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return None,
                ended = self.subject.ended() => return Some(ended),
                outcome = look => {
                    let before = self.tally.state();
                    let changed = self.tally.count(began.elapsed(), outcome.is_success());
                    self.judge(before, changed, outcome.message());
                }
            }
        }
    }

    fn judge(&self, before: State, changed: Option<State>, why: &str) {
        let endpoint = self.wanted.endpoint();
        match changed {
            Some(State::Healthy) => say(&self.wanted, &format!("{endpoint} is ready")),
            Some(_) => say(&self.wanted, &format!("{endpoint} is not ready: {why}")),
            None if before == State::Unknown && !why.is_empty() => {
                say(&self.wanted, &format!("{endpoint} does not answer yet: {why}"));
            }
            None => {}
        }
        if changed.is_some() {
            self.conditions.send_replace(conditions(self.tally.state() == State::Healthy, false));
        }
    }

    /// Lets no new connections come, and lets those there are end.
    async fn drain(&mut self) {
        let leaving = conditions(self.tally.state() == State::Healthy, true);
        self.conditions.send_replace(leaving);
        say(&self.wanted, &format!("{} goes: no new connections", self.wanted.endpoint()));
        let noted = timeout(API, self.kept.wait_for(|kept| kept.is_some_and(|kept| kept.conditions == leaving))).await;
        let revision = noted.ok().and_then(|noted| noted.ok().and_then(|kept| kept.map(|kept| kept.revision)));
        let Some(revision) = revision else {
            return say(&self.wanted, "the API does not answer; nobody is told");
        };
        match await_programmed(&self.cluster, "proxy", revision, NODES).await {
            Ok(()) => {}
            Err(unfinished) => say(&self.wanted, &unfinished.to_string()),
        }
        sleep(self.wanted.drain).await;
    }
}

/// What the slice says of the endpoint.
fn conditions(healthy: bool, terminating: bool) -> EndpointConditions {
    EndpointConditions { ready: Some(healthy && !terminating), serving: Some(healthy), terminating: Some(terminating) }
}
