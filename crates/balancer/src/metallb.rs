//! MetalLB's objects on a real cluster: IPAddressPools are pools, L2Advertisements say which Nodes and interfaces announce them.
//! A cluster without them is the usual case.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::kinds::{Kind, Rules, Traits, Verb};
use fairlead_api::selector::LabelSelector;
use fairlead_api::view::{Meta, Namespace, View};
use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Error, Method, Mirror};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::pools::{Pool, Range};
use crate::spec::Scheme;

#[cfg(test)]
mod tests;

/// How often a cluster without MetalLB's kinds is asked whether it has them now.
const ASK: Duration = Duration::from_secs(60);
/// Where they are served.
const GROUP: &str = "/apis/metallb.io/v1beta1";
/// The label of a pool that says whom it is for, as in our own configuration.
const SCHEME: &str = "fairlead.dev/scheme";

/// What MetalLB's objects say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Pools.
    pub pools: Vec<Pool>,
    /// How they are announced; a pool of MetalLB's without one is not.
    pub advertisements: Vec<Advertisement>,
    /// What of them makes no sense.
    pub problems: Vec<String>,
}

/// Who announces the addresses of some pools.
#[derive(Debug, Clone, PartialEq)]
pub struct Advertisement {
    /// The names of those pools.
    pub pools: Vec<String>,
    /// Nodes that one of these selects; none: all.
    pub nodes: Vec<LabelSelector>,
    /// On these interfaces; none: all.
    pub interfaces: Vec<String>,
}

impl Advertisement {
    /// Whether a Node with these labels announces.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        self.nodes.is_empty() || self.nodes.iter().any(|selector| selector.matches(label))
    }
}

/// Follows MetalLB's objects, if the cluster has such kinds, until told to stop.
pub async fn follow(cluster: Cluster, found: watch::Sender<Arc<Found>>, stop: CancellationToken) {
    let followed = async {
        while !has_kinds(&cluster).await {
            tokio::time::sleep(ASK).await;
        }
        tracing::info!("pools of addresses are read from MetalLB's objects, too");
        let mut mirror =
            Mirror::builder(&cluster).with::<IpAddressPool>().with::<L2Advertisement>().with::<Namespace>().build();
        mirror.sync().await;
        loop {
            let new = read(&mirror);
            for problem in new.problems.iter().filter(|problem| !found.borrow().problems.contains(problem)) {
                tracing::warn!("{problem}");
            }
            found.send_if_modified(|old| {
                let news = **old != new;
                if news {
                    *old = Arc::new(new);
                }
                news
            });
            mirror.next().await;
        }
    };
    stop.run_until_cancelled(followed).await;
}

async fn has_kinds(cluster: &Cluster) -> bool {
    match cluster.request(Method::GET, GROUP, None).await {
        Ok(list) => {
            let has = |name: &str| list.list("resources").iter().any(|resource| resource.text("name") == name);
            has("ipaddresspools") && has("l2advertisements")
        }
        Err(error) => {
            if !matches!(error, Error::NotFound(_)) {
                tracing::debug!(%error, "cannot ask for MetalLB's kinds");
            }
            false
        }
    }
}

fn read(mirror: &Mirror) -> Found {
    let namespaces: Vec<Arc<Namespace>> = mirror.all::<Namespace>().cloned().collect();
    let pools: Vec<Arc<IpAddressPool>> = mirror.all::<IpAddressPool>().cloned().collect();
    let advertisements: Vec<Arc<L2Advertisement>> = mirror.all::<L2Advertisement>().cloned().collect();
    combine(&pools, &advertisements, &namespaces)
}

/// What the objects say together.
fn combine(
    pools: &[Arc<IpAddressPool>],
    advertisements: &[Arc<L2Advertisement>],
    namespaces: &[Arc<Namespace>],
) -> Found {
    let mut found = Found::default();
    for object in pools {
        match pool(object, namespaces) {
            Ok(pool) => found.pools.push(pool),
            Err(why) => found.problems.push(format!("IPAddressPool {}: {why}", object.metadata.name)),
        }
    }
    for object in advertisements {
        match advertisement(object, pools) {
            Ok(one) => found.advertisements.push(one),
            Err(why) => found.problems.push(format!("L2Advertisement {}: {why}", object.metadata.name)),
        }
    }
    found
}

