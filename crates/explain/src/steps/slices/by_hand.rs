//! Do endpoints that were made by hand fit their Service?

use std::collections::BTreeSet;

use fairlead_api::source::Key;
use fairlead_api::view::{AddressType, EndpointSlice, ServicePort};
use fairlead_endpoints::members::families;
use serde_json::json;

use super::{is_ready, is_serving, is_terminating};
use crate::nearest::is_near;
use crate::objects::{SERVICE_NAME, owner};
use crate::steps::{Case, Draft, list, remedy};
use crate::{Cause, Severity};

/// Keeps Endpoints from being mirrored.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";

/// So many slices are looked at for lists, which ask for all Services.
const GLANCED_AT: usize = 200;

pub(super) fn look(case: &Case<'_>, draft: &mut Draft) {
    if case.slices.is_empty() {
        return nothing(case, draft);
    }
    cluster_ips(case, draft);
    let fitting = fitting_families(case);
    if fitting.is_empty() {
        let has: BTreeSet<&str> = case.slices.iter().map(|slice| slice.address_type.as_str()).collect();
        let wants = list(families(case.service).iter());
        let message = format!("its slices have addresses of type {}, but the Service is for {wants}", list(has.iter()));
        return draft.broken(Cause::SliceFamilyDiffers, message, vec![edit(case.slices.first().copied())]);
    }
    // Clients of a headless Service choose ports themselves.
    let ports: Vec<&ServicePort> = if case.service.is_headless() { Vec::new() } else { case.ports.clone() };
    let wrong: Vec<_> = ports
        .iter()
        .filter_map(|port| misfit(port, &fitting).map(|(cause, message)| (*port, cause, message)))
        .collect();
    let severity = if wrong.len() == ports.len() { Severity::Broken } else { Severity::Warning };
    let broken = severity == Severity::Broken && !wrong.is_empty();
    for (port, cause, message) in wrong {
        draft.find(severity, cause, message, vec![mend(cause, port, &fitting)]);
    }
    if !broken {
        states(case, &fitting, draft);
    }
}

fn fitting_families<'a>(case: &Case<'a>) -> Vec<&'a EndpointSlice> {
    let wanted: Vec<AddressType> = families(case.service).into_iter().map(AddressType::from).collect();
    case.slices.iter().copied().filter(|slice| wanted.contains(&slice.address_type)).collect()
}

fn edit(slice: Option<&EndpointSlice>) -> String {
    let meta = slice.map(|slice| &slice.metadata);
    let key = meta.map_or(Key::new("", ""), |meta| Key::new(meta.namespace.as_str(), meta.name.as_str()));
    format!("kubectl edit endpointslice {}", remedy::named(&key))
}

/// Gives the only port of the only slice what the Service's has; with more of them it is not clear which is meant.
fn mend(cause: Cause, port: &ServicePort, slices: &[&EndpointSlice]) -> String {
    let [slice] = slices else { return edit(slices.first().copied()) };
    let (field, value) = match cause {
        Cause::SlicePortProtocolDiffers => ("protocol", port.protocol.as_str()),
        _ => ("name", port.name.as_str()),
    };
    if slice.ports.len() != 1 {
        return edit(Some(slice));
    }
    let key = Key::new(slice.metadata.namespace.as_str(), slice.metadata.name.as_str());
    let change = json!([{"op": "add", "path": format!("/ports/0/{field}"), "value": value}]).to_string();
    format!("kubectl patch endpointslice {} --type=json -p {}", remedy::named(&key), remedy::quote(&change))
}

/// Why no slice has a port of the Service.
fn misfit(port: &ServicePort, slices: &[&EndpointSlice]) -> Option<(Cause, String)> {
    let all = || slices.iter().flat_map(|slice| &slice.ports);
    let same_name = |other: &&fairlead_api::view::EndpointPort| other.name.as_deref().unwrap_or_default() == port.name;
    let same_protocol = |other: &&fairlead_api::view::EndpointPort| other.protocol.unwrap_or_default() == port.protocol;
    if all().filter(same_name).any(|other| same_protocol(&other)) {
        return None;
    }
    if let Some(other) = all().find(same_name) {
        let has = other.protocol.unwrap_or_default();
        let message =
            format!("port {:?} of its slices is {has}, but that of the Service is {}", port.name, port.protocol);
        return Some((Cause::SlicePortProtocolDiffers, message));
    }
    let names = list(all().map(|other| format!("{:?}", other.name.as_deref().unwrap_or_default())));
    let names = if names.is_empty() { "none".to_owned() } else { names };
    let message =
        format!("the Service's port is named {:?}, but those of its slices {names}: names must be the same", port.name);
    Some((Cause::SlicePortNameDiffers, message))
}

/// Whether some endpoint is ready.
fn states(case: &Case<'_>, slices: &[&EndpointSlice], draft: &mut Draft) {
    let endpoints: Vec<_> = slices.iter().flat_map(|slice| &slice.endpoints).collect();
    if endpoints.is_empty() {
        let message = "its EndpointSlices have no endpoints".to_owned();
        return draft.broken(Cause::NoEndpointsByHand, message, vec![edit(slices.first().copied())]);
    }
    if endpoints.iter().any(|endpoint| is_ready(endpoint)) {
        return;
    }
    let serving = endpoints.iter().filter(|endpoint| is_terminating(endpoint) && is_serving(endpoint)).count();
    if serving > 0 && !case.service.is_headless() {
        let message = format!("all endpoints are on their way out; those that still serve ({serving}) get the traffic");
        return draft.warn(Cause::EndpointsTerminating, message, vec![edit(slices.first().copied())]);
    }
    let message = format!("no endpoint says that it is ready ({} in its slices)", endpoints.len());
    draft.broken(Cause::EndpointsNotReady, message, vec![edit(slices.first().copied())]);
}

