//! This machine as a Node, beside the server or far from it: it is in the API, answers for the cluster's names, and runs Pods.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use fairlead_api::{Look, kinds};
use fairlead_cluster::{Backoff, Cluster, Error, retry};
use fairlead_pods::Runner;
use fairlead_pods::agent::{self, Agent};
use fairlead_pods::api::Api;
use fairlead_pods::resolv::DnsSettings;
use fairlead_pods::routes;
use fairlead_runtime::Account;
use fairlead_server::auth::User;
use fairlead_server::{NodeDialer, Server};
use ipnet::IpNet;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::link;
use crate::config::{Config, Node};
use crate::ui::Here;

/// The file that says whom this machine asks for names.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// How many Pods may run here.
const MOST_PODS: u32 = 500;
/// Time between two attempts to listen for questions.
const DNS_RETRY: Duration = Duration::from_secs(1);
/// How long the first write to the API may take.
const PATIENCE: Backoff = Backoff { first: Duration::from_millis(50), most: Duration::from_secs(5), tries: 20 };

/// Makes the link with addresses of the cluster, and has it restored until told to stop. `None`:
/// this machine is no Node, or may not be one, which is said. An error that may go by itself ends
/// the start, because a process that went on would have no Pods and no DNS for as long as it lives.
pub(super) async fn prepare(config: &Config, stop: &CancellationToken) -> anyhow::Result<Option<Node>> {
    let Some(node) = config.node.clone() else { return Ok(None) };
    let addresses: Vec<IpAddr> = node.dns.iter().copied().chain(inside(config, Some(&node))).collect();
    match link::prepare(&addresses).await {
        Ok(()) => {
            // The proxy says at its start whether packets are passed on. What goes wrong here the runner says.
            let _ = fairlead_pods::forward();
            tokio::spawn(link::keep(addresses, stop.clone()));
            Ok(Some(node))
        }
        Err(error) if error.is_temporary() => Err(error).context("the link for addresses of the cluster"),
        Err(error) => {
            tracing::warn!(
                "no Pods run on this machine, and nobody answers for the cluster's names: {error}; run it as root"
            );
            Ok(None)
        }
    }
}

/// Where the Pods of this machine find the API, if the server listens at a loopback address only: at the first address of
/// their range, which no Pod gets. No other machine can have it: none can be a Node of such a server.
pub(super) fn inside(config: &Config, node: Option<&Node>) -> Option<IpAddr> {
    let alone = config.bind_address.is_loopback() && config.advertise_address.is_none();
    let same = |range: &&IpNet| range.addr().is_ipv4() == config.bind_address.is_ipv4();
    let range = node?.pod_ranges.iter().find(same).filter(|_| alone)?;
    range.hosts().find(|ip| *ip != range.network())
}

/// What the parts of a Node depend on besides what it is.
pub(super) struct Place {
    pub(super) data_dir: PathBuf,
    /// Of the API, as PEM, for Pods that call it.
    pub(super) authority: String,
    /// Where other machines reach this one.
    pub(super) addresses: Vec<IpAddr>,
    /// Where the API server reaches it; `None`: it is in this process.
    pub(super) port: Option<u16>,
    /// There may be other machines.
    pub(super) routes: bool,
    /// Where questions for names are counted.
    pub(super) names: fairlead_dns::Metrics,
    /// Where Pods are counted.
    pub(super) pods: fairlead_pods::Metrics,
    /// Account of the process.
    pub(super) account: Account,
}

/// Runs the parts of a Node beside the server until told to stop.
pub(super) async fn beside(
    server: &Server,
    node: Node,
    config: &Config,
    (authority, nodes): (String, NodeDialer),
    here: &Here,
    stop: CancellationToken,
) {
    let local = server.local(user());
    let cluster = Cluster::new(local.clone(), Arc::new(local));
    let place = Place {
        data_dir: config.data_dir.clone(),
        authority,
        addresses: addresses(super::reachable(config)),
        port: None,
        routes: super::reachable(config).is_some(),
        names: here.names.clone(),
        pods: here.pods.clone(),
        account: here.account.clone(),
    };
    let known = async {
        if node.dns.is_empty() {
            return;
        }
        let told = retry(PATIENCE, |error| !matches!(error, Error::Invalid(_)), || announce(&cluster, &node)).await;
        if let Err(error) = told {
            tracing::warn!("the Service kube-system/kube-dns cannot be made: {error}");
        }
    };
    let reach = |api: Api| nodes.add(&node.name, move || api.connect());
    tokio::join!(known, run(&cluster, &node, place, reach, stop));
}

/// Runs the parts of a Node until told to stop. `reach` is told how the server reaches its Pods.
pub(super) async fn run<T>(
    cluster: &Cluster,
    node: &Node,
    place: Place,
    reach: impl FnOnce(Api) -> T,
    stop: CancellationToken,
) {
    let names = answer(cluster, node, place.names.clone(), place.account.clone(), stop.clone());
    let kept = agent::run(cluster.managed_by("fairlead-agent"), described(node, &place), stop.clone());
    let routes = async {
        if place.routes {
            let cluster = cluster.managed_by("fairlead-routes");
            routes::run(cluster, node.name.clone(), node.pod_ranges.clone(), stop.clone()).await;
        }
    };
    let pods = async {
        if node.pods {
            let runner = Runner::measured(cluster, settings(node, &place), place.pods.clone());
            reach(Api::new(runner.host()).with_metrics(place.pods.clone()));
            runner.run(stop.clone()).await;
        }
    };
    tokio::join!(names, kept, routes, pods);
}

