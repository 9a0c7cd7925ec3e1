//! Follows the cluster: Services, EndpointSlices, this Node, the ranges of cluster IPs; hands changes to the worker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use fairlead_api::view::{EndpointSlice, Meta, Node, Service, View};
use fairlead_api::{Kind, ip, kinds};
use fairlead_cluster::{Changes, Cluster, Mirror, Selection, Watched};
use fairlead_plan::Change;
use futures_util::FutureExt;
use ipnet::IpNet;
use serde::Deserialize;

use crate::worker::{Batch, Work};
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

/// At most about so many changed objects are handed on at once.
const BATCH: usize = 1024;

/// The cluster as the proxy sees it.
pub(crate) struct Follower {
    services: Watched<Service>,
    slices: Watched<EndpointSlice>,
    nodes: Mirror,
    /// Followed apart: older clusters have none, and then the rest must not wait for it.
    ranges: Mirror,
    settings: Settings,
    mode: Mode,
    /// What was read and not handed on yet.
    gathered: Batch,
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
        Follower {
            services: Watched::new(cluster, served(&kinds::SERVICE)),
            slices: Watched::new(cluster, served(&kinds::ENDPOINT_SLICE)),
            nodes: Mirror::builder(cluster).with_only::<Node>(nodes).build(),
            ranges: Mirror::builder(cluster).with::<ServiceCidr>().build(),
            settings: settings.clone(),
            mode,
            gathered: Batch::default(),
        }
    }

    /// Takes everything in, a part at a time, until all of it is known.
    pub(crate) async fn first(&mut self, take: impl FnMut(Vec<Change>)) -> Batch {
        let mut take = take;
        self.nodes.sync().await;
        // Ranges come at once, or there are none here.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.ranges.sync()).await;
        take(vec![Change::Node(Box::new(self.node()))]);
        if self.settings.topology_keys {
            take(self.nodes.all::<Node>().map(labels).collect());
        }
        while !(self.services.listed() && self.slices.listed()) {
            self.gather().await;
            take(std::mem::take(&mut self.gathered.changes));
        }
        self.batch()
    }

    /// The next changes. A call that is dropped before it is ready has lost nothing.
    pub(crate) async fn next(&mut self) -> Batch {
        while self.gathered.changes.is_empty() {
            self.gather().await;
        }
        while self.gathered.changes.len() < BATCH && self.gather().now_or_never().is_some() {}
        self.batch()
    }

    /// Waits for something, and keeps it.
    async fn gather(&mut self) {
        tokio::select! {
            changed = self.services.next() => {
                self.gathered.stamp.services += changed.len();
                let changes = changed.into_iter().map(|(key, new)| Change::Service(key, new.map(slim)));
                self.gathered.changes.extend(changes);
            }
            changed = self.slices.next() => {
                self.gathered.stamp.slices += changed.len();
                let triggers = changed.iter().filter_map(|(_, new)| triggered(new.as_deref()?));
                self.gathered.stamp.triggered = triggers.chain(self.gathered.stamp.triggered).min();
                self.gathered.changes.extend(changed.into_iter().map(|(key, new)| Change::Slice(key, new)));
            }
            changed = self.nodes.next() => self.node_changed(&changed),
            _ = self.ranges.next() => self.gathered.changes.push(Change::Node(Box::new(self.node()))),
        }
    }

    fn node_changed(&mut self, changed: &Changes) {
        for node in changed.of::<Node>() {
            if *node.key.name == *self.settings.node {
                self.gathered.changes.push(Change::Node(Box::new(self.node())));
            }
            if self.settings.topology_keys {
                let labels = node.new.as_ref().map(|node| node.metadata.labels.clone());
                self.gathered.changes.push(Change::Labels(node.key.name.to_string(), labels));
            }
        }
    }

    /// What was gathered.
    fn batch(&mut self) -> Batch {
        let mut batch = std::mem::take(&mut self.gathered);
        (batch.stamp.arrived, batch.stamp.revision) = (Instant::now(), self.revision());
        batch
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
        self.nodes.get::<Node>("", &self.settings.node)
    }

    /// Up to which revision EndpointSlices are known: that is what people wait for, and Services may be quiet for long.
    fn revision(&self) -> u64 {
        self.slices.revision()
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

/// Without what is written for others. Annotations can be larger than all the rest.
fn slim(mut service: Arc<Service>) -> Arc<Service> {
    if let Some(service) = Arc::get_mut(&mut service) {
        service.metadata.annotations = BTreeMap::new();
        service.metadata.owner_references = Vec::new();
        service.metadata.finalizers = Vec::new();
    }
    service
}

fn labels(node: &Arc<Node>) -> Change {
    Change::Labels(node.metadata.name.clone(), Some(node.metadata.labels.clone()))
}

/// When what a slice shows was asked for.
fn triggered(slice: &EndpointSlice) -> Option<i64> {
    let text = slice.metadata.annotations.get(TRIGGER)?;
    text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond())
}
