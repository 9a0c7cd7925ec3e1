//! Endpoints that joined, left, or are in another state now; read out of EndpointSlices and Endpoints alike.

use std::collections::BTreeMap;

use fairlead_api::Look;
use serde_json::Value;

use super::fields;
use crate::Followed;

/// A port of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// Empty if it has none.
    pub name: String,
    /// The number.
    pub port: i64,
    /// `TCP`.
    pub protocol: String,
}

/// One endpoint of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) address: String,
    pub(crate) ports: Vec<Port>,
    pub(crate) ready: bool,
    pub(crate) serving: bool,
    pub(crate) terminating: bool,
    pub(crate) node: String,
    pub(crate) zone: String,
    /// `Pod web-1`; empty if it is nobody's.
    pub(crate) target: String,
}

pub(super) fn lines(kind: Followed, before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let read = |object: Option<&Value>| by_address(object.map(|object| endpoints_of(kind, object)).unwrap_or_default());
    let (old, new) = (read(before), read(after));
    let mut lines = Vec::new();
    for (address, endpoint) in &old {
        match new.get(address) {
            None => lines.push(format!("{} left", endpoint.named())),
            Some(now) => lines.extend(now.since(endpoint)),
        }
    }
    for (_, endpoint) in new.iter().filter(|(address, _)| !old.contains_key(*address)) {
        lines.push(format!("{} joined{}", endpoint.named(), endpoint.unfit()));
    }
    if before.is_none() && lines.is_empty() {
        lines.push("no endpoints yet".to_owned());
    }
    if let (Some(before), Some(after)) = (before, after) {
        lines.extend(fields::changed(before, after, &["endpoints", "subsets", "ports"]));
        if lines.is_empty() {
            lines.extend(fields::changed(before, after, &[]));
        }
    }
    lines
}

/// The endpoints an object speaks of.
pub(crate) fn endpoints_of(kind: Followed, object: &Value) -> Vec<Endpoint> {
    match kind {
        Followed::EndpointSlice => {
            let ports = ports(object);
            object.list("endpoints").iter().flat_map(|one| of_slice(one, &ports)).collect()
        }
        _ => object.list("subsets").iter().flat_map(of_subset).collect(),
    }
}

fn of_slice(endpoint: &Value, ports: &[Port]) -> Vec<Endpoint> {
    let conditions = endpoint.at("conditions");
    // Absent means ready, and serving means what ready means.
    let ready = conditions.flag_opt("ready").unwrap_or(true);
    let one = |address: &str| Endpoint {
        address: address.to_owned(),
        ports: ports.to_vec(),
        ready,
        serving: conditions.flag_opt("serving").unwrap_or(ready),
        terminating: conditions.flag("terminating"),
        node: endpoint.text("nodeName").to_owned(),
        zone: endpoint.text("zone").to_owned(),
        target: target(endpoint),
    };
    endpoint.texts("addresses").into_iter().map(one).collect()
}

fn of_subset(subset: &Value) -> Vec<Endpoint> {
    let ports = ports(subset);
    let one = |address: &Value, ready: bool| Endpoint {
        address: address.text("ip").to_owned(),
        ports: ports.clone(),
        ready,
        serving: ready,
        terminating: false,
        node: address.text("nodeName").to_owned(),
        zone: String::new(),
        target: target(address),
    };
    let ready = subset.list("addresses").iter().map(|address| one(address, true));
    ready.chain(subset.list("notReadyAddresses").iter().map(|address| one(address, false))).collect()
}

fn ports(object: &Value) -> Vec<Port> {
    let read = |port: &Value| Port {
        name: port.text("name").to_owned(),
        port: port.int("port"),
        protocol: port.text_opt("protocol").unwrap_or("TCP").to_owned(),
    };
    object.list("ports").iter().map(read).collect()
}

fn target(endpoint: &Value) -> String {
    let target = endpoint.at("targetRef");
    match target.text("kind") {
        "" => String::new(),
        kind => format!("{kind} {}", target.text("name")),
    }
}

/// An address may stand in several subsets, with other ports; of the same port the last word counts.
fn by_address(endpoints: Vec<Endpoint>) -> BTreeMap<(String, Vec<Port>), Endpoint> {
    endpoints.into_iter().map(|one| ((one.address.clone(), one.ports.clone()), one)).collect()
}

impl Endpoint {
    /// `endpoint 10.244.0.7:9376 (Pod web-2)`.
    fn named(&self) -> String {
        let address = if self.address.contains(':') { format!("[{}]", self.address) } else { self.address.clone() };
        let ports: Vec<String> = self.ports.iter().map(|port| port.port.to_string()).collect();
        let place = match ports.len() {
            0 => address,
            _ => format!("{address}:{}", ports.join(",")),
        };
        let whose = if self.target.is_empty() { String::new() } else { format!(" ({})", self.target) };
        format!("endpoint {place}{whose}")
    }

    fn unfit(&self) -> &'static str {
        match (self.ready, self.terminating) {
            (_, true) => ", terminating",
            (false, false) => ", not ready",
            (true, false) => "",
        }
    }

    /// What is another state than before.
    fn since(&self, before: &Endpoint) -> Vec<String> {
        let named = self.named();
        let mut lines = Vec::new();
        let mut differs = |old: &str, new: &str, what: &str| {
            if old != new {
                lines.push(format!("{named}: {what} {} -> {}", or_none(old), or_none(new)));
            }
        };
        differs(&before.target, &self.target, "target");
        differs(&before.node, &self.node, "node");
        differs(&before.zone, &self.zone, "zone");
        let state = match (before, self) {
            (old, new) if !old.terminating && new.terminating && new.serving => Some("is terminating, still serving"),
            (old, new) if !old.terminating && new.terminating => Some("is terminating"),
            (old, new) if old.terminating && !new.terminating => Some("is no longer terminating"),
            (old, new) if !old.ready && new.ready => Some("became ready"),
            (old, new) if old.ready && !new.ready => Some("is no longer ready"),
            (old, new) if old.serving && !new.serving => Some("no longer serves"),
            (old, new) if !old.serving && new.serving => Some("serves again"),
            _ => None,
        };
        lines.extend(state.map(|state| format!("{named} {state}")));
        lines
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}
