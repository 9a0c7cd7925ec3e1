//! Do the slices of a Service with selector say what its Pods are?

use std::collections::BTreeSet;

use fairlead_api::ip;
use fairlead_api::view::{EndpointPort, Protocol};
use fairlead_endpoints::members::families;

use super::is_ready;
use crate::steps::{Case, Draft, count, list, remedy};
use crate::{Cause, Severity};

/// A ready endpoint: its address, and where its ports lead.
type Ready = (String, BTreeSet<(String, Protocol, i32)>);

pub(super) fn look(case: &Case<'_>, draft: &mut Draft) {
    let (wanted, written) = (wanted(case), written(case));
    let lacking = addresses(wanted.difference(&written));
    let extra = addresses(written.difference(&wanted));
    if case.slices.is_empty() && !wanted.is_empty() {
        let message = format!("no EndpointSlice was made for its {}", count(wanted.len(), "ready endpoint"));
        return report(case, Severity::Broken, Cause::SlicesMissing, message, draft);
    }
    if lacking.is_empty() && extra.is_empty() {
        if is_dead(case) {
            let message = "they are right, but nobody will change them when Pods do".to_owned();
            report(case, Severity::Warning, Cause::SlicesStale, message, draft);
        }
        return;
    }
    let parts = [
        (lacking.intersection(&extra).collect::<Vec<_>>(), "listed with other ports"),
        (lacking.difference(&extra).collect(), "missing"),
        (extra.difference(&lacking).collect(), "listed though no such endpoint is ready"),
    ];
    let parts = parts.into_iter().filter(|(addresses, _)| !addresses.is_empty());
    let parts: Vec<String> = parts.map(|(addresses, what)| format!("{} {what}", list(addresses))).collect();
    let severity = if wanted.intersection(&written).next().is_none() { case.severity() } else { Severity::Warning };
    report(
        case,
        severity,
        Cause::SlicesStale,
        format!("EndpointSlices are not what the Pods are: {}", parts.join("; ")),
        draft,
    );
}

fn is_dead(case: &Case<'_>) -> bool {
    case.evidence.controller.as_ref().is_some_and(|controller| !controller.alive)
}

fn report(case: &Case<'_>, severity: Severity, cause: Cause, message: String, draft: &mut Draft) {
    let mut commands = vec![remedy_list(case)];
    if !is_dead(case) {
        return draft.find(severity, cause, message, commands);
    }
    let controller = case.evidence.controller.as_ref();
    commands.splice(0..0, controller.and_then(|controller| controller.start.clone()));
    let name = controller.map_or("the controller", |controller| controller.name.as_str());
    draft.find(severity, Cause::ControllerNotRunning, format!("{name} does not run: {message}"), commands);
}

fn remedy_list(case: &Case<'_>) -> String {
    let selector = format!("kubernetes.io/service-name={}", case.key.name);
    format!("kubectl get endpointslices -n {} -l {}", remedy::quote(&case.key.namespace), remedy::quote(&selector))
}

/// The ready endpoints that Pods make.
fn wanted(case: &Case<'_>) -> BTreeSet<Ready> {
    let mut ready = BTreeSet::new();
    for family in families(case.service) {
        case.members(family, |members| {
            for group in members.groups {
                let ports = ports(&group.ports);
                let members = group.members.values().filter(|member| member.conditions.ready == Some(true));
                let first = members.filter_map(|member| member.addresses.first());
                ready.extend(first.map(|address| (address.clone().into_owned(), ports.clone())));
            }
        });
    }
    ready
}

/// Those that slices of the controller list.
fn written(case: &Case<'_>) -> BTreeSet<Ready> {
    let mut ready = BTreeSet::new();
    for slice in case.slices.iter().filter(|slice| case.is_made_from_pods(slice)) {
        let ports = ports(&slice.ports);
        let endpoints = slice.endpoints.iter().filter(|endpoint| is_ready(endpoint));
        let first = endpoints.filter_map(|endpoint| endpoint.addresses.first());
        ready.extend(first.map(|address| (canonical(address), ports.clone())));
    }
    ready
}

/// Controllers write addresses as the Pod has them, or in canonical form.
fn canonical(address: &str) -> String {
    ip::parse(address).map_or_else(|| address.to_owned(), ip::canonical)
}

fn ports(ports: &[EndpointPort]) -> BTreeSet<(String, Protocol, i32)> {
    let each = |port: &EndpointPort| {
        (port.name.clone().unwrap_or_default(), port.protocol.unwrap_or_default(), port.port.unwrap_or_default())
    };
    ports.iter().map(each).collect()
}

fn addresses<'a>(endpoints: impl Iterator<Item = &'a Ready>) -> BTreeSet<&'a String> {
    endpoints.map(|(address, _)| address).collect()
}
