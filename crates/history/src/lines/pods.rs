//! What changed about a Pod or a Node, as far as a Service cares.

use fairlead_api::Look;
use serde_json::Value;

use super::{fields, services};

/// What has words of its own below.
const TOLD: [&str; 6] = [
    "metadata.deletionTimestamp",
    "metadata.uid",
    "status.conditions",
    "status.podIP",
    "status.podIPs",
    "status.containerStatuses",
];

pub(super) fn pod(name: &str, before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let who = format!("Pod {name}");
    let Some(after) = after else { return vec![format!("{who} is gone")] };
    let nothing = Value::Null;
    let old = before.unwrap_or(&nothing);
    let mut lines = Vec::new();
    if before.is_some() && old.at("metadata").text("uid") != after.at("metadata").text("uid") {
        lines.push(format!("{who} was deleted and made anew"));
    }
    lines.extend(services::goes(old, after).map(|line| format!("{who} {line}")));
    lines.extend(address(&who, old, after));
    lines.extend(readiness(&who, old, after));
    lines.extend(restarts(&who, old, after));
    match before {
        Some(before) => lines.extend(fields::changed(before, after, &TOLD)),
        None => lines.insert(0, created(&who, after)),
    }
    if let (Some(before), true) = (before, lines.is_empty()) {
        lines.extend(fields::changed(before, after, &[]));
    }
    lines
}

pub(super) fn node(name: &str, before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let who = format!("Node {name}");
    let Some(after) = after else { return vec![format!("{who} is gone")] };
    let nothing = Value::Null;
    let mut lines: Vec<String> = readiness(&who, before.unwrap_or(&nothing), after).into_iter().collect();
    match before {
        Some(before) => lines.extend(fields::changed(before, after, &TOLD)),
        None => lines.insert(0, format!("{who} is new")),
    }
    if let (Some(before), true) = (before, lines.is_empty()) {
        lines.extend(fields::changed(before, after, &[]));
    }
    lines
}

fn created(who: &str, pod: &Value) -> String {
    match pod.at("spec").text("nodeName") {
        "" => format!("{who} is new"),
        node => format!("{who} is new, on Node {node}"),
    }
}

fn address(who: &str, before: &Value, after: &Value) -> Option<String> {
    let (old, new) = (addresses(before), addresses(after));
    match (old == new, old.is_empty(), new.is_empty()) {
        (true, ..) => None,
        (_, true, _) => Some(format!("{who} has address {new}")),
        (_, _, true) => Some(format!("{who} lost its address {old}")),
        _ => Some(format!("{who} has address {new}, no longer {old}")),
    }
}

fn addresses(pod: &Value) -> String {
    let status = pod.at("status");
    let all: Vec<&str> = status.list("podIPs").iter().map(|one| one.text("ip")).collect();
    if all.is_empty() { status.text("podIP").to_owned() } else { all.join(", ") }
}

/// Who is new and not ready need not be told so.
fn readiness(who: &str, before: &Value, after: &Value) -> Option<String> {
    let (old, new) = (ready(before), ready(after));
    let (was, is) = (old.text("status") == "True", new.text("status") == "True");
    let why = [new.text("reason"), new.text("message")];
    let why = why.iter().filter(|text| !text.is_empty()).copied().collect::<Vec<_>>().join(": ");
    match (was, is) {
        (false, true) => Some(format!("{who} became ready")),
        (true, false) if why.is_empty() => Some(format!("{who} is no longer ready")),
        (true, false) => Some(format!("{who} is no longer ready: {why}")),
        (false, false) if !old.is_null() && old.text("reason") != new.text("reason") && !why.is_empty() => {
            Some(format!("{who} is not ready: {why}"))
        }
        _ => None,
    }
}

fn ready(object: &Value) -> &Value {
    static NONE: Value = Value::Null;
    object.at("status").list("conditions").iter().find(|one| one.text("type") == "Ready").unwrap_or(&NONE)
}

fn restarts(who: &str, before: &Value, after: &Value) -> Vec<String> {
    let count = |pod: &Value, name: &str| {
        let all = pod.at("status").list("containerStatuses");
        all.iter().find(|one| one.text("name") == name).map_or(0, |one| one.int("restartCount"))
    };
    let statuses = after.at("status").list("containerStatuses").iter();
    let more = statuses.filter(|one| one.int("restartCount") > count(before, one.text("name")));
    let line = |one: &Value| {
        format!("{who}: container {} was started again, {} times so far", one.text("name"), one.int("restartCount"))
    };
    more.map(line).collect()
}
