//! What is allowed in a Pod but unwise.

use std::collections::BTreeSet;

use crate::value::Value;

use crate::field::MAX_MISTAKES;
use crate::look::Look;
use crate::quantity::Quantity;
use crate::{Path, golang, ip, names};

/// Warnings about a new Pod.
pub(super) fn on_create(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let reasons = names::label(pod.at("metadata").text("name"));
    if !reasons.is_empty() {
        warnings.push(format!("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]", reasons.join(" ")));
    }
    of_spec(pod, &Path::new(""), &mut warnings);
    warnings
}

/// Warnings about the annotations and the spec of a Pod or of the template at `at`.
pub(super) fn of_spec(pod: &Value, at: &Path, warnings: &mut Vec<String>) {
    let (spec, path) = (pod.at("spec"), at.child("spec"));
    warn_of_annotations(pod, &at.child("metadata").child("annotations"), warnings);
    warn_of_labels(spec, &path, warnings);
    warn_of_volumes(spec, &path, warnings);
    warn_of_addresses(spec, &path, warnings);
    warn_of_secrets(spec, &path, warnings);
    let containers = containers(spec, &path);
    for (container, path) in &containers {
        warn_of_fractions(container, path, warnings);
        warn_of_hidden_variables(container, path, warnings);
    }
    warn_of_ports(&containers, warnings);
}

/// Warnings about a new status. A new spec goes without.
pub(super) fn on_update(pod: &Value) -> Vec<String> {
    let path = Path::new("status");
    let mut warnings = Vec::new();
    for field in ["podIPs", "hostIPs"] {
        for (at, entry) in pod.at("status").list(field).iter().enumerate() {
            warnings.extend(ip::warnings(&path.child(field).index(at).child("ip"), entry.text("ip")));
        }
    }
    warnings
}

fn containers<'a>(spec: &'a Value, path: &Path) -> Vec<(&'a Value, Path)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists
        .iter()
        .flat_map(|list| {
            spec.list(list).iter().enumerate().map(|(at, container)| (container, path.child(list).index(at)))
        })
        .collect()
}

fn warn_of_annotations(pod: &Value, path: &Path, warnings: &mut Vec<String>) {
    let old = [
        ("scheduler.alpha.kubernetes.io/critical-pod", "v1.16", "priorityClassName"),
        ("security.alpha.kubernetes.io/sysctls", "v1.11", "sysctls"),
        ("security.alpha.kubernetes.io/unsafe-sysctls", "v1.11", "sysctls"),
    ];
    for (key, since, field) in old {
        if pod.at("metadata").at("annotations").get(key).is_some() {
            let path = path.key(key);
            warnings.push(format!("{path}: non-functional in {since}+; use the \"{field}\" field instead"));
        }
    }
}

/// Labels of nodes with a newer name.
const OLD_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
];

fn warn_of_labels(spec: &Value, path: &Path, warnings: &mut Vec<String>) {
    for (old, since, new) in OLD_LABELS {
        if spec.at("nodeSelector").get(old).is_some() {
            let path = path.child("nodeSelector").key(old);
            warnings.push(format!("{path}: deprecated since {since}; use {} instead", golang::quote(new)));
        }
    }
    for (at, constraint) in spec.list("topologySpreadConstraints").iter().enumerate() {
        if constraint.at("labelSelector").is_null() {
            let path = path.child("topologySpreadConstraints").index(at).child("labelSelector");
            warnings.push(format!("{path}: a null labelSelector results in matching no pod"));
        }
    }
}

