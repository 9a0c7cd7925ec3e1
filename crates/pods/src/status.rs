//! The status of a Pod as a kubelet reports it, made from facts. Pure.

use fairlead_api::Look;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::order::{Order, Policy};
use crate::unit::{Ended, Role, State, Unit};

mod conditions;
#[cfg(test)]
mod tests;

/// What there is to report of a Pod.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// The Pod as the API has it.
    pub(crate) pod: &'a Value,
    /// The status reported before: what stays as it is keeps its time.
    pub(crate) before: &'a Value,
    pub(crate) units: &'a [Unit],
    pub(crate) order: &'a Order,
    /// Its network is there.
    pub(crate) network: bool,
    pub(crate) addresses: &'a [String],
    pub(crate) host_addresses: &'a [String],
    /// When this Node took it.
    pub(crate) began: Timestamp,
    /// Why it failed as a whole, and was ended: a reason and a message.
    pub(crate) failed: Option<(&'a str, &'a str)>,
    /// True if the Node has rejected the Pod, so that nothing of it was ever made.
    pub(crate) rejected: bool,
    pub(crate) now: Timestamp,
}

/// The fields of `status` this Node sets.
pub(crate) fn render(facts: &Facts<'_>) -> Value {
    let phase = phase(facts);
    if facts.rejected {
        return rejected(facts, phase);
    }
    let statuses = |main: bool| -> Vec<Value> {
        let chosen = facts.units.iter().enumerate().filter(|(_, unit)| (unit.role == Role::Main) == main);
        chosen.map(|(place, unit)| container(facts, place, unit, phase)).collect()
    };
    let mut status = json!({
        "phase": phase,
        "conditions": conditions::of(facts, phase),
        "startTime": seconds(facts.began),
        "containerStatuses": statuses(true),
        "qosClass": qos(facts.pod),
    });
    if !facts.pod.at("spec").list("initContainers").is_empty() {
        status.set("initContainerStatuses", statuses(false));
    }
    if let Some(generation) = facts.pod.at("metadata").int_opt("generation") {
        status.set("observedGeneration", generation);
    }
    let list = |addresses: &[String]| addresses.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>();
    let places = [("podIP", "podIPs", facts.addresses), ("hostIP", "hostIPs", facts.host_addresses)];
    for (one, all, addresses) in places {
        if let Some(first) = addresses.first() {
            status.set(one, first.as_str());
            status.set(all, list(addresses));
        }
    }
    let (reason, message) = facts.failed.map_or((Value::Null, Value::Null), |(r, m)| (r.into(), m.into()));
    status.set("reason", reason);
    status.set("message", message);
    status
}

/// The status of a Pod that its Node has rejected: no containers, no addresses, and the conditions
/// that others have set (pkg/kubelet/kubelet.go, rejectPod).
fn rejected(facts: &Facts<'_>, phase: &str) -> Value {
    let (reason, message) = facts.failed.unwrap_or_default();
    let mut status = json!({
        "phase": phase,
        "startTime": seconds(facts.began),
        "qosClass": qos(facts.pod),
        "reason": reason,
        "message": message,
    });
    if let Some(generation) = facts.pod.at("metadata").int_opt("generation") {
        status.set("observedGeneration", generation);
    }
    status
}

