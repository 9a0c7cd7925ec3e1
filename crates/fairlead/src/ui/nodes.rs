//! Nodes: whether they are ready and why not, what runs on them, and how far the proxy of this one is.

use std::collections::BTreeMap;

use fairlead_api::Failure;
use fairlead_api::view::{Condition, Node};
use fairlead_explain::Objects;
use fairlead_proxy::{Programmed, View};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Ui;
use crate::lb;

#[cfg(test)]
mod tests;

/// All Nodes.
pub(super) async fn answer(ui: &Ui) -> Result<Value, Failure> {
    let owners = match &ui.balancers {
        Some(page) => lb::owners(page).await,
        None => Vec::new(),
    };
    let board = ui.board.open().await?;
    let (objects, proxy) = (board.objects(), proxy(&ui.here.proxy));
    let pods = pods(&objects);
    let told = objects.nodes().map(|node| {
        let name = node.metadata.name.as_str();
        let announced = owners.iter().filter(|(_, owner)| owner == name).map(|(address, _)| address.as_str());
        let proxy = proxy.as_ref().filter(|(of, _)| of == name).map(|(_, state)| state.clone());
        item(node, pods.get(name).copied().unwrap_or_default(), proxy, announced.collect())
    });
    Ok(json!({"items": told.collect::<Vec<_>>()}))
}

fn item(node: &Node, pods: usize, proxy: Option<Value>, announces: Vec<&str>) -> Value {
    let addresses: Vec<&str> = node.status.addresses.iter().map(|one| one.address.as_str()).collect();
    json!({
        "name": node.metadata.name,
        "ready": node.is_ready(),
        "why": why(node),
        "addresses": addresses,
        "podRanges": node.spec.pod_cidrs,
        "pods": pods,
        "proxy": proxy,
        "announces": announces,
    })
}

/// Why a Node is not ready, or gets no new Pods; empty if all is well.
fn why(node: &Node) -> String {
    let ready = Condition::find(&node.status.conditions, "Ready");
    match ready {
        _ if node.is_ready() && node.spec.unschedulable => "gets no new Pods (cordoned)".to_owned(),
        _ if node.is_ready() => String::new(),
        None => "nobody says whether it is ready".to_owned(),
        Some(condition) if condition.status == "Unknown" => "it has not been heard of lately".to_owned(),
        Some(_) => "it says that it is not ready".to_owned(),
    }
}

/// How many Pods each Node has.
fn pods(objects: &Objects) -> BTreeMap<&str, usize> {
    let mut pods = BTreeMap::new();
    for (_, pod) in objects.pods().filter(|(_, pod)| !pod.view.is_terminal()) {
        *pods.entry(pod.view.spec.node_name.as_str()).or_default() += 1;
    }
    pods
}

/// The Node whose proxy is in this process, and how that does.
fn proxy(view: &View) -> Option<(String, Value)> {
    let (node, mode, state) = (view.node()?, view.mode()?, view.programmed()?);
    Some((node.to_owned(), state_of(mode.as_str(), &state)))
}

fn state_of(mode: &str, state: &Programmed) -> Value {
    let time = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "mode": mode,
        "programmed": state.revision.to_string(),
        "behind": state.seen.saturating_sub(state.revision),
        "last": state.last.map(time),
        "error": state.error,
    })
}
