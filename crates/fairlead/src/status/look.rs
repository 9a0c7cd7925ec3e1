//! Looks at a cluster and at the parts of it on this machine.

use std::collections::BTreeMap;

use anyhow::Context;
use fairlead_api::{Look, kinds};
use fairlead_balancer::run::page::{PATH, Report};
use fairlead_cluster::{Cluster, Selection};
use fairlead_explain::{Objects, Verdict, check};
use http::Method;
use serde::Serialize;
use serde_json::Value;

use crate::page;

/// Where the server tells how far the proxies of Nodes are.
const NODES: &str = "/fairlead/v1/nodes";

/// How many Services there are, and what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Tally {
    pub(super) well: usize,
    pub(super) warnings: Vec<Trouble>,
    pub(super) broken: Vec<Trouble>,
}

/// A Service with something wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Trouble {
    /// `namespace/name`
    pub(super) service: String,
    pub(super) cause: String,
    pub(super) message: String,
}

impl Tally {
    /// What objects say of every Service.
    pub(super) fn of(objects: &Objects) -> Tally {
        let mut tally = Tally::default();
        for (key, _) in objects.services() {
            let report = check(key, objects);
            let trouble = || Trouble {
                service: report.service.clone(),
                cause: report.first.map(|cause| cause.to_string()).unwrap_or_default(),
                message: report.why().to_owned(),
            };
            match report.verdict {
                Verdict::Ok | Verdict::Unknown => tally.well += 1,
                Verdict::Warn => tally.warnings.push(trouble()),
                Verdict::Broken => tally.broken.push(trouble()),
            }
        }
        tally
    }
}

/// A Node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NodeState {
    pub(super) name: String,
    pub(super) ready: bool,
    pub(super) addresses: Vec<String>,
    pub(super) pods: usize,
    /// Its proxy: mode and how far it is, as far as the server knows.
    pub(super) proxy: Option<String>,
    /// What is wrong with it.
    pub(super) trouble: Option<String>,
}

impl NodeState {
    pub(super) fn is_well(&self) -> bool {
        self.ready && self.trouble.is_none()
    }
}

/// Who writes for a controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Leader {
    pub(super) lease: String,
    pub(super) holder: String,
}

/// A part on this machine, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) says: String,
    pub(super) runs: bool,
}

/// What the API server says it is.
pub(super) async fn server(cluster: &Cluster) -> anyhow::Result<String> {
    let version = cluster.request(Method::GET, "/version", None).await.context("the API server does not answer")?;
    Ok(version.text("gitVersion").to_owned())
}

/// Every Node, with what the server knows of its proxy if it is one of ours.
pub(super) async fn nodes(cluster: &Cluster, objects: &Objects) -> Vec<NodeState> {
    // A server that is not ours has no such page.
    let page = cluster.request(Method::GET, NODES, None).await.unwrap_or_default();
    let told: BTreeMap<&str, &Value> = page.list("items").iter().map(|node| (node.text("name"), node)).collect();
    objects.nodes().map(|node| node_state(node, told.get(&*node.metadata.name).copied(), objects)).collect()
}

fn node_state(node: &fairlead_api::view::Node, told: Option<&Value>, objects: &Objects) -> NodeState {
    let name = node.metadata.name.to_string();
    let ready = node.status.conditions.iter().find(|condition| condition.kind == "Ready");
    let proxy = told.map(|told| told.at("proxy")).filter(|proxy| proxy.is_object());
    let error = proxy.map(|proxy| proxy.text("error")).filter(|error| !error.is_empty()).map(str::to_owned);
    let is_ready = node.is_ready();
    let silent = || ready.map_or("it has never said how it is", |condition| &condition.message).to_owned();
    NodeState {
        ready: is_ready,
        addresses: node.status.addresses.iter().map(|address| address.address.to_string()).collect(),
        pods: objects.pods().filter(|(_, pod)| pod.view.spec.node_name == name).count(),
        proxy: proxy.map(progress),
        trouble: error.or_else(|| (!is_ready).then(silent)),
        name,
    }
}

/// `nftables, in step`, or how far behind.
fn progress(proxy: &Value) -> String {
    let mode = proxy.text("mode");
    match proxy.at("behind").as_u64() {
        Some(0) => format!("{mode}, in step"),
        Some(behind) => format!("{mode}, {behind} revisions behind"),
        None => mode.to_owned(),
    }
}

/// Who holds Leases of controllers. Those of Nodes are heartbeats.
pub(super) async fn leaders(cluster: &Cluster) -> Vec<Leader> {
    let selection = Selection::all(&kinds::LEASE).in_namespace("kube-system");
    let list = cluster.list(&selection).await.map(|list| list.objects).unwrap_or_default();
    let leader = |object: &fairlead_cluster::Object| {
        let lease: Value = serde_json::from_slice(&object.json).ok()?;
        let holder = lease.at("spec").text("holderIdentity");
        let elected = lease.at("spec").at("leaseTransitions").is_number();
        (elected && !holder.is_empty())
            .then(|| Leader { lease: lease.at("metadata").text("name").to_owned(), holder: holder.to_owned() })
    };
    list.iter().filter_map(leader).collect()
}

/// Parts of this machine that tell how they do.
pub(super) async fn here(metrics: &str, balancer: &str) -> Vec<Part> {
    let mode = page::get(metrics, "/proxyMode").await;
    let report = page::get(balancer, PATH).await;
    let proxy = match mode {
        Ok(mode) => Part { name: "proxy", says: format!("mode {}", String::from_utf8_lossy(&mode).trim()), runs: true },
        Err(error) => Part { name: "proxy", says: format!("{error:#}"), runs: false },
    };
    let report = report.and_then(|body| Ok(serde_json::from_slice::<Report>(&body)?));
    let balancer = match report {
        Ok(report) => Part { name: "load balancers", says: announced(&report), runs: true },
        Err(error) => Part { name: "load balancers", says: format!("{error:#}"), runs: false },
    };
    vec![proxy, balancer]
}

/// How many load balancers there are, and which addresses this Node answers for.
fn announced(report: &Report) -> String {
    let own = |owner: &&fairlead_balancer::run::page::OwnerReport| owner.node.as_deref() == Some(&report.node);
    let owners = report.balancers.iter().flat_map(|one| &one.owners).filter(own);
    let mut addresses: Vec<&str> = owners.map(|owner| owner.address.as_str()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    match (report.balancers.len(), addresses.is_empty()) {
        (0, _) => "none asked for".to_owned(),
        (count, true) => format!("{count}, and this machine answers for none of their addresses"),
        (count, false) => format!("{count}; this machine answers for {}", addresses.join(", ")),
    }
}
