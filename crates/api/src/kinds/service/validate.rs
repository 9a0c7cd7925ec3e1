//! Mistakes in a Service as a whole, in the order in which the reference server lists them.

use std::collections::HashSet;

use crate::value::Value;

use super::ports::{self, against};
use super::spec;
use super::topology;
use super::warnings::{HINTS, MODE};
use crate::field::{FieldError, FieldErrors, Path};
use crate::{Look, Settings, ip, names};

pub(crate) mod addresses;

/// Mistakes in a Service. Addresses that `old` already had are not looked at again.
pub(super) fn whole(service: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let spec = service.at("spec");
    let parts = [
        topology_annotations(service),
        ports::presence(spec),
        of_type(spec),
        ports::fields(spec),
        selector(spec),
        affinity(spec),
        addresses::cluster_ips(spec, old.map(|old| old.at("spec"))),
        addresses::external_ips(spec, old.map(|old| old.at("spec"))),
        one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
        ports::uniqueness(spec),
        addresses::source_ranges(service, old),
        node_port_allocation(spec),
        load_balancer_class(spec),
        external_traffic(spec),
        one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"]),
        one_of(spec, "trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"]),
        topology::validate(spec),
    ];
    parts.into_iter().flatten().collect()
}

/// Mistakes in a new status.
pub(super) fn status(service: &Value, old: &Value, _: &Settings) -> FieldErrors {
    let path = Path::new("status.loadBalancer.ingress");
    let ingress = service.at("status").at("loadBalancer").list("ingress");
    if service.at("spec").text("type") != spec::LOAD_BALANCER && !ingress.is_empty() {
        return FieldErrors::from([FieldError::forbidden(
            &path,
            "may only be used when `spec.type` is 'LoadBalancer'",
        )]);
    }
    let old: HashSet<&str> =
        old.at("status").at("loadBalancer").list("ingress").iter().map(|entry| entry.text("ip")).collect();
    ingress.iter().enumerate().flat_map(|(i, entry)| ingress_entry(entry, &old, &path.index(i))).collect()
}

fn ingress_entry(entry: &Value, old: &HashSet<&str>, path: &Path) -> FieldErrors {
    let (address, hostname) = (entry.text("ip"), entry.text("hostname"));
    let mut errors = FieldErrors::new();
    if !address.is_empty() && !old.contains(address) {
        errors.extend(against(&path.child("ip"), address, ip::strict_reasons(address)));
    }
    let mode = path.child("ipMode");
    match entry.text_opt("ipMode") {
        None if !address.is_empty() => errors.push(FieldError::required(&mode, "must be specified when `ip` is set")),
        Some(_) if address.is_empty() => {
            errors.push(FieldError::forbidden(&mode, "may not be specified when `ip` is not set"));
        }
        Some(given) if !["VIP", "Proxy"].contains(&given) => {
            errors.push(FieldError::not_supported(&mode, given, &["Proxy", "VIP"]));
        }
        _ => {}
    }
    if !hostname.is_empty() {
        let path = path.child("hostname");
        errors.extend(against(&path, hostname, names::subdomain(hostname)));
        if ip::parse(hostname).is_some() {
            errors.push(FieldError::invalid(&path, hostname, "must be a DNS name, not an IP address"));
        }
    }
    errors
}

/// The class of a load balancer, which only a load balancer may have.
pub(super) fn load_balancer_class(spec: &Value) -> FieldErrors {
    let path = Path::new("spec.loadBalancerClass");
    match spec.text_opt("loadBalancerClass") {
        None => FieldErrors::new(),
        Some(class) if spec.text("type") == spec::LOAD_BALANCER => against(&path, class, names::label_key(class)),
        Some(_) => FieldErrors::from([only_for_load_balancers(&path)]),
    }
}

/// A field that only goes with type LoadBalancer.
fn only_for_load_balancers(path: &Path) -> FieldError {
    FieldError::forbidden(path, "may only be used when `type` is 'LoadBalancer'")
}

