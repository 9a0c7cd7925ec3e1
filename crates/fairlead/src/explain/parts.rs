//! Do the parts run that a Service needs: the proxy of this machine, whoever makes EndpointSlices, whoever gives addresses to load
//! balancers? They may be anywhere, or nowhere by intention, so only what is certain is told, and the rest is not known.

use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::ServiceType;
use fairlead_api::{Look, kinds};
use fairlead_balancer::run::LEASE as BALANCER;
use fairlead_cluster::Cluster;
use fairlead_explain::{Balancer, Cause, Component, Objects, check};
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::sockets;
use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use super::gather::blocking;
use crate::config::{LEASE as CONTROL, METRICS, PAGE};
use crate::lb::look;
use crate::page;

/// Where the server tells how the proxies of Nodes do.
const NODES: &str = "/fairlead/v1/nodes";
/// Where a proxy says whether it is well, unless it was told otherwise.
const HEALTH: &str = "127.0.0.1:10256";
/// How long the server is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Whoever holds a Lease renews it more often than that, unless it was told otherwise.
const AGAIN: Duration = Duration::from_secs(3);
/// The number of nftables' protocol among those of netlink.
const NETFILTER: &str = "12";

/// The proxy of a Node that is this machine; `None`: nobody knows how it does. `nftables` says whether the kernel has rules of
/// that mode.
pub(super) async fn proxy(cluster: &Cluster, node: &str, nftables: bool) -> Option<Component> {
    if let Some(told) = told(cluster, node).await {
        return Some(told);
    }
    let name = name(node);
    let (health, mode) = tokio::join!(page::get(HEALTH, "/healthz"), page::get(METRICS, "/proxyMode"));
    if health.is_ok() || mode.is_ok() {
        return Some(Component { alive: true, name, ..Component::default() });
    }
    // It may be told to listen elsewhere or nowhere, but not to do without the kernel.
    (nftables && !blocking(talks_to_nftables).await?).then(|| stopped(node))
}

/// A proxy that does not run.
pub(super) fn stopped(node: &str) -> Component {
    Component {
        alive: false,
        name: name(node),
        start: Some("fairlead proxy --kubeconfig FILE".to_owned()),
        ..Component::default()
    }
}

/// What the server says of the proxy of a Node. A server that is not ours says nothing, and neither does ours of proxies that are
/// processes of their own.
pub(super) async fn told(cluster: &Cluster, node: &str) -> Option<Component> {
    let page = cluster.request(Method::GET, NODES, None);
    let page = tokio::time::timeout(PATIENCE, page).await.ok()?.ok()?;
    let own = page.list("items").iter().find(|item| item.text("name") == node)?;
    let proxy = Some(own.at("proxy")).filter(|proxy| proxy.is_object())?;
    let error = Some(proxy.text("error").to_owned()).filter(|error| !error.is_empty());
    Some(Component { alive: true, name: name(node), behind: proxy.at("behind").as_u64(), error, start: None })
}

fn name(node: &str) -> String {
    format!("the proxy of Node {node}")
}

/// Whether a process that may be a proxy has a way to nftables in the network namespace of this one. A proxy of mode nftables always
/// has. `None`: that cannot be seen.
fn talks_to_nftables() -> Option<bool> {
    let mut open = netfilter(&std::fs::read_to_string("/proc/thread-self/net/netlink").ok()?);
    let others = if open.is_empty() { Vec::new() } else { Namespace::current().ok()?.processes().ok()? };
    let is_other = |pid: &u32| is_no_proxy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default());
    let held = sockets::programs(&others.into_iter().filter(is_other).collect::<Vec<_>>());
    open.retain(|socket| !held.contains_key(socket));
    Some(!open.is_empty())
}

/// The numbers of the sockets for nftables in a list of netlink sockets, but for the kernel's own.
fn netfilter(sockets: &str) -> Vec<u64> {
    let number = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (protocol, process, number) = (words.get(1)?, words.get(2)?, words.last()?);
        (*protocol == NETFILTER && *process != "0").then(|| number.parse().ok())?
    };
    sockets.lines().filter_map(number).collect()
}

/// Whether a command line is one of Fairlead without a proxy. Of other programs nobody knows.
fn is_no_proxy(words: &[u8]) -> bool {
    let words = String::from_utf8_lossy(words);
    let words: Vec<&str> = words.split('\0').collect();
    let is_ours = words.first().is_some_and(|program| program.rsplit('/').next() == Some("fairlead"));
    let told = words.contains(&"--proxy-mode=none") || words.windows(2).any(|two| two == ["--proxy-mode", "none"]);
    is_ours && (told || words.get(1) == Some(&"balancer"))
}

