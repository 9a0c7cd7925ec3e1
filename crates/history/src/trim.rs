//! What of an object is kept? Everything a Service depends on, without what changes all the time and says nothing: field
//! ownership, revisions, heartbeats, the copy that `kubectl apply` leaves. Also who wrote it last, by what the object says.

use fairlead_api::Look;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::Followed;
use whole::Whole;

#[cfg(test)]
mod tests;
mod whole;

/// Metadata that changes with every write, or repeats what stands elsewhere.
const NOISE: [&str; 4] = ["resourceVersion", "generation", "selfLink", "managedFields"];
/// Annotations of the same sort.
const NOISY_ANNOTATIONS: [&str; 3] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "control-plane.alpha.kubernetes.io/leader",
];
/// The label of Endpoints that repeat what the EndpointSlices of the same Service say.
const REPEATED: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");
/// What Events may be about.
const CONCERNED: [&str; 6] = ["Service", "EndpointSlice", "Endpoints", "Pod", "Node", "ServiceCIDR"];

/// An object as it is kept.
#[derive(Debug)]
pub struct Kept<'j> {
    /// What is kept, as JSON.
    pub text: Vec<u8>,
    managers: Option<&'j RawValue>,
}

/// One entry of `metadata.managedFields`, without the fields.
#[derive(Debug, Deserialize)]
struct Manager {
    #[serde(default)]
    manager: String,
    /// As it is written: always in UTC, so that texts compare as times do.
    #[serde(default)]
    time: Option<String>,
}

/// What is kept of an object; `None` if there is nothing to be said about it, or it cannot be read. Trimming what is trimmed
/// changes nothing.
pub fn trim(kind: Followed, json: &[u8]) -> Option<Kept<'_>> {
    let Whole { text, managers } = whole::read(json, kind == Followed::Endpoints)?;
    if is_whole(kind) {
        return Some(Kept { text, managers });
    }
    let object: Value = serde_json::from_slice(&text).ok()?;
    let object = match kind {
        Followed::Pod => pod(&object),
        Followed::Node => node(&object),
        _ => event(&object)?,
    };
    Some(Kept { text: serde_json::to_vec(&object).unwrap_or_default(), managers })
}

/// Whether all of an object is kept but the noise, so that trimming it is cheap.
pub(crate) fn is_whole(kind: Followed) -> bool {
    !matches!(kind, Followed::Pod | Followed::Node | Followed::Event)
}

impl Kept<'_> {
    /// The field manager that wrote last, and when, to the second.
    pub fn newest(&self) -> (Option<String>, Option<Timestamp>) {
        let managers = self.managers.map(|json| serde_json::from_str::<Vec<Manager>>(json.get()).unwrap_or_default());
        let newest = managers.into_iter().flatten().max_by(|one, other| one.time.cmp(&other.time));
        let (by, time) = newest.map_or((None, None), |one| (Some(one.manager), one.time));
        (by.filter(|by| !by.is_empty()), time.and_then(|time| time.parse().ok()))
    }
}

/// Whether the labels of Endpoints say that they repeat EndpointSlices.
fn repeated(labels: &RawValue) -> bool {
    serde_json::from_str::<Value>(labels.get()).is_ok_and(|labels| labels.text(REPEATED.0) == REPEATED.1)
}

/// Labels, where it runs, named ports, address, readiness, restarts, and whether it goes.
fn pod(object: &Value) -> Value {
    let (spec, status) = (object.at("spec"), object.at("status"));
    let named = |container: &Value| {
        let ports = container.list("ports").iter().filter(|port| !port.text("name").is_empty());
        let ports: Vec<Value> = ports.map(|port| some(port, &["name", "containerPort", "protocol"])).collect();
        (!ports.is_empty()).then(|| json!({"name": container.text("name"), "ports": ports}))
    };
    let containers: Vec<Value> = spec.list("containers").iter().filter_map(named).collect();
    let mut kept_spec = some(spec, &["nodeName", "hostNetwork", "hostname", "subdomain"]);
    if !containers.is_empty() {
        kept_spec.set("containers", containers);
    }
    let mut kept_status = some(status, &["phase", "reason", "podIP", "podIPs"]);
    ready_only(status, &mut kept_status);
    let restarted = |one: &&Value| one.int("restartCount") > 0;
    let restarts: Vec<Value> = status
        .list("containerStatuses")
        .iter()
        .filter(restarted)
        .map(|one| some(one, &["name", "restartCount"]))
        .collect();
    if !restarts.is_empty() {
        kept_status.set("containerStatuses", restarts);
    }
    json!({"metadata": metadata(object), "spec": kept_spec, "status": kept_status})
}

/// Labels, addresses, ranges, taints and readiness.
fn node(object: &Value) -> Value {
    let mut status = some(object.at("status"), &["addresses"]);
    ready_only(object.at("status"), &mut status);
    let spec = some(object.at("spec"), &["podCIDRs", "taints", "unschedulable"]);
    json!({"metadata": metadata(object), "spec": spec, "status": status})
}

fn ready_only(status: &Value, kept: &mut Value) {
    let ready = status.list("conditions").iter().find(|condition| condition.text("type") == "Ready");
    if let Some(ready) = ready {
        kept.set("conditions", vec![some(ready, &["type", "status", "reason", "message"])]);
    }
}

fn metadata(object: &Value) -> Value {
    some(object.at("metadata"), &["name", "namespace", "uid", "labels", "creationTimestamp", "deletionTimestamp"])
}

/// What happened, to whom, how often.
fn event(object: &Value) -> Option<Value> {
    let about = object.at("involvedObject");
    if !CONCERNED.contains(&about.text("kind")) {
        return None;
    }
    let mut kept = some(object, &["type", "reason", "message"]);
    let count = object.int_opt("count").or_else(|| object.at("series").int_opt("count"));
    if let Some(count) = count.filter(|count| *count > 1) {
        kept.set("count", count);
    }
    kept.set("involvedObject", some(about, &["kind", "namespace", "name"]));
    let source = [object.text("reportingComponent"), object.at("source").text("component")];
    if let Some(source) = source.into_iter().find(|source| !source.is_empty()) {
        kept.set("reportingComponent", source);
    }
    Some(kept)
}

/// Some fields of an object, those that are there.
fn some(object: &Value, names: &[&str]) -> Value {
    let mut kept = Map::new();
    for name in names {
        match object.get(name) {
            None | Some(Value::Null) => {}
            Some(value) => drop(kept.insert((*name).to_owned(), value.clone())),
        }
    }
    Value::Object(kept)
}
