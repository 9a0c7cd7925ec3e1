//! A Service that changes: which fields are restored or dropped with a change of type, and which changes are refused.

use std::collections::HashSet;

use crate::value::{Value, json};

use super::spec;
use super::validate::load_balancer_class;
use crate::field::{FieldError, FieldErrors, Path};
use crate::schema::core::{SERVICE_PORT, SERVICE_SPEC, SERVICE_STATUS};
use crate::{Look, Settings};

/// Drops what belonged to the old type and was not changed by the client. What was changed is left for validation.
pub(super) fn drop_of_old_type(service: &mut Value, old: &Value) {
    let old = old.at("spec");
    if let Some(spec) = service.get_mut("spec") {
        drop_addresses(spec, old);
        drop_node_ports(spec, old);
        drop_load_balancer_fields(spec, old);
        let closed = spec::externally_accessible(old) && !spec::externally_accessible(spec);
        if closed && same(spec, old, "externalTrafficPolicy") {
            SERVICE_SPEC.place(spec, "externalTrafficPolicy", Value::Null);
        }
    }
    if service.at("spec").text("type") != spec::LOAD_BALANCER
        && let Some(status) = service.get_mut("status")
    {
        SERVICE_STATUS.place(status, "loadBalancer", json!({}));
    }
}

fn drop_addresses(spec: &mut Value, old: &Value) {
    if !spec::needs_cluster_ip(old) || spec::needs_cluster_ip(spec) {
        return;
    }
    if same(spec, old, "clusterIP") && same(spec, old, "clusterIPs") {
        SERVICE_SPEC.place(spec, "clusterIP", Value::Null);
        SERVICE_SPEC.place(spec, "clusterIPs", Value::Null);
    }
    for name in ["ipFamilies", "ipFamilyPolicy"] {
        if same(spec, old, name) {
            SERVICE_SPEC.place(spec, name, Value::Null);
        }
    }
}

fn drop_node_ports(spec: &mut Value, old: &Value) {
    let before: HashSet<i64> = spec::node_ports(old).into_iter().collect();
    let no_new = spec::node_ports(spec).iter().all(|port| before.contains(port));
    if spec::may_have_node_ports(old) && !spec::may_have_node_ports(spec) && no_new {
        for port in spec::ports_mut(spec) {
            SERVICE_PORT.place(port, "nodePort", Value::Null);
        }
    }
    let unneeded = spec::needs_health_check(old) && !spec::needs_health_check(spec);
    if unneeded && same(spec, old, "healthCheckNodePort") {
        SERVICE_SPEC.place(spec, "healthCheckNodePort", Value::Null);
    }
}

fn drop_load_balancer_fields(spec: &mut Value, old: &Value) {
    if old.text("type") != spec::LOAD_BALANCER || spec.text("type") == spec::LOAD_BALANCER {
        return;
    }
    for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if same(spec, old, name) {
            SERVICE_SPEC.place(spec, name, Value::Null);
        }
    }
}

fn same(spec: &Value, old: &Value, name: &str) -> bool {
    spec.at(name) == old.at(name)
}

/// Changes that are not allowed.
pub(super) fn validate(service: &Value, old: &Value, _: &Settings) -> FieldErrors {
    let (spec, old) = (service.at("spec"), old.at("spec"));
    let mut errors = FieldErrors::new();
    if spec::needs_cluster_ip(spec) && spec::needs_cluster_ip(old) {
        errors.extend(cluster_ips(spec, old));
        errors.extend(families(spec, old));
    }
    let balanced = [spec, old].iter().all(|spec| spec.text("type") == spec::LOAD_BALANCER);
    if balanced && !same(spec, old, "loadBalancerClass") {
        let class = spec.text_opt("loadBalancerClass").unwrap_or("null");
        errors.push(FieldError::invalid(&Path::new("spec.loadBalancerClass"), class, ONCE_SET));
    }
    // The whole object is checked for this too: such a mistake is listed twice.
    errors.extend(load_balancer_class(spec));
    let checked = [spec, old].iter().all(|spec| spec::needs_health_check(spec));
    if checked && !same(spec, old, "healthCheckNodePort") {
        errors.push(FieldError::forbidden(&Path::new("spec.healthCheckNodePort"), "field is immutable"));
    }
    errors
}

const ONCE_SET: &str = "may not change once set";

/// The first address stays; a second may come, and go if the policy says so.
fn cluster_ips(spec: &Value, old: &Value) -> FieldErrors {
    if spec::is_headless(spec) && spec::is_headless(old) {
        return FieldErrors::new();
    }
    let path = Path::new("spec.clusterIPs");
    let (new, before) = (spec.texts("clusterIPs"), old.texts("clusterIPs"));
    let refused = |i: usize, detail: &str| FieldError::invalid(&path.index(i), spec.at("clusterIPs"), detail);
    if new.len() == before.len() {
        let changed = (0..new.len()).filter(|i| new[*i] != before[*i]);
        return changed.map(|i| refused(i, ONCE_SET)).collect();
    }
    let mut errors = FieldErrors::new();
    match (new.first(), before.first()) {
        (None, Some(_)) => errors.push(refused(0, "primary clusterIP can not be unset")),
        (Some(new), Some(before)) if new != before => errors.push(refused(0, ONCE_SET)),
        _ => {}
    }
    if new.len() == 1 && before.len() > 1 {
        errors.extend(needs_single_stack(spec, "clusterIP"));
    }
    errors
}

/// The first family stays; a second may come, and go if the policy says so. Headless Services are free to change.
fn families(spec: &Value, old: &Value) -> FieldErrors {
    if spec::is_headless(spec) || spec::is_headless(old) {
        return FieldErrors::new();
    }
    let path = Path::new("spec.ipFamilies").index(0);
    let (new, before) = (spec.texts("ipFamilies"), old.texts("ipFamilies"));
    if new.len() == before.len() {
        let changed = new.iter().zip(&before).filter(|(new, before)| new != before);
        return changed.map(|_| FieldError::invalid(&path, spec.at("ipFamilies"), ONCE_SET)).collect();
    }
    let mut errors = FieldErrors::new();
    if new.len() < before.len() && spec.list("clusterIPs").is_empty() {
        errors.push(FieldError::invalid(&path, spec.at("ipFamilies"), "primary ipFamily can not be unset"));
    }
    if let (Some(new), Some(before)) = (new.first(), before.first())
        && new != before
    {
        // The addresses are shown here, not the families.
        errors.push(FieldError::invalid(&path, spec.at("clusterIPs"), ONCE_SET));
    }
    if new.len() == 1 && before.len() > 1 {
        errors.extend(needs_single_stack(spec, "ipFamily"));
    }
    errors
}

fn needs_single_stack(spec: &Value, what: &str) -> Option<FieldError> {
    let policy = spec.text_opt("ipFamilyPolicy").unwrap_or("null");
    let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
    (policy != "SingleStack").then(|| FieldError::invalid(&Path::new("spec.ipFamilyPolicy"), policy, detail))
}
