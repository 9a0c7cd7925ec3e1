//! Mistakes in the spec of a Pod, but for its containers, volumes and scheduling, which have files of their own.

use std::collections::HashSet;

use crate::value::Value;

use super::{container, refuse, resources, scheduling, security, volumes};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::{Path, ip, names};

/// Mistakes in annotations that mean something for Pods.
pub(super) fn validate_annotations(metadata: &Value, spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let annotations = metadata.at("annotations");
    if let (Some(value), true) = (annotations.text_opt(MIRROR), spec.text("nodeName").is_empty()) {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, detail));
    }
    if let Some(cost) = annotations.text_opt(DELETION_COST) {
        // As the reference server reads it: no `+`, no leading zeros.
        let plain = cost.parse::<i32>().is_ok_and(|number| number.to_string() == cost);
        if !plain {
            errors.push(FieldError::invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer"));
        }
    }
}

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The object that a spec belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose<'a> {
    /// A Pod with this metadata.
    Pod(&'a Value),
    /// A template of Pods (Deployment, ReplicaSet, ...). Its Pods have no names yet.
    Template,
}

/// Mistakes in a spec, in the order of the reference server.
pub(super) fn validate(spec: &Value, whose: Whose<'_>, path: &Path, errors: &mut FieldErrors) {
    let metadata = match whose {
        Whose::Pod(metadata) => metadata,
        Whose::Template => &Value::Null,
    };
    let known = volumes::validate(metadata, spec.list("volumes"), &path.child("volumes"), errors);
    container::validate_all(spec, &known, path, errors);
    validate_host_ports(spec, whose, path, errors);
    one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, errors);
    one_of(spec, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], path, errors);
    scheduling::validate_node_selector(spec, path, errors);
    security::validate_pod(spec, path, errors);
    scheduling::validate_affinity(spec.at("affinity"), &path.child("affinity"), errors);
    validate_dns(spec, &path.child("dnsConfig"), errors);
    validate_gates(spec, path, errors);
    scheduling::validate_spread(spec, &path.child("topologySpreadConstraints"), errors);
    security::validate_host_users(spec, path, errors);
    validate_hostname_override(spec, path, errors);
    validate_names(spec, path, errors);
    scheduling::validate_tolerations(spec.list("tolerations"), &path.child("tolerations"), errors);
    validate_aliases(spec, &path.child("hostAliases"), errors);
    validate_classes(spec, path, errors);
}

/// Rules that hold for Pods but not for templates of Pods.
pub(super) fn validate_only_in_pods(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    if spec.text("serviceAccountName").is_empty() {
        volumes::validate_no_tokens(spec.list("volumes"), &path.child("volumes"), errors);
    }
    for list in ["containers", "initContainers"] {
        for (at, container) in spec.list(list).iter().enumerate() {
            container::validate_image_space(container, &path.child(list).index(at), errors);
        }
    }
}

/// Rules of a create.
pub(super) fn validate_only_on_create(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    if !spec.list("ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !spec.text("nodeName").is_empty() && !spec.list("schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
}

/// A field that must be one of a few words.
pub(super) fn one_of(value: &Value, name: &str, allowed: &[&str], path: &Path, errors: &mut FieldErrors) {
    match value.text(name) {
        "" => errors.push(FieldError::required(&path.child(name), "")),
        word if allowed.contains(&word) => {}
        word => errors.push(FieldError::not_supported(&path.child(name), word, allowed)),
    }
}

/// On the host's network a port is the host's port. A template may leave it to its Pods.
fn validate_host_ports(spec: &Value, whose: Whose<'_>, path: &Path, errors: &mut FieldErrors) {
    if !spec.flag("hostNetwork") {
        return;
    }
    for (at, container) in spec.list("containers").iter().enumerate() {
        let ports = path.child("containers").index(at).child("ports");
        for (at, port) in container.list("ports").iter().enumerate() {
            let number = port.int("hostPort");
            let filled_later = matches!(whose, Whose::Template) && number == 0;
            if number != port.int("containerPort") && !filled_later {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&ports.index(at).child("hostPort"), number, detail));
            }
        }
    }
}

/// Bounds that resolvers put on `resolv.conf`.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;

