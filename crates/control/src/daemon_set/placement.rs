//! Which Nodes run the Pod of a DaemonSet, and the Pod for one Node (pkg/controller/daemon,
//! NodeShouldRunDaemonPod). Pure.

use fairlead_api::{Look, kinds};
use serde_json::{Value, json};

use super::view::DaemonSet;
use crate::ownership;
use crate::revisions::HASH_LABEL;
use crate::scheduler::fit;
use crate::scheduler::view::{Node, Pod, PodSpec, Taint};

/// Taints that the Pods of a DaemonSet tolerate: it takes part in what a Node needs to work, so a
/// Node in trouble keeps it. (pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.)
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// Tolerated by Pods that use the network of the Node.
const NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// What a Node and a DaemonSet have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placement {
    /// The Node should have a Pod.
    pub(super) should_run: bool,
    /// A Pod that the Node has may stay.
    pub(super) may_stay: bool,
}

/// The part of a template that decides about Nodes. A template that cannot be read fits no Node.
pub(super) fn template_spec(set: &DaemonSet) -> Option<PodSpec> {
    let spec = with_tolerations(set.spec.template.at("spec"));
    serde_json::from_value(spec).ok()
}

/// Decides about one Node.
pub(super) fn place(spec: &PodSpec, node: &Node) -> Placement {
    let none = Placement { should_run: false, may_stay: false };
    if !spec.node_name.is_empty() && spec.node_name != node.metadata.name {
        return none;
    }
    if !fit::wants(spec, node) {
        return none;
    }
    let refused = |effect: &str| {
        let mut taints = node.spec.taints.iter().filter(|taint| taint.effect == effect);
        taints.any(|taint| !fit::repeats_condition(taint) && !fit::tolerates_taint(spec, taint))
    };
    // Taints that repeat what the Node says of itself may be outdated; the scheduler asks the Node,
    // too.
    let not_ready = Taint { key: "node.kubernetes.io/not-ready".to_owned(), ..no_schedule() };
    let starts_here = node.is_ready() || fit::tolerates_taint(spec, &not_ready);
    let is_expelled = refused("NoExecute");
    Placement { should_run: !is_expelled && starts_here && !refused("NoSchedule"), may_stay: !is_expelled }
}

fn no_schedule() -> Taint {
    Taint { effect: "NoSchedule".to_owned(), ..Taint::default() }
}

/// The Node that a Pod of a DaemonSet is for: the one it is on, or the one it is to be bound to.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    if !pod.spec.node_name.is_empty() {
        return Some(&pod.spec.node_name);
    }
    let required = pod.spec.affinity.node_affinity.required.as_ref()?;
    let mut fields = required.node_selector_terms.iter().flat_map(|term| &term.match_fields);
    let name = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    name.values.first().map(String::as_str)
}

/// The Pod for a Node. The scheduler binds it: it requires the Node by name.
pub(super) fn pod_for(set: &DaemonSet, node: &str, hash: &str) -> Value {
    let template = &set.spec.template;
    let mut labels = template.at("metadata").at("labels").clone();
    labels.set(HASH_LABEL, hash);
    let generation = set.metadata.annotations.get("deprecated.daemonset.template.generation");
    if let Some(generation) = generation {
        labels.set("pod-template-generation", generation.as_str());
    }
    let mut metadata = json!({
        "generateName": format!("{}-", set.metadata.name), "namespace": set.metadata.namespace,
        "labels": labels,
        "ownerReferences": [ownership::reference(&kinds::DAEMON_SET, &set.metadata)],
    });
    for field in ["annotations", "finalizers"] {
        let value = template.at("metadata").at(field);
        if !value.is_null() {
            metadata.set(field, value.clone());
        }
    }
    let mut spec = with_tolerations(template.at("spec"));
    require_node(&mut spec, node);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Every term of the required node affinity names the Node; what a term says of labels has been
/// judged already.
fn require_node(spec: &mut Value, node: &str) {
    let name = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    let mut affinity = spec.at("affinity").clone();
    if !affinity.is_object() {
        affinity = json!({});
    }
    let mut of_node = affinity.at("nodeAffinity").clone();
    if !of_node.is_object() {
        of_node = json!({});
    }
    of_node.set(REQUIRED, json!({"nodeSelectorTerms": [{"matchFields": name}]}));
    affinity.set("nodeAffinity", of_node);
    spec.set("affinity", affinity);
}

fn with_tolerations(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let mut tolerations = spec.list("tolerations").to_vec();
    let network = spec.flag("hostNetwork").then_some(NETWORK);
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        if !tolerations.contains(&toleration) {
            tolerations.push(toleration);
        }
    }
    spec.set("tolerations", tolerations);
    spec
}

#[cfg(test)]
mod tests;