fn pool(object: &IpAddressPool, namespaces: &[Arc<Namespace>]) -> Result<Pool, String> {
    let spec = &object.spec;
    let ranges = spec.addresses.iter().map(|text| text.parse::<Range>().map_err(|error| error.to_string()));
    let scheme = match object.metadata.labels.get(SCHEME).map(String::as_str) {
        Some("internal") => Scheme::Internal,
        _ => Scheme::Public,
    };
    let allocation = spec.service_allocation.clone().unwrap_or_default();
    let chosen = selectors(&allocation.namespace_selectors)?;
    let selected = namespaces.iter().filter(|namespace| matches(&chosen, &namespace.metadata.labels));
    let mut names = allocation.namespaces;
    names.extend(selected.map(|namespace| namespace.metadata.name.clone()));
    if names.is_empty() && !chosen.is_empty() {
        // Selectors that select nothing do not mean everything. No namespace has such a name.
        names.push(String::new());
    }
    Ok(Pool {
        namespaces: names,
        selectors: selectors(&allocation.service_selectors)?,
        auto_assign: spec.auto_assign.unwrap_or(true),
        avoid_buggy: spec.avoid_buggy_ips,
        priority: allocation.priority,
        ..Pool::new(&*object.metadata.name, ranges.collect::<Result<_, _>>()?, scheme)
    })
}

fn advertisement(object: &L2Advertisement, pools: &[Arc<IpAddressPool>]) -> Result<Advertisement, String> {
    let spec = &object.spec;
    let chosen = selectors(&spec.ip_address_pool_selectors)?;
    let all = spec.ip_address_pools.is_empty() && chosen.is_empty();
    let meant = |pool: &&Arc<IpAddressPool>| {
        all || spec.ip_address_pools.contains(&pool.metadata.name) || matches(&chosen, &pool.metadata.labels)
    };
    Ok(Advertisement {
        pools: pools.iter().filter(meant).map(|pool| pool.metadata.name.clone()).collect(),
        nodes: selectors(&spec.node_selectors)?,
        interfaces: spec.interfaces.clone(),
    })
}

fn matches(selectors: &[LabelSelector], labels: &BTreeMap<String, String>) -> bool {
    selectors.iter().any(|selector| selector.matches(|key| labels.get(key).map(String::as_str)))
}

fn selectors(objects: &[Value]) -> Result<Vec<LabelSelector>, String> {
    objects.iter().map(|object| LabelSelector::parse(&text(object)).map_err(|failure| failure.message)).collect()
}

/// A label selector of an object as it is written in URLs.
fn text(selector: &Value) -> String {
    let labels = selector.map("matchLabels").into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = selector.list("matchExpressions").iter().map(|expression| {
        let (key, values) = (expression.text("key"), expression.texts("values").join(","));
        match expression.text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            // A mistake, and read as one.
            other => format!("{key} {other} ({values})"),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

/// A pool of addresses of MetalLB's.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct IpAddressPool {
    metadata: Meta,
    spec: IpAddressPoolSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct IpAddressPoolSpec {
    addresses: Vec<String>,
    auto_assign: Option<bool>,
    #[serde(rename = "avoidBuggyIPs")]
    avoid_buggy_ips: bool,
    service_allocation: Option<ServiceAllocation>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceAllocation {
    priority: u32,
    namespaces: Vec<String>,
    namespace_selectors: Vec<Value>,
    service_selectors: Vec<Value>,
}

/// Who announces pools on the LAN.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct L2Advertisement {
    metadata: Meta,
    spec: L2AdvertisementSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct L2AdvertisementSpec {
    ip_address_pools: Vec<String>,
    ip_address_pool_selectors: Vec<Value>,
    node_selectors: Vec<Value>,
    interfaces: Vec<String>,
}

impl View for IpAddressPool {
    const KIND: &'static Kind = &IP_ADDRESS_POOL;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl View for L2Advertisement {
    const KIND: &'static Kind = &L2_ADVERTISEMENT;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

static IP_ADDRESS_POOL: Kind = kind("IPAddressPool", "ipaddresspools");
static L2_ADVERTISEMENT: Kind = kind("L2Advertisement", "l2advertisements");

/// A kind of MetalLB's. Only its address counts: our own server does not serve it.
const fn kind(kind: &'static str, resource: &'static str) -> Kind {
    Kind {
        group: "metallb.io",
        version: "v1beta1",
        kind,
        resource,
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: &[Verb::Get, Verb::List, Verb::Watch],
        subresources: &[],
        schema: kinds::CONFIG_MAP.schema,
        rules: &Rules::PLAIN,
        traits: Traits::PLAIN,
        store_prefix: "",
        conversion: None,
    }
}
