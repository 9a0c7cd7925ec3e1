//! What is allowed in a Service but unwise: deprecated, ignored, or written in an odd form.

use crate::value::Value;

use super::spec;
use crate::field::Path;
use crate::{Look, Settings, ip};

/// Warnings on a create or an update.
pub(super) fn of_spec(service: &Value, _old: Option<&Value>, _: &Settings) -> Vec<String> {
    let spec = service.at("spec");
    let mut warnings = annotations(service);
    warnings.extend(addresses(spec));
    if spec.text("type") == spec::EXTERNAL_NAME {
        if !spec.list("externalIPs").is_empty() {
            warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
        }
    } else if !spec.text("externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.text("trafficDistribution") == "PreferClose" {
        warnings.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
    warnings.extend(super::topology::warnings(spec));
    warnings
}

/// Warnings on a write to `status`.
pub fn of_status(service: &Value) -> Vec<String> {
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let ingress = service.at("status").at("loadBalancer").list("ingress");
    ingress.iter().enumerate().flat_map(|(i, entry)| ip::warnings(&path.index(i), entry.text("ip"))).collect()
}

/// The annotation that [`MODE`] replaced.
pub(super) const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
/// The annotation that asks for topology aware routing.
pub(super) const MODE: &str = "service.kubernetes.io/topology-mode";

fn annotations(service: &Value) -> Vec<String> {
    match service.at("metadata").at("annotations").get(HINTS) {
        Some(_) => vec![format!("annotation {HINTS} is deprecated, please use {MODE} instead")],
        None => Vec::new(),
    }
}

fn addresses(spec: &Value) -> Vec<String> {
    let path = Path::new("spec");
    let each = |name: &str, warnings: fn(&Path, &str) -> Vec<String>| -> Vec<String> {
        let path = path.child(name);
        spec.texts(name).iter().enumerate().flat_map(|(i, text)| warnings(&path.index(i), text)).collect()
    };
    let mut warnings = Vec::new();
    if !spec.text("clusterIP").is_empty() && spec.text("clusterIP") != spec::NONE {
        warnings.extend(each("clusterIPs", ip::warnings));
    }
    let headless = spec.text("type") == spec::CLUSTER_IP && spec.text("clusterIP") == spec::NONE;
    if headless {
        warnings.extend(ignored_when_headless(spec));
    }
    warnings.extend(each("externalIPs", ip::warnings));
    if !spec.list("externalIPs").is_empty() && !headless && spec.text("type") != spec::EXTERNAL_NAME {
        warnings.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    warnings.extend(ip::warnings(&path.child("loadBalancerIP"), spec.text("loadBalancerIP")));
    warnings.extend(each("loadBalancerSourceRanges", ip::cidr::warnings));
    warnings
}

fn ignored_when_headless(spec: &Value) -> Vec<String> {
    let set = [
        ("loadBalancerIP", !spec.text("loadBalancerIP").is_empty()),
        ("externalIPs", !spec.list("externalIPs").is_empty()),
        ("SessionAffinity", spec.text("sessionAffinity") != "None"),
    ];
    let ignored = set.iter().filter(|(_, set)| *set);
    ignored.map(|(name, _)| format!("spec.{name} is ignored for headless services")).collect()
}
