//! Mistakes in the ports of a Service.

use std::collections::HashSet;

use crate::value::{Value, json};

use super::spec;
use crate::Look;
use crate::field::{FieldError, FieldErrors, Path};
use crate::names::{self, Reasons};

/// Whether there are ports where there must be.
pub(super) fn presence(spec: &Value) -> FieldErrors {
    let needed = !spec::is_headless(spec) && spec.text("type") != spec::EXTERNAL_NAME;
    if needed && spec.list("ports").is_empty() {
        return FieldErrors::from([FieldError::required(&Path::new("spec.ports"), "")]);
    }
    FieldErrors::new()
}

/// Mistakes in each port by itself: names, numbers, protocols.
pub(super) fn fields(spec: &Value) -> FieldErrors {
    let ports = spec.list("ports");
    let mut names = HashSet::new();
    let mut errors = FieldErrors::new();
    for (i, port) in ports.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = Path::new("spec.ports").index(i);
        errors.extend(name(port, ports.len() > 1, &mut names, &path));
        errors.extend(numbers(port, &path));
        if let Some(protocol) = port.text_opt("appProtocol") {
            errors.extend(against(&path.child("appProtocol"), protocol, names::label_key(protocol)));
        }
    }
    errors
}

/// Node ports where none may be, and numbers that stand twice.
pub(super) fn uniqueness(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let ports = || spec.list("ports").iter().enumerate().map(|(i, port)| (Path::new("spec.ports").index(i), port));
    if spec.text("type") == spec::CLUSTER_IP {
        let given = ports().filter(|(_, port)| port.int("nodePort") != 0);
        errors.extend(given.map(|(path, _)| {
            FieldError::forbidden(&path.child("nodePort"), "may not be used when `type` is 'ClusterIP'")
        }));
    }
    let mut node_ports = HashSet::new();
    for (path, port) in ports().filter(|(_, port)| port.int("nodePort") != 0) {
        if !node_ports.insert((port.text("protocol"), port.int("nodePort"))) {
            errors.push(FieldError::duplicate(&path.child("nodePort"), port.int("nodePort")));
        }
    }
    let mut numbers = HashSet::new();
    for (path, port) in ports() {
        if errors.is_full() {
            break;
        }
        if !numbers.insert((port.text("protocol"), port.int("port"))) {
            errors.push(FieldError::duplicate(&path, &shown(port)));
        }
    }
    errors
}

/// The part of a port that must be unique, as the reference server shows it.
fn shown(port: &Value) -> Value {
    json!({
        "Name": "", "Protocol": port.at("protocol"), "AppProtocol": null, "Port": port.at("port"), "TargetPort": 0,
        "NodePort": 0,
    })
}

fn name<'a>(port: &'a Value, required: bool, seen: &mut HashSet<&'a str>, path: &Path) -> FieldErrors {
    let (path, name) = (path.child("name"), port.text("name"));
    if name.is_empty() {
        return if required { FieldErrors::from([FieldError::required(&path, "")]) } else { FieldErrors::new() };
    }
    let mut errors = against(&path, name, names::label(name));
    if !seen.insert(name) {
        errors.push(FieldError::duplicate(&path, name));
    }
    errors
}

fn numbers(port: &Value, path: &Path) -> FieldErrors {
    const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
    let invalid = |path: &Path, number: i64| -> FieldErrors {
        names::port_number(number).into_iter().map(|reason| FieldError::invalid(path, number, reason)).collect()
    };
    let mut errors = invalid(&path.child("port"), port.int("port"));
    if !PROTOCOLS.contains(&port.text("protocol")) {
        errors.push(FieldError::not_supported(&path.child("protocol"), port.text("protocol"), PROTOCOLS));
    }
    let target = path.child("targetPort");
    errors.extend(match port.text_opt("targetPort") {
        Some(name) => against(&target, name, names::port_name(name)),
        None => invalid(&target, port.int("targetPort")),
    });
    errors
}

/// A text with the reasons against it.
pub(super) fn against(path: &Path, text: &str, reasons: Reasons) -> FieldErrors {
    reasons.into_iter().map(|reason| FieldError::invalid(path, text, reason)).collect()
}
