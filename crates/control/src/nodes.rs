//! The node lifecycle controller: a Node whose agent fell silent is not ready, and neither are its Pods, so that nobody is sent
//! to them any more.
//!
//! An agent reports by renewing its Lease or its Node's status. Silence is measured by our own clock, from when we last saw a
//! change: clocks of other machines do not matter. A Node that never had a Lease has no agent and is left alone.

use std::collections::HashMap;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::view::View;
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Change, Cluster, Error, Mirror, Recorder, Selection};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;
use view::{Agent, Reported};

mod silence;
mod taints;
mod view;

/// Where agents keep their Leases.
const LEASES: &str = "kube-node-lease";

/// Runs until told to stop.
pub(crate) async fn run(
    cluster: Cluster,
    grace: Duration,
    host: String,
    [silent, tainted]: [QueueMeter; 2],
    stop: CancellationToken,
) {
    let leases = Selection::all(&kinds::LEASE).in_namespace(LEASES);
    let mut mirror = Mirror::builder(&cluster).with::<Reported>().with_only::<Agent>(leases).build();
    let recorder = Recorder::new(&cluster, "node-controller", &host);
    let mut watcher = Watcher { grace, agents: HashMap::new(), queue: Queue::new(silent) };
    let mut tasks: JoinSet<(String, Result<(), Error>)> = JoinSet::new();
    let (mut wrong, mut repairs) = (Queue::<String>::new(tainted), JoinSet::new());
    loop {
        while let Some(name) = wrong.take() {
            let cluster = cluster.clone();
            repairs.spawn(async move { (taints::put_right(&cluster, &name).await, name) });
        }
        while let Some(name) = watcher.silent(&mirror) {
            let (cluster, recorder) = (cluster.clone(), recorder.clone());
            tasks.spawn(async move { (name.clone(), silence::tell(&cluster, &recorder, &name).await) });
        }
        let due = [watcher.queue.due(), wrong.due()].into_iter().flatten().min();
        let due = due.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            changes = mirror.next() => {
                changes.of::<Agent>().iter().filter(|change| change.new.is_some()).for_each(|change| watcher.hear(&change.key.name));
                changes.of::<Reported>().iter().for_each(|change| watcher.see(&mirror, change));
                let nodes = changes.of::<Reported>().iter().filter_map(|change| change.new.as_ref());
                nodes.filter(|node| taints::are_wrong(node)).for_each(|node| wrong.add(node.meta().name.clone()));
            }
            Some(ended) = tasks.join_next() => match ended {
                Ok((name, result)) => watcher.told(name, result),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            Some(ended) = repairs.join_next() => match ended {
                Ok((Ok(()), name)) => wrong.done(name),
                Ok((Err(error), name)) => {
                    tracing::warn!(node = name, %error, "cannot put the taints of a Node right");
                    wrong.failed(name);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

/// Knows when each agent was last heard of.
struct Watcher {
    grace: Duration,
    agents: HashMap<String, Heard>,
    /// Nodes by when their silence is too long, or earlier.
    queue: Queue<String>,
}

struct Heard {
    at: Instant,
    /// That it is silent since was told to everybody.
    told: bool,
}

impl Watcher {
    /// The agent of a Node has reported.
    fn hear(&mut self, node: &str) {
        let now = Instant::now();
        self.agents.insert(node.to_owned(), Heard { at: now, told: false });
        self.queue.add_at(node.to_owned(), now + self.grace);
    }

    /// A Node has changed: by its agent, if the time in its status is another.
    fn see(&mut self, mirror: &Mirror, change: &Change<Reported>) {
        let name = &*change.key.name;
        let Some(new) = &change.new else {
            self.agents.remove(name);
            return;
        };
        let has_agent = self.agents.contains_key(name) || mirror.get::<Agent>(LEASES, name).is_some();
        let reported = change.old.as_ref().is_none_or(|old| old.heartbeat() != new.heartbeat());
        if has_agent && reported {
            self.hear(name);
        }
    }

    /// The next Node whose agent is silent for too long.
    fn silent(&mut self, mirror: &Mirror) -> Option<String> {
        loop {
            let name = self.queue.take()?;
            let heard = self.agents.get(&name).filter(|heard| !heard.told);
            let Some(heard) = heard.filter(|_| mirror.get::<Reported>("", &name).is_some()) else {
                self.queue.done(name);
                continue;
            };
            let due = heard.at + self.grace;
            if due <= Instant::now() {
                return Some(name);
            }
            self.queue.done(name.clone());
            self.queue.add_at(name, due);
        }
    }

    fn told(&mut self, name: String, result: Result<(), Error>) {
        if let Err(error) = result {
            tracing::warn!(node = name, %error, "cannot tell that a Node is silent");
            return self.queue.failed(name);
        }
        self.queue.done(name.clone());
        match self.agents.get_mut(&name) {
            Some(heard) if heard.at + self.grace <= Instant::now() => heard.told = true,
            // It was heard of meanwhile.
            Some(heard) => self.queue.add_at(name, heard.at + self.grace),
            None => {}
        }
    }
}
