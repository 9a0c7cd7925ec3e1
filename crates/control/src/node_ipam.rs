//! The node IPAM controller: a Node without ranges for its Pods gets one of each family from the cluster's ranges, which no
//! other Node has.
//!
//! One controller acts at a time (the Lease), it knows all Nodes before it gives anything, it gives one range after the other,
//! and a write holds only for the Node as it was seen.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::view::{Meta, Node};
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Cluster, Error, Mirror, Patch, Recorder, Reference, Severity};
use ipnet::IpNet;
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;
use pool::Pool;

mod pool;

/// The reason of the Event when no range is left; kube-controller-manager's.
const NOT_AVAILABLE: &str = "CIDRNotAvailable";

/// The ranges of the cluster, and how much of them a Node gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRanges {
    /// At most one of each family.
    pub cluster: Vec<IpNet>,
    /// The length of the prefix of an IPv4 range of a Node.
    pub prefix_v4: u8,
    /// The same for IPv6.
    pub prefix_v6: u8,
}

impl Default for NodeRanges {
    fn default() -> NodeRanges {
        let cluster = ["10.244.0.0/16", "fd00:244::/48"].map(|text| text.parse().expect("a range"));
        NodeRanges { cluster: cluster.to_vec(), prefix_v4: 24, prefix_v6: 64 }
    }
}

/// Runs until told to stop.
pub(crate) async fn run(
    cluster: Cluster,
    ranges: NodeRanges,
    host: String,
    meter: QueueMeter,
    stop: CancellationToken,
) {
    let mut mirror = Mirror::builder(&cluster).with::<Node>().build();
    let recorder = Recorder::new(&cluster, "cidrAllocator", &host);
    let queue = Queue::new(meter);
    let mut giver = Giver { pools: Pool::all(&ranges), given: HashMap::new(), empty: HashSet::new(), queue };
    loop {
        while mirror.synced()
            && let Some(name) = giver.queue.take()
        {
            let node = mirror.get::<Node>("", &name).cloned();
            let result = giver.give(&cluster, &recorder, node).await;
            giver.given(name, result);
        }
        let due = giver.queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            changes = mirror.next() => {
                changes.of::<Node>().iter().for_each(|change| giver.see(&change.key.name, change.new.as_deref()));
            }
            () = sleep_until(due) => {}
        }
    }
}

/// Knows who has what.
struct Giver {
    pools: Vec<Pool>,
    /// What each Node has, or was just given.
    given: HashMap<String, Vec<IpNet>>,
    /// Nodes for whom nothing was left.
    empty: HashSet<String>,
    queue: Queue<String>,
}

impl Giver {
    /// A Node is there, or has changed, or has gone.
    fn see(&mut self, name: &str, node: Option<&Node>) {
        let Some(node) = node else {
            self.empty.remove(name);
            return self.free(name);
        };
        if node.spec.pod_cidrs.is_empty() {
            if self.empty.contains(name) {
                return;
            }
            return self.queue.add(name.to_owned());
        }
        let ranges: Vec<IpNet> = node.spec.pod_cidrs.iter().filter_map(|text| text.parse().ok()).collect();
        if self.given.get(name) != Some(&ranges) {
            self.free(name);
            ranges.iter().for_each(|range| self.pools.iter_mut().for_each(|pool| pool.take(range)));
            self.given.insert(name.to_owned(), ranges);
        }
    }

    /// What a Node had is free, for those who went away empty-handed.
    fn free(&mut self, name: &str) {
        let Some(ranges) = self.given.remove(name) else { return };
        ranges.iter().for_each(|range| self.pools.iter_mut().for_each(|pool| pool.free(range)));
        self.empty.drain().for_each(|name| self.queue.add(name));
    }

    async fn give(&mut self, cluster: &Cluster, recorder: &Recorder, node: Option<Arc<Node>>) -> Result<(), Trouble> {
        let Some(node) = node.filter(|node| node.spec.pod_cidrs.is_empty()) else { return Ok(()) };
        let name = &node.metadata.name;
        if self.pools.is_empty() {
            return Ok(());
        }
        // What was reserved for this Node and perhaps not written is used again.
        let ranges = match self.given.get(name) {
            Some(ranges) => ranges.clone(),
            None => self.draw().ok_or_else(|| none_left(recorder, &node))?,
        };
        self.given.insert(name.to_owned(), ranges.clone());
        let texts: Vec<String> = ranges.iter().map(IpNet::to_string).collect();
        let patch = Patch::Merge(json!({
            "metadata": {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version},
            "spec": {"podCIDR": texts[0], "podCIDRs": texts},
        }));
        match cluster.patch(&kinds::NODE, "", name, &patch).await {
            // It is another by now, and will be seen.
            Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(()),
            other => other.map(drop).map_err(Trouble::Write),
        }
    }

    /// One range of each pool, or nothing.
    fn draw(&mut self) -> Option<Vec<IpNet>> {
        let ranges: Vec<IpNet> = self.pools.iter_mut().map_while(Pool::draw).collect();
        if ranges.len() == self.pools.len() {
            return Some(ranges);
        }
        ranges.iter().zip(&mut self.pools).for_each(|(range, pool)| pool.free(range));
        None
    }

    fn given(&mut self, name: String, result: Result<(), Trouble>) {
        let Err(trouble) = result else { return self.queue.done(name) };
        match trouble {
            Trouble::NoneLeft => {
                self.queue.done(name.clone());
                self.empty.insert(name);
            }
            Trouble::Write(error) => {
                tracing::warn!(node = name, %error, "cannot give a Node its ranges for Pods");
                self.queue.failed(name);
            }
        }
    }
}

/// Why a Node got nothing.
enum Trouble {
    NoneLeft,
    Write(Error),
}

fn none_left(recorder: &Recorder, node: &Node) -> Trouble {
    let meta = Meta { resource_version: String::new(), ..node.metadata.clone() };
    let message = format!("Node {} status is now: {NOT_AVAILABLE}", meta.name);
    tracing::warn!(node = meta.name, "the cluster's ranges for Pods are used up");
    recorder.record(Reference::to(&kinds::NODE, &meta), Severity::Normal, NOT_AVAILABLE, message);
    Trouble::NoneLeft
}
