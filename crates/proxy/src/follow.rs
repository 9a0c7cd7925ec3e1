//! Follows the cluster: Services, EndpointSlices, this Node, the ranges of cluster IPs; hands changes to the worker.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Meta, Node, Service, View};
use fairlead_api::{Kind, ip, kinds};
use fairlead_cluster::{Changes, Cluster, Mirror, Selection};
use fairlead_plan::Change;
use ipnet::IpNet;
use serde::Deserialize;

use crate::worker::{Batch, Stamp, Work};
use crate::{Mode, Settings, node};

/// What no proxy serves: Services with a proxy of their own, and headless ones.
const SERVED: &str = "!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless";
/// When the endpoint change that led to a slice was asked for.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// How long a full queue of work is waited for before it is tried again.
const FULL: Duration = Duration::from_millis(1);

/// A range cluster IPs come from.
#[derive(Debug, Deserialize)]
pub(crate) struct ServiceCidr {
    metadata: Meta,
    #[serde(default)]
    spec: ServiceCidrSpec,
}

#[derive(Debug, Default, Deserialize)]
struct ServiceCidrSpec {
    #[serde(default)]
    cidrs: Vec<String>,
}

impl View for ServiceCidr {
    const KIND: &'static Kind = &kinds::SERVICE_CIDR;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The cluster as the proxy sees it.
pub(crate) struct Follower {
    objects: Mirror,
    /// Followed apart: older clusters have none, and then the rest must not wait for it.
    ranges: Mirror,
    settings: Settings,
    mode: Mode,
}

impl Follower {
    /// Begins to follow a cluster.
    pub(crate) fn new(cluster: &Cluster, settings: &Settings, mode: Mode) -> Follower {
        let served = |kind| Selection::all(kind).with_labels(SERVED);
        let nodes = Selection::all(&kinds::NODE);
        let nodes = match settings.topology_keys {
            true => nodes,
            false => nodes.with_fields(format!("metadata.name={}", settings.node)),
        };
        let objects = Mirror::builder(cluster)
            .with_only::<Service>(served(&kinds::SERVICE))
            .with_only::<EndpointSlice>(served(&kinds::ENDPOINT_SLICE))
            .with_only::<Node>(nodes)
            .build();
        let ranges = Mirror::builder(cluster).with::<ServiceCidr>().build();
        Follower { objects, ranges, settings: settings.clone(), mode }
    }

    /// Everything, once all of it is known.
    pub(crate) async fn first(&mut self) -> Batch {
        let arrived = Instant::now();
        self.objects.sync().await;
        // Ranges come at once, or there are none here.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.ranges.sync()).await;
        let mut changes = vec![Change::Node(Box::new(self.node()))];
        changes.extend(self.objects.all::<Service>().map(|view| Change::Service(key(&**view), Some(view.clone()))));
        changes.extend(self.objects.all::<EndpointSlice>().map(|view| Change::Slice(key(&**view), Some(view.clone()))));
        if self.settings.topology_keys {
            changes.extend(self.objects.all::<Node>().map(|view| labels(view)));
        }
        let services = self.objects.all::<Service>().count();
        let slices = self.objects.all::<EndpointSlice>().count();
        Batch { changes, stamp: Stamp { arrived, revision: self.revision(), services, slices, triggered: None } }
    }

    /// The next changes. A call that is dropped before it is ready has lost nothing.
    pub(crate) async fn next(&mut self) -> Batch {
        tokio::select! {
            changes = self.objects.next() => {
                let arrived = Instant::now();
                self.batch(&changes, arrived)
            }
            _ = self.ranges.next() => {
                let changes = vec![Change::Node(Box::new(self.node()))];
                let stamp = Stamp { arrived: Instant::now(), revision: self.revision(), services: 0, slices: 0, triggered: None };
                Batch { changes, stamp }
            }
        }
    }

    fn batch(&self, changed: &Changes, arrived: Instant) -> Batch {
        let mut changes = Vec::new();
        let services = changed.of::<Service>();
        let slices = changed.of::<EndpointSlice>();
        changes.extend(services.iter().map(|change| Change::Service(change.key.clone(), change.new.clone())));
        changes.extend(slices.iter().map(|change| Change::Slice(change.key.clone(), change.new.clone())));
        for node in changed.of::<Node>() {
            if *node.key.name == *self.settings.node {
                changes.push(Change::Node(Box::new(self.node())));
            }
            if self.settings.topology_keys {
                let labels = node.new.as_ref().map(|node| node.metadata.labels.clone());
                changes.push(Change::Labels(node.key.name.to_string(), labels));
            }
        }
        let triggered = slices.iter().filter_map(|change| triggered(change.new.as_deref()?)).min();
        let (services, slices) = (services.len(), slices.len());
        Batch { changes, stamp: Stamp { arrived, revision: self.revision(), services, slices, triggered } }
    }

    /// This Node, but for the addresses of its interfaces, which the worker knows.
    fn node(&self) -> fairlead_plan::Node {
        let ranges: Vec<IpNet> = self
            .ranges
            .all::<ServiceCidr>()
            .flat_map(|range| range.spec.cidrs.iter().filter_map(|text| ip::cidr::parse(text)))
            .collect();
        node::node(&self.settings, self.mode, self.object().map(|node| &**node), &ranges)
    }

    /// The object of this Node.
    pub(crate) fn object(&self) -> Option<&Arc<Node>> {
        self.objects.get::<Node>("", &self.settings.node)
    }

    /// Up to which revision EndpointSlices are known: that is what people wait for, and Services may be quiet for long.
    fn revision(&self) -> u64 {
        self.objects.revision::<EndpointSlice>()
    }
}

/// Hands work to the worker, and waits while it has too much.
pub(crate) async fn send(work: &SyncSender<Work>, mut item: Work) -> Result<(), ()> {
    loop {
        match work.try_send(item) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(()),
            Err(TrySendError::Full(back)) => item = back,
        }
        tokio::time::sleep(FULL).await;
    }
}

fn key<T: View>(view: &T) -> Key {
    Key::new(view.meta().namespace.as_str(), view.meta().name.as_str())
}

fn labels(node: &Arc<Node>) -> Change {
    Change::Labels(node.metadata.name.clone(), Some(node.metadata.labels.clone()))
}

/// When what a slice shows was asked for.
fn triggered(slice: &EndpointSlice) -> Option<i64> {
    let text = slice.metadata.annotations.get(TRIGGER)?;
    text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond())
}