/// Where a Pod is in its life.
fn phase(facts: &Facts<'_>) -> &'static str {
    if facts.failed.is_some() {
        return "Failed";
    }
    match facts.order.over {
        Some(true) => return "Succeeded",
        Some(false) => return "Failed",
        None => {}
    }
    if !initialized(facts.units) {
        return "Pending";
    }
    let mains = || facts.units.iter().filter(|unit| unit.role == Role::Main);
    let waiting = mains().any(|unit| matches!(unit.state, State::Waiting { .. }) && unit.last.is_none());
    if waiting { "Pending" } else { "Running" }
}

/// Whether all that comes first has.
fn initialized(units: &[Unit]) -> bool {
    units.iter().all(|unit| match unit.role {
        Role::Init => unit.ended().is_some_and(|ended| ended.code == 0),
        Role::Sidecar => unit.started,
        Role::Main => true,
    }) || units.iter().any(|unit| unit.role == Role::Main && unit.begun)
}

fn container(facts: &Facts<'_>, place: usize, unit: &Unit, phase: &str) -> Value {
    let spec = crate::worker::container_of(facts.pod, &unit.name);
    let mut status = json!({
        "name": unit.name,
        "state": {},
        "lastState": {},
        "ready": is_ready(unit),
        "restartCount": unit.restarts(),
        "image": spec.text("image"),
        "imageID": unit.image_id,
        "started": unit.is_running() && unit.started,
    });
    let uid = facts.pod.at("metadata").text("uid");
    let id = |run: u32| format!("fairlead://{uid}/{}/{run}", unit.name);
    if unit.runs > 0 {
        status.set("containerID", id(unit.runs - 1));
    }
    let held_back = facts.order.held_back.contains(&place);
    let (state, last) = match &unit.state {
        State::Ended(ended) if held_back => (waits(facts, unit), Some(ended)),
        State::Ended(ended) => (terminated(ended, &id(ended.run)), unit.last.as_ref()),
        State::Running { since } => (json!({"running": {"startedAt": seconds(*since)}}), unit.last.as_ref()),
        State::Waiting { reason, message } => (waiting(facts, unit, reason, message, phase), unit.last.as_ref()),
    };
    status.set("state", state);
    if let Some(last) = last {
        status.set("lastState", terminated(last, &id(last.run)));
    }
    status
}

/// Whether a container counts as ready.
fn is_ready(unit: &Unit) -> bool {
    match unit.role {
        Role::Init => unit.ended().is_some_and(|ended| ended.code == 0),
        _ => unit.is_running() && unit.started && unit.ready,
    }
}

fn waits(facts: &Facts<'_>, unit: &Unit) -> Value {
    let message = format!(
        "back-off {} restarting failed container={} pod={}",
        go_seconds(unit.wait),
        unit.name,
        described(facts.pod)
    );
    json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
}

fn waiting(facts: &Facts<'_>, unit: &Unit, reason: &str, message: &str, phase: &str) -> Value {
    // A Pod with init containers initializes until each of its containers was started
    // (pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses).
    let usual = match facts.pod.at("spec").list("initContainers") {
        [] => "ContainerCreating",
        _ => "PodInitializing",
    };
    // A Pod that failed as a whole has a reason of its own, which clients show in place of none.
    let none = phase == "Failed" && (unit.role == Role::Main && initialized(facts.units));
    let reason = if reason.is_empty() && !none { usual } else { reason };
    let mut waiting = json!({"reason": reason});
    if !message.is_empty() {
        waiting.set("message", message);
    }
    json!({"waiting": waiting})
}

fn terminated(ended: &Ended, id: &str) -> Value {
    let mut terminated = json!({
        "exitCode": ended.code,
        "reason": ended.reason,
        "startedAt": seconds(ended.started),
        "finishedAt": seconds(ended.finished),
        "containerID": id,
    });
    if ended.signal != 0 {
        terminated.set("signal", ended.signal);
    }
    if !ended.message.is_empty() {
        terminated.set("message", ended.message.as_str());
    }
    json!({"terminated": terminated})
}

/// `web_default(uid)`, as messages name a Pod.
pub(crate) fn described(pod: &Value) -> String {
    let meta = pod.at("metadata");
    format!("{}_{}({})", meta.text("name"), meta.text("namespace"), meta.text("uid"))
}

/// `1m20s`.
pub(crate) fn go_seconds(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}

/// RFC 3339 without fractions, as the API has times.
pub(crate) fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    format!("{whole:.0}")
}

/// How much a Pod was promised. The server says so when the Pod is made; an older one may not.
fn qos(pod: &Value) -> &str {
    let known = pod.at("status").text("qosClass");
    if known.is_empty() { "BestEffort" } else { known }
}

/// The restart policy of a Pod.
pub(crate) fn policy(pod: &Value) -> Policy {
    Policy::read(pod.at("spec").text("restartPolicy"))
}
