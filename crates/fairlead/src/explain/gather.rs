//! What does this machine see of a Service? Sockets of Pods, rules and parameters of the kernel, answers of the DNS server, a packet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_cluster::Cluster;
use fairlead_explain::{Component, Evidence, Forwarding, From, Objects, Pod, Rules, Socket};
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::nft::{Connection, Expr, Policy, Verdict};
use fairlead_kernel::sockets::{self, Listening, Transport};
use fairlead_kernel::sysctl;
use fairlead_plan::{FrontendKey, Plan};
use fairlead_proxy::Mode;
use fairlead_proxy::held::{self, Presence};

use super::here::{self, Here};
use super::{Ask, names, packet, parts};

/// More Pods of one Service are not looked at: they are all alike.
const MOST_PODS: usize = 50;
/// How the names of our tables begin.
pub(super) const OURS: &str = "fairlead";

/// Everything that can be seen.
pub(super) async fn evidence(cluster: &Cluster, objects: &Objects, ask: &Ask, here: Result<&Here, String>) -> Evidence {
    let mut evidence = Evidence::default();
    let planned = packet::planned(cluster, objects, ask, here.as_ref().ok().copied()).await;
    if let Some(planned) = &planned {
        evidence.decisions = planned.decisions.clone();
        evidence.others = planned.others.clone();
    }
    let service = &ask.question.service;
    evidence.controller = parts::controller(cluster, objects, service).await;
    evidence.balancer = parts::balancer(cluster, objects, service, here.is_ok()).await;
    let here = match here {
        Ok(here) => here,
        Err(why) => {
            evidence.blind = Some(why);
            return evidence;
        }
    };
    let pods: Vec<_> = objects.pods_of(service).filter(|pod| pod.view.spec.node_name == here.node).cloned().collect();
    evidence.sockets = blocking(move || pods.iter().take(MOST_PODS).filter_map(|pod| listening(pod)).collect()).await;
    let client = match client_node(objects, &ask.question.from) {
        Some(node) if node != here.node => {
            evidence.blind = Some(format!("the client is on Node {node}, and this is {}: run it there", here.node));
            return evidence;
        }
        _ => Client::of(objects, &ask.question.from),
    };
    names::look(objects, ask, &client, &mut evidence).await;
    let keys = planned.as_ref().map(|planned| frontends(planned.world.plan(), service)).unwrap_or_default();
    let held = blocking(move || rules(&keys)).await;
    evidence.proxy = proxy(cluster, &here.node, held.as_ref()).await;
    evidence.rules = held;
    evidence.forwarding = Some(forwarding());
    let droppers = blocking(droppers).await;
    if droppers.as_ref().is_some_and(Vec::is_empty) {
        evidence.foreign = Some(Vec::new());
    }
    if ask.live {
        packet::send(&ask.question.from, &client, &mut evidence).await;
    }
    evidence.blind = blind(&evidence, droppers.unwrap_or_default(), ask.live);
    evidence
}

/// What stays unknown, and how more would be known.
fn blind(evidence: &Evidence, droppers: Vec<String>, live: bool) -> Option<String> {
    if live || evidence.foreign.is_some() {
        return None;
    }
    let tables = droppers.join(", ");
    let tables = if tables.is_empty() { "rules of others".to_owned() } else { tables };
    Some(format!("{tables} may drop packets; --live sends one and tells"))
}

/// The client on this machine.
pub(super) struct Client {
    /// The Pod, if it is one.
    pub(super) pod: Option<(Key, std::sync::Arc<Pod>)>,
    /// The file of its network namespace; `None`: the machine itself, or it is not found.
    pub(super) namespace: Option<std::path::PathBuf>,
}

impl Client {
    fn of(objects: &Objects, from: &From) -> Client {
        let From::Pod(key) = from else { return Client { pod: None, namespace: None } };
        let pod = objects.pod(key).cloned();
        let namespace = pod.as_deref().and_then(here::namespace);
        Client { pod: pod.map(|pod| (key.clone(), pod)), namespace }
    }

    /// Whether packets can be sent as the client sends them.
    pub(super) fn is_at_hand(&self, from: &From) -> bool {
        match from {
            From::Pod(_) => self.namespace.is_some(),
            From::Cluster | From::Node(_) => true,
            From::Outside(_) => false,
        }
    }
}

/// The Node the client is on, if that is said.
fn client_node<'a>(objects: &'a Objects, from: &'a From) -> Option<&'a str> {
    match from {
        From::Pod(key) => objects.pod(key).map(|pod| pod.view.spec.node_name.as_str()).filter(|node| !node.is_empty()),
        From::Node(node) => node.as_deref(),
        From::Cluster | From::Outside(_) => None,
    }
}

