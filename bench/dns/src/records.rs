//! The records of a cluster as every server wants them, and the questions about them.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use fairlead_zone::Name;
use fairlead_zone::message::query;
use serde_json::{Value, json};

/// Namespaces the Services are in.
const NAMESPACES: usize = 20;
/// How many questions there are, asked over and over.
const QUESTIONS: usize = 8192;
const A: u16 = 1;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const ZONE: &str = "cluster.local.";

/// A question, and which code its answer has.
pub(crate) struct Question {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rcode: u8,
}

/// The address of a Service.
pub(crate) fn address(service: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 16, 0).to_bits() + u32::try_from(service).unwrap_or(0))
}

fn address6(service: usize) -> Ipv6Addr {
    Ipv6Addr::from_bits("fd00:10::1:0".parse::<Ipv6Addr>().map_or(0, Ipv6Addr::to_bits) + service as u128)
}

/// The name of a Service.
pub(crate) fn name(service: usize) -> String {
    format!("service-{service}.{}.svc.{ZONE}", namespace(service))
}

/// The namespace of a Service.
pub(crate) fn namespace(service: usize) -> String {
    format!("team-{}", service % NAMESPACES)
}

/// The namespaces, as objects.
pub(crate) fn namespaces() -> impl Iterator<Item = Value> {
    (0..NAMESPACES)
        .map(|number| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(number)}}))
}

/// A Service of both families with a named port.
pub(crate) fn object(service: usize) -> Value {
    let ips = [address(service).to_string(), address6(service).to_string()];
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": format!("service-{service}"), "namespace": namespace(service)},
        "spec": {
            "type": "ClusterIP", "clusterIP": ips[0], "clusterIPs": ips,
            "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        },
    })
}

/// Everything as manifests.
pub(crate) fn manifests(services: usize) -> String {
    let objects = namespaces().chain((0..services).map(object));
    objects.map(|object| format!("---\n{object}\n")).collect()
}

/// Everything as a zone file.
pub(crate) fn zone(services: usize) -> String {
    let mut text = format!(
        "$ORIGIN {ZONE}\n@ 30 SOA ns.dns hostmaster 1 7200 1800 86400 30\n@ 30 NS ns.dns\nns.dns 30 A 10.0.0.10\n"
    );
    for service in 0..services {
        let (name, v4, v6) = (name(service), address(service), address6(service));
        let _ = writeln!(text, "{name} 30 A {v4}\n{name} 30 AAAA {v6}\n_http._tcp.{name} 30 SRV 0 100 80 {name}");
    }
    text
}

/// The mix: 60 % names that exist, half of them for A and half for AAAA, 35 % misses on a search path, 5 % SRV.
pub(crate) fn questions(services: usize) -> anyhow::Result<Vec<Question>> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..QUESTIONS).map(|_| one(services, &mut random)).collect()
}

fn one(services: usize, random: &mut fastrand::Rng) -> anyhow::Result<Question> {
    let service = random.usize(..services.max(1));
    let (text, rtype, rcode) = match random.u8(..100) {
        0..30 => (name(service), A, 0),
        30..60 => (name(service), AAAA, 0),
        60..65 => (format!("_http._tcp.{}", name(service)), SRV, 0),
        _ => (miss(service, random), if random.bool() { A } else { AAAA }, 3),
    };
    let name: Name = text.parse().map_err(|error| anyhow::anyhow!("{text}: {error:?}"))?;
    Ok(Question { bytes: query(0, &name, rtype, None), rcode })
}

/// What a Pod asks for on its way to a name that is complete.
fn miss(service: usize, random: &mut fastrand::Rng) -> String {
    let own = namespace(random.usize(..));
    match random.u8(..4) {
        0 => format!("api.example.com.{own}.svc.{ZONE}"),
        1 => format!("api.example.com.svc.{ZONE}"),
        2 => format!("api.example.com.{ZONE}"),
        _ => format!("service-{service}.{}.{own}.svc.{ZONE}", namespace(service)),
    }
}

#[cfg(test)]
mod tests;