/// What proxies send to another Service's address goes nowhere.
fn cluster_ips(case: &Case<'_>, draft: &mut Draft) {
    if !case.deep {
        return;
    }
    let endpoints = case.slices.iter().flat_map(|slice| &slice.endpoints).flat_map(|endpoint| &endpoint.addresses);
    let addresses: BTreeSet<&str> = endpoints.map(String::as_str).collect();
    let taken = case.objects.services().find_map(|(key, service)| {
        let ips = service.spec.cluster_ips.iter().chain([&service.spec.cluster_ip]);
        ips.map(String::as_str).find(|ip| addresses.contains(ip)).map(|ip| (key, ip))
    });
    if let Some((other, ip)) = taken {
        let message = format!(
            "endpoint {ip} is the cluster IP of Service {other}, and a Service cannot lead to another's address"
        );
        let alias = case.patch(&json!({"spec": {"type": "ExternalName", "externalName": case.whole_name(other)}}));
        draft.broken(Cause::EndpointIsClusterIp, message, vec![edit(case.slices.first().copied()), alias]);
    }
}

/// Something wrong, with what mends it.
type Wrong = (Cause, String, Vec<String>);

/// Why no slice names the Service.
fn nothing(case: &Case<'_>, draft: &mut Draft) {
    let found = not_mirrored(case).or_else(|| mislabelled(case)).or_else(|| misplaced(case));
    let (cause, message, remedy) = found.unwrap_or_else(|| {
        let message = "it has no selector, and nobody made an EndpointSlice for it".to_owned();
        let select = case.patch(&json!({"spec": {"selector": {"app": &*case.key.name}}}));
        let register = format!("fairlead register {} --address 192.0.2.7 --port 8080", remedy::named(case.key));
        (Cause::NoEndpointsByHand, message, vec![register, select])
    });
    draft.broken(cause, message, remedy);
}

fn not_mirrored(case: &Case<'_>) -> Option<Wrong> {
    let endpoints = case.objects.endpoints(case.key).filter(|endpoints| !endpoints.subsets.is_empty())?;
    let label = endpoints.metadata.labels.get(SKIP_MIRROR).is_some_and(|value| value == "true");
    let why = if label { format!(": their label {SKIP_MIRROR} forbids it") } else { String::new() };
    let remedy = match label {
        true => format!("kubectl label endpoints {} {SKIP_MIRROR}-", remedy::named(case.key)),
        false => remedy::get("endpoints", case.key),
    };
    let message = format!("its Endpoints are not mirrored into EndpointSlices{why}");
    Some((Cause::EndpointsNotMirrored, message, vec![remedy]))
}

/// A slice of its namespace that was meant for it.
fn mislabelled(case: &Case<'_>) -> Option<Wrong> {
    let key = case.key;
    let slices = case.objects.slices_in(&key.namespace).take(if case.deep { usize::MAX } else { GLANCED_AT });
    let (slice, said) = slices.into_iter().find_map(|slice| Some((slice, meant(case, slice)?)))?;
    let name = &slice.metadata.name;
    let message = format!("EndpointSlice {name} {said}, so it does not belong to Service {}", key.name);
    let remedy = format!(
        "kubectl label endpointslice {} {} --overwrite",
        remedy::named(&Key::new(&*key.namespace, name.as_str())),
        remedy::quote(&format!("{SERVICE_NAME}={}", key.name))
    );
    Some((Cause::SliceLabelWrong, message, vec![remedy]))
}

/// A slice for it in another namespace. Only looked for when somebody asks: there may be many.
fn misplaced(case: &Case<'_>) -> Option<Wrong> {
    let key = case.key;
    let mut owners =
        case.objects.slices().take(if case.deep { usize::MAX } else { 0 }).filter_map(|(_, slice)| owner(slice));
    let other = owners.find(|other| {
        other.name == key.name && other.namespace != key.namespace && case.objects.service(other).is_none()
    })?;
    let message =
        format!("EndpointSlices for {} are in namespace {}, where there is no such Service", key.name, other.namespace);
    let remedy = format!("kubectl get endpointslices -n {} -o yaml", remedy::quote(&other.namespace));
    Some((Cause::SliceInOtherNamespace, message, vec![remedy]))
}

/// What a slice says instead, if it was meant for the Service.
fn meant(case: &Case<'_>, slice: &EndpointSlice) -> Option<String> {
    let key = case.key;
    let named = slice.metadata.name == *key.name
        || slice.metadata.name.strip_prefix(&*key.name).is_some_and(|rest| rest.starts_with('-'));
    match owner(slice) {
        None if named => Some(format!("has no label {SERVICE_NAME}")),
        Some(other) if case.objects.service(&other).is_none() && (named || is_near(&key.name, &other.name)) => {
            Some(format!("has the label {SERVICE_NAME}={}, a Service that does not exist", other.name))
        }
        _ => None,
    }
}
