//! What changed about a Service.

use fairlead_api::Look;
use serde_json::Value;

use super::fields;

/// What has words of its own below.
const TOLD: [&str; 3] = ["metadata.deletionTimestamp", "status.loadBalancer.ingress", "metadata.uid"];

pub(super) fn lines(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    match (before, after) {
        (None, Some(after)) => described(after),
        (Some(before), None) => described(before).into_iter().map(|line| format!("was: {line}")).collect(),
        (Some(before), Some(after)) => changed(before, after),
        (None, None) => Vec::new(),
    }
}

fn changed(before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if before.at("metadata").text("uid") != after.at("metadata").text("uid") {
        lines.push("deleted and made anew".to_owned());
    }
    if let Some(line) = goes(before, after) {
        lines.push(line);
    }
    let (old, new) = (ingress(before), ingress(after));
    lines.extend(new.iter().filter(|one| !old.contains(one)).map(|one| format!("load balancer has {one}")));
    lines.extend(old.iter().filter(|one| !new.contains(one)).map(|one| format!("load balancer lost {one}")));
    lines.extend(fields::changed(before, after, &TOLD));
    if lines.is_empty() {
        lines.extend(fields::changed(ingress_field(before), ingress_field(after), &[]));
    }
    lines
}

/// Whether it began to go, and what it waits for.
pub(super) fn goes(before: &Value, after: &Value) -> Option<String> {
    let began = |object: &Value| object.at("metadata").text_opt("deletionTimestamp").is_some();
    if began(before) || !began(after) {
        return None;
    }
    let waits = after.at("metadata").texts("finalizers").join(", ");
    Some(if waits.is_empty() { "is being deleted".to_owned() } else { format!("is being deleted; waits for {waits}") })
}

fn ingress_field(service: &Value) -> &Value {
    service.at("status").at("loadBalancer")
}

fn ingress(service: &Value) -> Vec<String> {
    let entries = ingress_field(service).list("ingress").iter();
    entries.map(|entry| entry.text_opt("ip").unwrap_or(entry.text("hostname")).to_owned()).collect()
}

/// A Service in a few lines.
fn described(service: &Value) -> Vec<String> {
    let spec = service.at("spec");
    let kind = spec.text_opt("type").unwrap_or("ClusterIP");
    let addresses = match spec.texts("clusterIPs") {
        all if all.is_empty() => spec.text("clusterIP").to_owned(),
        all => all.join(", "),
    };
    let mut lines = vec![match (kind, &*addresses) {
        ("ExternalName", _) => format!("type ExternalName, {}", spec.text("externalName")),
        (kind, "") => format!("type {kind}"),
        (kind, "None") => format!("type {kind}, headless"),
        (kind, addresses) => format!("type {kind}, {addresses}"),
    }];
    lines.extend(spec.list("ports").iter().map(port));
    if let Some(selector) = spec.map("selector").filter(|selector| !selector.is_empty()) {
        let pairs: Vec<String> =
            selector.iter().map(|(key, value)| format!("{key}={}", fields::shown(value))).collect();
        lines.push(format!("selector {}", pairs.join(",")));
    }
    lines
}

fn port(port: &Value) -> String {
    let name = port.text_opt("name").map(|name| format!("{name} ")).unwrap_or_default();
    let target = port.get("targetPort").map(|target| format!(" -> {}", fields::shown(target))).unwrap_or_default();
    let node = port.int_opt("nodePort").filter(|port| *port > 0).map(|port| format!(", node port {port}"));
    let protocol = port.text_opt("protocol").unwrap_or("TCP");
    format!("port {name}{}/{protocol}{target}{}", port.int("port"), node.unwrap_or_default())
}