/// What may take long without yielding.
pub(super) async fn blocking<T: Send + Default + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

/// What listens in a Pod; `None`: that cannot be seen.
fn listening(pod: &Pod) -> Option<(Key, Vec<Socket>)> {
    let meta = &pod.view.metadata;
    let namespace = Namespace::at(&here::namespace(pod)?).ok()?;
    let found = namespace.run(sockets::listening).ok()?.ok()?;
    // Which program it is matters less than that it listens.
    let programs = sockets::programs(&namespace.processes().unwrap_or_default());
    let found = found.into_iter().map(|found| socket(found, programs.get(&found.inode)));
    Some((Key::new(meta.namespace.as_str(), meta.name.as_str()), found.collect()))
}

fn socket(found: Listening, program: Option<&String>) -> Socket {
    let protocol = match found.transport {
        Transport::Tcp => Protocol::Tcp,
        Transport::Udp => Protocol::Udp,
    };
    Socket { address: found.at, protocol, only_v6: false, program: program.cloned() }
}

/// What of a Service must be in the kernel.
fn frontends(plan: &Plan, service: &Key) -> Vec<FrontendKey> {
    plan.frontends().filter(|frontend| *frontend.port.service == *service).map(|frontend| frontend.key).collect()
}

/// What is there. Without a mode: nothing at all of a proxy, neither ours nor another.
fn rules(keys: &[FrontendKey]) -> Option<Rules> {
    let Some(held) = held::held(keys).ok()? else {
        // Where somebody else serves Services, it is theirs to be right.
        return (!has_foreign_proxy()).then(Rules::default);
    };
    let leads = |(key, presence): (FrontendKey, Presence)| match presence {
        Presence::Absent => None,
        Presence::Leads(to) => Some((key, Some(to))),
        Presence::Unknown => Some((key, None)),
    };
    let frontends: BTreeMap<FrontendKey, Option<BTreeSet<SocketAddr>>> =
        held.frontends.into_iter().filter_map(leads).collect();
    Some(Rules { mode: held.mode.as_str().to_owned(), frontends })
}

/// The proxy that made the rules, or should have.
async fn proxy(cluster: &Cluster, node: &str, rules: Option<&Rules>) -> Option<Component> {
    let Some(rules) = rules else { return parts::told(cluster, node).await };
    let told = parts::proxy(cluster, node, rules.mode == Mode::Nftables.as_str()).await;
    let none = || {
        let error = Some("the kernel has no rules of it".to_owned());
        Component { error, ..parts::stopped(node) }
    };
    told.or_else(|| rules.mode.is_empty().then(none))
}

/// Whether rules of kube-proxy are there.
fn has_foreign_proxy() -> bool {
    let Ok(mut connection) = Connection::open() else { return false };
    let tables = connection.tables().unwrap_or_default();
    tables.iter().any(|table| {
        let chains = || connection_chains(&table.value);
        table.value.name == "kube-proxy" || chains().iter().any(|name| name.starts_with("KUBE-SERVICES"))
    })
}

fn connection_chains(table: &fairlead_kernel::nft::Table) -> Vec<String> {
    let chains = Connection::open().and_then(|mut connection| connection.chains(table)).unwrap_or_default();
    chains.into_iter().map(|chain| chain.value.name).collect()
}

fn forwarding() -> Forwarding {
    let is_on = |name: &str| sysctl::read(name).ok().map(|value| value != "0");
    Forwarding { v4: is_on("net.ipv4.ip_forward"), v6: is_on("net.ipv6.conf.all.forwarding") }
}

/// Tables of others with rules that may drop packets; `None`: not all of them can be seen.
fn droppers() -> Option<Vec<String>> {
    use fairlead_kernel::iptables::{Iptables, Version};
    if [Version::V4, Version::V6].iter().any(|version| !Iptables::legacy_tables(*version).is_empty()) {
        return None;
    }
    let mut connection = Connection::open().ok()?;
    let mut found = Vec::new();
    for table in connection.tables().ok()?.into_iter().map(|listed| listed.value) {
        if table.name.starts_with(OURS) {
            continue;
        }
        let by_policy = connection
            .chains(&table)
            .ok()?
            .iter()
            .any(|chain| chain.value.base.as_ref().is_some_and(|base| base.policy == Policy::Drop));
        let drops = |expr: &Expr| matches!(expr, Expr::Verdict(Verdict::Drop) | Expr::Reject(_) | Expr::Other(_));
        let by_rule = connection.rules(&table).ok()?.iter().any(|rule| rule.value.exprs.iter().any(drops));
        if by_policy || by_rule {
            found.push(format!("table {}", table.name));
        }
    }
    Some(found)
}