fn warn_of_volumes(spec: &Value, path: &Path, warnings: &mut Vec<String>) {
    let old = [
        ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("gitRepo", "deprecated in v1.11"),
        ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
        ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    for (at, volume) in spec.list("volumes").iter().enumerate() {
        for (source, why) in old {
            if !volume.at(source).is_null() {
                let shown = if source == "storageos" { "storageOS" } else { source };
                warnings.push(format!("{}: {why}", path.child("volumes").index(at).child(shown)));
            }
        }
    }
}

fn warn_of_addresses(spec: &Value, path: &Path, warnings: &mut Vec<String>) {
    let aliases = path.child("hostAliases");
    let mut seen = BTreeSet::new();
    for (at, alias) in spec.list("hostAliases").iter().enumerate() {
        let (path, address) = (aliases.index(at).child("ip"), alias.text("ip"));
        warnings.extend(ip::warnings(&path, address));
        if !seen.insert(address) {
            warnings.push(format!("{path}: duplicate ip {}", golang::quote(address)));
        }
    }
    let servers = path.child("dnsConfig").child("nameservers");
    for (at, server) in spec.at("dnsConfig").texts("nameservers").iter().enumerate() {
        warnings.extend(ip::warnings(&servers.index(at), server));
    }
}

fn warn_of_secrets(spec: &Value, path: &Path, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    let mut empty = Vec::new();
    for (at, secret) in spec.list("imagePullSecrets").iter().enumerate() {
        let (path, name) = (path.child("imagePullSecrets").index(at).child("name"), secret.text("name"));
        if !seen.insert(name) {
            warnings.push(format!("{path}: duplicate name {}", golang::quote(name)));
        }
        if name.is_empty() {
            empty.push(format!("{path}: invalid empty name \"\""));
        }
    }
    warnings.append(&mut empty);
}

fn warn_of_fractions(container: &Value, path: &Path, warnings: &mut Vec<String>) {
    for resource in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            let amount = container.at("resources").at(list).text(resource);
            if Quantity::parse(amount).is_ok_and(|amount| !amount.is_whole()) {
                let path = path.child("resources").child(list).key(resource);
                let amount = golang::quote(amount);
                warnings.push(format!("{path}: fractional byte value {amount} is invalid, must be an integer"));
            }
        }
    }
}

fn warn_of_hidden_variables(container: &Value, path: &Path, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (at, variable) in container.list("env").iter().enumerate() {
        let (name, value) = (variable.text("name"), variable.text("value"));
        let reference = format!("$({name})");
        // A value built from the one before is fine: PATH=$(PATH):/opt
        let builds = variable.at("valueFrom").is_null() && value != reference && value.contains(&reference);
        if !seen.insert(name) && !builds {
            let (path, name) = (path.child("env").index(at), golang::quote(name));
            warnings
                .push(format!("{path}: hides previous definition of {name}, which may be dropped when using apply"));
        }
    }
}

/// Maximum number of ports of a Pod that are compared with each other. Every pair is looked at, so
/// time grows with the square.
const MAX_COMPARED_PORTS: usize = 1000;

fn warn_of_ports(containers: &[(&Value, Path)], warnings: &mut Vec<String>) {
    let mut seen: Vec<(&Value, Path)> = Vec::new();
    for (container, path) in containers {
        for (at, port) in container.list("ports").iter().enumerate() {
            if seen.len() >= MAX_COMPARED_PORTS {
                return;
            }
            let path = path.child("ports").index(at);
            if !port.text("hostIP").is_empty() && port.int("hostPort") == 0 {
                warnings.push(format!("{path}: hostIP set without hostPort: {}", shown(port)));
            }
            for (other, place) in &seen {
                if warnings.len() >= MAX_MISTAKES {
                    return;
                }
                if let Some(how) = clash(port, other) {
                    warnings.push(format!("{path}: {how} port definition with {place}"));
                }
            }
            seen.push((port, path));
        }
    }
}

/// How two ports get in each other's way.
fn clash(port: &Value, other: &Value) -> Option<&'static str> {
    let (number, ip) = (port.int("hostPort"), port.text("hostIP"));
    let (other_number, other_ip) = (other.int("hostPort"), other.text("hostIP"));
    if port.int("containerPort") != other.int("containerPort") || port.text("protocol") != other.text("protocol") {
        return None;
    }
    if ip == other_ip && number == other_number {
        Some("duplicate")
    } else if number == 0 || other_number == 0 {
        Some("overlapping")
    } else if number == other_number && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn shown(port: &Value) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        port.text("name"),
        port.int("hostPort"),
        port.int("containerPort"),
        port.text("protocol"),
        port.text("hostIP"),
    )
}
