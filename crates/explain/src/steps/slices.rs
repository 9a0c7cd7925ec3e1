//! Do EndpointSlices list what they should: the Pods of a Service with selector ([`selected`]), or endpoints made by hand that
//! fit the Service ([`by_hand`])?

use std::net::IpAddr;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{Endpoint, EndpointSlice};
use fairlead_api::weights::{SliceWeights, WEIGHT, WEIGHTS};

use super::{Case, Draft, list, remedy};
use crate::Cause;

mod by_hand;
mod selected;

pub(super) fn look(case: &Case<'_>) -> Draft {
    if case.is_alias() {
        return Draft::skipped("an alias has no endpoints");
    }
    if case.is_own_dns() {
        return Draft::skipped("every Node answers at its address itself");
    }
    let mut draft = Draft::default();
    for slice in case.slices.iter().take(8) {
        draft.see(text(slice));
    }
    if case.service.spec.selector.is_empty() {
        by_hand::look(case, &mut draft);
    } else {
        selected::look(case, &mut draft);
    }
    weights(case, &mut draft);
    draft
}

/// `web-abc12: IPv4 http 9376/TCP: 10.244.0.7, 10.244.0.8 (not ready)`
fn text(slice: &EndpointSlice) -> String {
    let ports = slice.ports.iter().map(|port| {
        let number = port.port.map_or("every port".to_owned(), |port| port.to_string());
        format!("{} {number}/{}", port.name.as_deref().unwrap_or_default(), port.protocol.unwrap_or_default())
            .trim()
            .to_owned()
    });
    let endpoints = slice.endpoints.iter().map(|endpoint| {
        let address = endpoint.addresses.first().map_or("", String::as_str);
        let state = match (is_ready(endpoint), is_terminating(endpoint)) {
            (_, true) => " (terminating)",
            (false, _) => " (not ready)",
            _ => "",
        };
        format!("{address}{state}")
    });
    format!("{}: {} {}: {}", slice.metadata.name, slice.address_type.as_str(), list(ports), list(endpoints))
}

/// What is not said counts as yes for those who read slices.
pub(crate) fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.ready.unwrap_or(true)
}

fn is_terminating(endpoint: &Endpoint) -> bool {
    endpoint.conditions.terminating.unwrap_or(false)
}

/// Answers, even if it is on its way out.
pub(crate) fn is_serving(endpoint: &Endpoint) -> bool {
    endpoint.conditions.serving.unwrap_or_else(|| is_ready(endpoint))
}

/// Whether every ready endpoint has weight 0.
fn weights(case: &Case<'_>, draft: &mut Draft) {
    let mut weights = Vec::new();
    for slice in &case.slices {
        let text = slice.metadata.annotations.get(WEIGHT).map_or("", String::as_str);
        let read = SliceWeights::read(text, |_| ());
        let ready = slice.endpoints.iter().filter(|endpoint| is_ready(endpoint));
        let addresses = ready.filter_map(|endpoint| endpoint.addresses.first()).filter_map(|text| ip::parse(text));
        weights.extend(addresses.map(|address: IpAddr| read.of(address)));
    }
    if !weights.is_empty() && weights.iter().all(|weight| *weight == 0) && !case.service.is_headless() {
        let message = format!("every endpoint has weight 0 ({}): none gets new connections", weights.len());
        draft.broken(Cause::AllWeightsZero, message, heavier(case));
    }
}

/// Takes the weights away where they are said.
fn heavier(case: &Case<'_>) -> Vec<String> {
    let mut commands = Vec::new();
    if case.service.metadata.annotations.contains_key(WEIGHTS) {
        commands.push(format!("kubectl annotate service {} {WEIGHTS}-", remedy::named(case.key)));
    }
    let pods = case.pods.iter().map(|pod| ("pod", &pod.view.metadata));
    let by_hand = case.slices.iter().filter(|slice| !case.is_made_from_pods(slice));
    let said = pods.chain(by_hand.map(|slice| ("endpointslice", &slice.metadata)));
    let said = said.filter(|(_, meta)| meta.annotations.contains_key(WEIGHT)).take(3);
    commands.extend(said.map(|(kind, meta)| {
        let key = Key::new(meta.namespace.as_str(), meta.name.as_str());
        format!("kubectl annotate {kind} {} {WEIGHT}-", remedy::named(&key))
    }));
    if commands.is_empty() { vec![case.show()] } else { commands }
}