fn user() -> User {
    User {
        name: "system:fairlead-node".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    }
}

fn described(node: &Node, place: &Place) -> Agent {
    let own = place.addresses.first().copied();
    Agent {
        node: node.name.clone(),
        addresses: Arc::new(move || addresses(own)),
        labels: Vec::new(),
        port: place.port,
        pods: if node.pods { MOST_PODS } else { 0 },
    }
}

/// The addresses this machine has towards others, one of each family at most. One that is known goes first.
pub(super) fn addresses(own: Option<IpAddr>) -> Vec<IpAddr> {
    let any = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
    let further = any.into_iter().filter(|any| own.is_none_or(|own| own.is_ipv4() != any.is_ipv4()));
    own.into_iter().chain(further.filter_map(super::outward)).collect()
}

fn settings(node: &Node, place: &Place) -> fairlead_pods::Settings {
    let dns = DnsSettings {
        cluster_dns: node.dns.clone(),
        cluster_domain: node.domain.to_string().trim_end_matches('.').to_owned(),
        host: std::fs::read_to_string(RESOLV_CONF).ok(),
        ..DnsSettings::default()
    };
    let usual = fairlead_pods::Settings::new(&node.name, place.data_dir.join(super::PODS));
    fairlead_pods::Settings {
        dns,
        ca: Some(place.authority.clone()),
        pod_ranges: node.pod_ranges.clone(),
        users: node.pod_users,
        images: node.images.clone(),
        ..usual
    }
}

/// Answers for the cluster's names.
async fn answer(
    cluster: &Cluster,
    node: &Node,
    metrics: fairlead_dns::Metrics,
    account: Account,
    stop: CancellationToken,
) {
    if node.dns.is_empty() {
        return;
    }
    let settings = fairlead_dns::Settings::cluster(node.domain.clone(), node.dns.clone(), &upstreams(node));
    let settings = fairlead_dns::Settings { account, ..settings };
    let cluster = cluster.managed_by("fairlead-dns");
    let mut told = false;
    loop {
        let served = fairlead_dns::run_measured(Some(cluster.clone()), settings.clone(), metrics.clone(), stop.clone());
        let Err(error) = served.await else { return };
        if !std::mem::replace(&mut told, true) {
            tracing::warn!("nobody answers for the cluster's names on this machine, which is tried again: {error}");
        }
        if stop.run_until_cancelled(tokio::time::sleep(DNS_RETRY)).await.is_none() {
            return;
        }
    }
}

/// Whom to ask for other names: never ourselves, as a machine that uses this DNS server would have it.
fn upstreams(node: &Node) -> Vec<SocketAddr> {
    let said = node
        .upstreams
        .clone()
        .unwrap_or_else(|| fairlead_dns::nameservers(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default()));
    let others: Vec<SocketAddr> = said.into_iter().filter(|server| !node.dns.contains(&server.ip())).collect();
    if others.is_empty() {
        tracing::warn!(
            "names outside the cluster are not resolved: {RESOLV_CONF} names no other server; say --dns-upstream"
        );
    }
    others
}

/// Makes the Service by which people find the DNS server. Every Node answers at its address itself: no proxy is to lead
/// packets away from there.
async fn announce(cluster: &Cluster, node: &Node) -> Result<(), Error> {
    let port = |name: &str, protocol: &str| json!({"name": name, "port": 53, "protocol": protocol, "targetPort": 53});
    let addresses: Vec<String> = node.dns.iter().map(IpAddr::to_string).collect();
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kube-dns",
            "namespace": "kube-system",
            "labels": {
                "k8s-app": "kube-dns",
                "kubernetes.io/name": "CoreDNS",
                "service.kubernetes.io/service-proxy-name": "fairlead-dns",
            },
        },
        "spec": {
            "clusterIP": addresses.first(),
            "clusterIPs": addresses,
            "ipFamilyPolicy": if addresses.len() > 1 { "PreferDualStack" } else { "SingleStack" },
            "ports": [port("dns", "UDP"), port("dns-tcp", "TCP")],
        },
    });
    // A look before: that its addresses are taken, by itself, is said before that it exists.
    match cluster.get(&kinds::SERVICE, "kube-system", "kube-dns").await {
        Ok(there) => tell_difference(&there, &addresses),
        Err(Error::NotFound(_)) => drop(cluster.create(&kinds::SERVICE, &service).await?),
        Err(error) => return Err(error),
    }
    Ok(())
}

fn tell_difference(there: &Value, addresses: &[String]) {
    let has = there.at("spec").texts("clusterIPs");
    if has != addresses {
        tracing::warn!(
            ?has,
            ?addresses,
            "the Service kube-system/kube-dns has other addresses than this machine answers at"
        );
    }
}