fn validate_dns(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let config = spec.at("dnsConfig");
    let servers = config.texts("nameservers");
    if spec.text("dnsPolicy") == "None" {
        if config.is_null() {
            return errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.push(FieldError::required(&path.child("nameservers"), detail));
        }
    }
    if servers.len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(FieldError::invalid(&path.child("nameservers"), config.at("nameservers"), detail));
    }
    for (at, server) in servers.iter().enumerate() {
        refuse(errors, &path.child("nameservers").index(at), server, ip::strict_reasons(server));
    }
    validate_searches(config, &path.child("searches"), errors);
    for (at, option) in config.list("options").iter().enumerate() {
        if option.text("name").is_empty() {
            errors.push(FieldError::required(&path.child("options").index(at), "must not be empty"));
        }
    }
}

fn validate_searches(config: &Value, path: &Path, errors: &mut FieldErrors) {
    let searches = config.texts("searches");
    if searches.len() > MAX_SEARCHES {
        let detail = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(FieldError::invalid(path, config.at("searches"), detail));
    }
    if searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        let detail =
            format!("must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list");
        errors.push(FieldError::invalid(path, config.at("searches"), detail));
    }
    for (at, search) in searches.iter().enumerate().filter(|(_, search)| **search != ".") {
        let name = search.strip_suffix('.').unwrap_or(search);
        refuse(errors, &path.index(at), name, search_reasons(name));
    }
}

/// A subdomain whose labels may have underscores.
fn search_reasons(name: &str) -> names::Reasons {
    let mut reasons = names::Reasons::new();
    if name.len() > 253 {
        reasons.push("must be no more than 253 characters".to_owned());
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |label: &str| {
        let rest = label.strip_prefix('_').unwrap_or(label);
        rest.starts_with(plain) && rest.ends_with(plain) && rest.chars().all(|c| plain(c) || "-_".contains(c))
    };
    if !name.split('.').all(label) {
        reasons.push("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')".to_owned());
    }
    reasons
}

fn validate_gates(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    for (at, gate) in spec.list("readinessGates").iter().enumerate() {
        let name = gate.text("conditionType");
        let path = path.child("readinessGates").index(at).child("conditionType");
        refuse(errors, &path, name, names::label_key(name));
    }
    let mut seen = HashSet::new();
    for (at, gate) in spec.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        let path = path.child("schedulingGates").index(at);
        refuse(errors, &path, name, names::label_key(name));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
}

fn validate_hostname_override(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let path = path.child("hostnameOverride");
    let Some(name) = spec.text_opt("hostnameOverride") else { return };
    if spec.flag("setHostnameAsFQDN") {
        errors.push(FieldError::forbidden(&path, "may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.flag("hostNetwork") {
        errors.push(FieldError::forbidden(&path, "may not be specified when hostNetwork is true"));
    }
    if name.len() > 64 {
        errors.push(FieldError::too_long(&path, 64));
    }
    refuse(errors, &path, name, names::subdomain(name));
}

fn validate_names(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut name = |field: &str, rule: fn(&str) -> names::Reasons| {
        let text = spec.text(field);
        if !text.is_empty() {
            refuse(errors, &path.child(field), text, rule(text));
        }
    };
    name("serviceAccountName", names::subdomain);
    name("nodeName", names::subdomain);
    if let Some(deadline) = spec.int_opt("activeDeadlineSeconds") {
        for reason in names::in_range(deadline, 1, i32::MAX.into()) {
            errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), deadline, reason));
        }
    }
    let mut name = |field: &str| {
        let text = spec.text(field);
        if !text.is_empty() {
            refuse(errors, &path.child(field), text, names::label(text));
        }
    };
    name("hostname");
    name("subdomain");
}

fn validate_aliases(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    for (at, alias) in spec.list("hostAliases").iter().enumerate() {
        let (path, address) = (path.index(at), alias.text("ip"));
        refuse(errors, &path.child("ip"), address, ip::strict_reasons(address));
        for (at, name) in alias.texts("hostnames").iter().enumerate() {
            refuse(errors, &path.child("hostnames").index(at), name, names::subdomain(name));
        }
    }
}

fn validate_classes(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    for field in ["priorityClassName", "runtimeClassName"] {
        if let Some(name) = spec.text_opt(field).filter(|name| field == "runtimeClassName" || !name.is_empty()) {
            refuse(errors, &path.child(field), name, names::subdomain(name));
        }
    }
    if spec.get("preemptionPolicy").is_some() {
        one_of(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path, errors);
    }
    resources::validate_overhead(spec.at("overhead"), &path.child("overhead"), errors);
    let os = spec.at("os");
    match os.text("name") {
        _ if os.is_null() => {}
        "" => errors.push(FieldError::required(&path.child("os").child("name"), "")),
        "linux" | "windows" => {}
        name => errors.push(FieldError::not_supported(&path.child("os"), name, &["linux", "windows"])),
    }
}
