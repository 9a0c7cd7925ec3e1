//! Are the ports free that Fairlead and Services want?

use std::net::{IpAddr, SocketAddr};

use super::super::facts::{Facts, Listener, NodePort};
use super::super::{Check, State};

const AREA: &str = "Ports";

/// A port of our own on 127.0.0.1.
struct Own {
    port: u16,
    what: &'static str,
    /// How to use another.
    flag: &'static str,
    /// Whose it is on machines where Fairlead is a part of somebody else's cluster.
    theirs: Option<&'static str>,
}

const OWN: &[Own] = &[
    Own { port: 6443, what: "the API", flag: "--secure-port", theirs: Some("kube-apiserver") },
    Own { port: 10256, what: "the proxy's health", flag: "--healthz-bind-address", theirs: None },
    Own { port: 10249, what: "the proxy's metrics", flag: "--metrics-bind-address", theirs: None },
    Own { port: 10253, what: "how load balancers do", flag: "--balancer-bind-address", theirs: None },
];
const DNS: u16 = 53;

pub(super) fn check(facts: &Facts) -> Vec<Check> {
    let mut checks: Vec<Check> = OWN.iter().filter_map(|own| taken(facts, own)).collect();
    checks.extend(dns(facts));
    checks.extend(node_ports(facts));
    if checks.is_empty() {
        checks.push(Check::ok(AREA, "those Fairlead wants are free, or its own"));
    }
    checks
}

fn taken(facts: &Facts, Own { port, what, flag, theirs }: &Own) -> Option<Check> {
    let here = |one: &&Listener| one.protocol == "TCP" && one.address.port() == *port && takes_loopback(one.address);
    let other = facts.listeners.iter().find(here).filter(|one| !one.is_ours())?;
    let finding = format!("port {port}, for {what}, is taken by {}", other.who());
    if theirs.is_some_and(|name| other.is(name)) {
        let remedy = format!("an API of Fairlead's own would need another port here: {flag}");
        return Some(Check::of(AREA, State::Note, finding, &[&remedy]));
    }
    Some(judged(facts, other, finding, &format!("stop it, or use another port: {flag}")))
}

/// Something that does not work with another program there. Who cannot be seen may be one of ours.
fn judged(facts: &Facts, other: &Listener, finding: String, remedy: &str) -> Check {
    if other.program.is_some() {
        return Check::of(AREA, State::Bad, finding, &[remedy]);
    }
    let look = match facts.root {
        true => {
            format!("ss -lnp 'sport = :{}'    # shows who it is, called outside of any container", other.address.port())
        }
        false => "sudo fairlead doctor".to_owned(),
    };
    Check::of(AREA, State::Unknown, finding, &[&look])
}

fn takes_loopback(address: SocketAddr) -> bool {
    address.ip().is_unspecified() || address.ip().is_loopback()
}

/// Who listens at every address leaves none for the cluster's DNS.
fn dns(facts: &Facts) -> Option<Check> {
    let everywhere = |one: &&Listener| one.address.port() == DNS && one.address.ip().is_unspecified();
    let other = facts.listeners.iter().find(everywhere).filter(|one| !one.is_ours())?;
    let finding = format!("port 53 is taken at every address by {}: the cluster's DNS has no place", other.who());
    let remedy = "let it listen at some addresses only (`bind-interfaces` of dnsmasq, `listen-on` of BIND)";
    Some(judged(facts, other, finding, remedy))
}

/// A node port leads to a Service although a process listens there: that process is not reached any more.
fn node_ports(facts: &Facts) -> Vec<Check> {
    let Some(ports) = &facts.node_ports else { return Vec::new() };
    let taken = |port: &NodePort| {
        let same = |one: &&Listener| one.protocol == port.protocol && one.address.port() == port.port;
        let outside = |one: &&Listener| !one.address.ip().is_loopback();
        let other = facts.listeners.iter().filter(same).filter(outside).find(|one| !one.is_ours())?;
        let finding = format!(
            "node port {}/{} of Service {} is also where {} listens ({}), which clients do not reach any more",
            port.port,
            port.protocol,
            port.service,
            other.who(),
            shown(other.address.ip())
        );
        Some(judged(facts, other, finding, "stop it, or give the Service another node port"))
    };
    ports.iter().filter_map(taken).collect()
}

fn shown(ip: IpAddr) -> String {
    if ip.is_unspecified() { "at every address".to_owned() } else { format!("at {ip}") }
}
