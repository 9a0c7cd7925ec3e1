//! Rules of Service: what is filled in, what an update keeps or drops, what may be selected. Mistakes are found in
//! `validate`, unwise choices in `warnings`; addresses and ports are given out by [`crate::alloc`].

use crate::value::{Map, Value, json};

use super::Rules;
use crate::names::{self, Reasons};
use crate::schema::core::{SERVICE, SERVICE_PORT, SERVICE_SPEC};
use crate::{Look, Settings};

mod change;
mod ports;
pub(crate) mod spec;
mod table;
mod topology;
pub(crate) mod validate;
mod warnings;

pub use spec::needs_health_check;
pub use warnings::of_status as status_warnings;

/// The rules.
pub static RULES: Rules = Rules {
    name,
    metadata: crate::meta::Checks::USUAL,
    admit: |_, _| Ok(()),
    default,
    prepare_create,
    prepare_update,
    prepare_status,
    validate: validate::whole,
    validate_update: change::validate,
    validate_status: validate::status,
    warnings: warnings::of_spec,
    selectable: &[
        ("spec.clusterIP", |service| service.at("spec").text("clusterIP").to_owned()),
        ("spec.type", |service| service.at("spec").text("type").to_owned()),
    ],
    columns: table::COLUMNS,
    row: table::row,
};

/// An RFC 1123 label: since 1.36 it may begin with a digit.
fn name(name: &str, prefix: bool) -> Reasons {
    match name.strip_suffix('-') {
        // Something is appended to a prefix, so it may end in a hyphen. The reference server overlooks the character
        // before the hyphen too; the rule on the whole name finds it.
        Some(rest) if prefix && !rest.is_empty() => {
            let mut masked = rest.to_owned();
            masked.pop();
            names::label(&(masked + "a"))
        }
        _ => names::label(name),
    }
}

fn default(service: &mut Value, _: &Settings) {
    let Some(spec) = service.get_mut("spec") else {
        return;
    };
    default_affinity(spec);
    if spec.text("type").is_empty() {
        SERVICE_SPEC.place(spec, "type", spec::CLUSTER_IP);
    }
    for port in spec::ports_mut(spec) {
        default_port(port);
    }
    if spec::externally_accessible(spec) && spec.text("externalTrafficPolicy").is_empty() {
        SERVICE_SPEC.place(spec, "externalTrafficPolicy", "Cluster");
    }
    let has_address = [spec::CLUSTER_IP, spec::NODE_PORT, spec::LOAD_BALANCER].contains(&spec.text("type"));
    if has_address && spec.text_opt("internalTrafficPolicy").is_none() {
        SERVICE_SPEC.place(spec, "internalTrafficPolicy", "Cluster");
    }
    if spec.text("type") == spec::LOAD_BALANCER {
        if spec.flag_opt("allocateLoadBalancerNodePorts").is_none() {
            SERVICE_SPEC.place(spec, "allocateLoadBalancerNodePorts", true);
        }
        default_ingress(service);
    }
}

fn default_affinity(spec: &mut Value) {
    if spec.text("sessionAffinity").is_empty() {
        SERVICE_SPEC.place(spec, "sessionAffinity", "None");
    }
    match spec.text("sessionAffinity") {
        "None" => SERVICE_SPEC.place(spec, "sessionAffinityConfig", Value::Null),
        "ClientIP" if spec.at("sessionAffinityConfig").at("clientIP").int_opt("timeoutSeconds").is_none() => {
            SERVICE_SPEC.place(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10_800}}));
        }
        _ => {}
    }
}

fn default_port(port: &mut Value) {
    if port.text("protocol").is_empty() {
        SERVICE_PORT.place(port, "protocol", "TCP");
    }
    let target = port.at("targetPort");
    if target.is_null() || *target == 0 || *target == "" {
        SERVICE_PORT.place(port, "targetPort", port.int("port"));
    }
}

fn default_ingress(service: &mut Value) {
    let ingress = service.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
    for entry in ingress.into_iter().flatten() {
        if !entry.text("ip").is_empty() && entry.text_opt("ipMode").is_none() {
            crate::schema::core::LOAD_BALANCER_INGRESS.place(entry, "ipMode", "VIP");
        }
    }
}

fn prepare_create(service: &mut Value, settings: &Settings) {
    let status: Value = [("loadBalancer", Value::Object(Map::new()))].into_iter().collect();
    SERVICE.place(service, "status", status);
    drop_internal_policy(service);
    topology::drop_if_closed(service, None, settings);
}

fn prepare_update(service: &mut Value, old: &Value, settings: &Settings) {
    SERVICE.place(service, "status", old.at("status").clone());
    change::drop_of_old_type(service, old);
    drop_internal_policy(service);
    topology::drop_if_closed(service, Some(old), settings);
}

fn prepare_status(service: &mut Value, old: &Value, _: &Settings) {
    SERVICE.place(service, "spec", old.at("spec").clone());
}

/// An ExternalName Service has no traffic to direct. A value that is wrong is left for validation to refuse.
fn drop_internal_policy(service: &mut Value) {
    if let Some(spec) = service.get_mut("spec")
        && spec.text("type") == spec::EXTERNAL_NAME
        && ["Cluster", "Local"].contains(&spec.text("internalTrafficPolicy"))
    {
        SERVICE_SPEC.place(spec, "internalTrafficPolicy", Value::Null);
    }
}

#[cfg(test)]
mod tests;