/// Whoever makes EndpointSlices, if those of the Service are not right: only then it matters who should have.
pub(super) async fn controller(cluster: &Cluster, objects: &Objects, service: &Key) -> Option<Component> {
    let wrong =
        check(service, objects).findings().any(|it| matches!(it.cause, Cause::SlicesMissing | Cause::SlicesStale));
    if !wrong || !is_silent(cluster, CONTROL).await {
        return None;
    }
    Some(Component {
        alive: false,
        name: format!("whoever holds the Lease {}/{}", CONTROL.0, CONTROL.1),
        start: Some("fairlead control --kubeconfig FILE".to_owned()),
        ..Component::default()
    })
}

/// Whoever gives addresses to load balancers. Those of this machine tell on their page; of others there is a Lease, which matters
/// only for a Service that waits.
pub(super) async fn balancer(cluster: &Cluster, objects: &Objects, service: &Key, here: bool) -> Option<Balancer> {
    if here && let Ok(report) = look::report(PAGE).await {
        let classes = [report.serves.class].into_iter().chain(report.serves.default.then(String::new)).collect();
        return Some(Balancer { alive: true, classes, pools: Some(report.serves.pools) });
    }
    let waits = objects.service(service).is_some_and(|service| {
        service.spec.kind == ServiceType::LoadBalancer && service.status.load_balancer.ingress.is_empty()
    });
    (waits && is_silent(cluster, BALANCER).await).then(Balancer::default)
}

/// Whether who holds a Lease has not renewed it for longer than it is good for, and does not while it is looked at: clocks differ.
/// Who ends in order gives it back, and may have been replaced by somebody who needs none.
async fn is_silent(cluster: &Cluster, lease: (&str, &str)) -> bool {
    let seen = async || renewed(&cluster.get(&kinds::LEASE, lease.0, lease.1).await.ok()?);
    let Some((time, good_for)) = seen().await else { return false };
    if Timestamp::now().duration_since(time) < good_for {
        return false;
    }
    tokio::time::sleep(AGAIN).await;
    seen().await.is_some_and(|(again, _)| again == time)
}

/// When a Lease that somebody holds was renewed, and for how long that is good.
fn renewed(lease: &Value) -> Option<(Timestamp, jiff::SignedDuration)> {
    let spec = lease.at("spec");
    let time = spec.text("renewTime").parse().ok()?;
    let good_for = jiff::SignedDuration::from_secs(spec.at("leaseDurationSeconds").as_i64()?);
    (!spec.text("holderIdentity").is_empty()).then_some((time, good_for))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_process_that_talks_to_nftables_is_seen() {
        let kernel = "sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode\n\
                      0000000083f4e6a8 0   4242 00000000 0 0 0 2 0 11\n\
                      00000000f3a1b2c3 12  0    00000000 0 0 0 2 0 12\n";
        let process = "00000000f3a1b2c4 12  4242 00000000 0 0 0 2 0 13\n";
        assert!(netfilter(kernel).is_empty());
        assert_eq!(netfilter(&format!("{kernel}{process}")), [13]);
        assert!(netfilter("").is_empty());
    }

    #[test]
    fn only_what_is_known_to_be_no_proxy_is_taken_for_none() {
        for (words, expected) in [
            ("/usr/bin/fairlead balancer --pool 192.0.2.0/28", true),
            ("fairlead up --proxy-mode none", true),
            ("fairlead up --proxy-mode=none -v debug", true),
            ("fairlead up --proxy-mode nftables", false),
            ("fairlead up", false),
            ("fairlead proxy", false),
            ("fairlead --balancer", false),
            ("kube-proxy --proxy-mode=none", false),
            ("nft -i", false),
            ("", false),
        ] {
            assert_eq!(is_no_proxy(words.replace(' ', "\0").as_bytes()), expected, "{words}");
        }
    }

    #[test]
    fn a_lease_that_somebody_holds_tells_when_it_was_renewed() {
        let lease = |holder: &str, time: &str| json!({"spec": {"holderIdentity": holder, "renewTime": time, "leaseDurationSeconds": 15}});
        let time = "2026-01-02T03:04:05.000006Z";
        let held = renewed(&lease("one", time));
        assert_eq!(
            held.map(|(at, good_for)| (at.to_string(), good_for.as_secs())),
            Some(("2026-01-02T03:04:05.000006Z".to_owned(), 15))
        );
        for lease in [lease("", time), lease("one", ""), lease("one", "yesterday"), json!({}), json!({"spec": {}})] {
            assert_eq!(renewed(&lease), None, "{lease}");
        }
    }
}