/// The old and the new annotation for one thing must not contradict each other.
fn topology_annotations(service: &Value) -> FieldErrors {
    let annotations = service.at("metadata").at("annotations");
    match (annotations.text_opt(MODE), annotations.text_opt(HINTS)) {
        (Some(mode), Some(hints)) if mode != hints => FieldErrors::from([FieldError::invalid(
            &Path::new("metadata.annotations").key(MODE),
            mode,
            format!("must match annotations[{HINTS}] when both are specified"),
        )]),
        _ => FieldErrors::new(),
    }
}

/// What a type forbids or needs.
fn of_type(spec: &Value) -> FieldErrors {
    let kind = spec.text("type");
    match kind {
        spec::LOAD_BALANCER | spec::NODE_PORT if spec::is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            FieldErrors::from([FieldError::invalid(&Path::new("spec.clusterIPs").index(0), spec::NONE, detail)])
        }
        spec::EXTERNAL_NAME => external_name(spec),
        _ => FieldErrors::new(),
    }
}

fn external_name(spec: &Value) -> FieldErrors {
    let path = Path::new("spec");
    let set = ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].into_iter().filter(|name| !spec.at(name).is_null());
    let mut errors: FieldErrors =
        set.map(|name| FieldError::forbidden(&path.child(name), "may not be set for ExternalName services")).collect();
    let (path, name) = (path.child("externalName"), spec.text("externalName"));
    // A name may end in a dot, to say that it is whole.
    match name.strip_suffix('.').unwrap_or(name) {
        "" => errors.push(FieldError::required(&path, "")),
        name => errors.extend(against(&path, name, names::subdomain(name))),
    }
    errors
}

fn selector(spec: &Value) -> FieldErrors {
    let path = Path::new("spec.selector");
    let mut errors = FieldErrors::new();
    for (key, value) in spec.map("selector").into_iter().flatten() {
        if errors.is_full() {
            break;
        }
        let value = value.as_str().unwrap_or_default();
        errors.extend(against(&path, key, names::label_key(key)));
        errors.extend(against(&path, value, names::label_value(value)));
    }
    errors
}

/// The longest time for which a client stays with its endpoint: a day.
const MAX_AFFINITY: i64 = 86_400;

fn affinity(spec: &Value) -> FieldErrors {
    let mut errors = one_of(spec, "sessionAffinity", &["ClientIP", "None"]);
    let timeout = spec.at("sessionAffinityConfig").at("clientIP").int("timeoutSeconds");
    if spec.text("sessionAffinity") == "ClientIP" && !(1..=MAX_AFFINITY).contains(&timeout) {
        let path = Path::new("spec.sessionAffinityConfig.clientIP.timeoutSeconds");
        let detail = format!("must be greater than 0 and less than {MAX_AFFINITY}");
        errors.push(FieldError::invalid(&path, timeout, detail));
    }
    errors
}

fn node_port_allocation(spec: &Value) -> FieldErrors {
    let given = spec.flag_opt("allocateLoadBalancerNodePorts").is_some();
    if given && spec.text("type") != spec::LOAD_BALANCER {
        return FieldErrors::from([only_for_load_balancers(&Path::new("spec.allocateLoadBalancerNodePorts"))]);
    }
    FieldErrors::new()
}

fn external_traffic(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if spec::externally_accessible(spec) {
        errors.extend(one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"]));
    } else if let Some(policy) = spec.text_opt("externalTrafficPolicy") {
        let path = Path::new("spec.externalTrafficPolicy");
        errors.push(FieldError::invalid(&path, policy, "may only be set for externally-accessible services"));
    }
    let (path, port) = (Path::new("spec.healthCheckNodePort"), spec.int("healthCheckNodePort"));
    if spec::needs_health_check(spec) {
        errors.extend(names::port_number(port).into_iter().map(|reason| FieldError::invalid(&path, port, reason)));
    } else if port != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path, port, detail));
    }
    errors
}

/// A field of the spec that takes few values, if it is set.
pub(super) fn one_of(spec: &Value, name: &str, allowed: &[&str]) -> FieldErrors {
    match spec.text_opt(name) {
        Some(value) if !allowed.contains(&value) => {
            FieldErrors::from([FieldError::not_supported(&Path::new("spec").child(name), value, allowed)])
        }
        _ => FieldErrors::new(),
    }
}
