//! Pods and Nodes as far as they decide who goes where.

use std::collections::BTreeMap;

use fairlead_api::kinds::pod::requests::{self, Demand};
use fairlead_api::quantity::Quantity;
use fairlead_api::view::{Condition, Meta, View};
use fairlead_api::{Kind, kinds};
use serde::{Deserialize, Deserializer};

/// Reads null as what is absent reads as.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// A Pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    pub(super) metadata: Meta,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

impl View for Pod {
    const KIND: &'static Kind = &kinds::POD;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Pod {
    /// The Node it takes a place on, if any: one that has ended takes none.
    pub(super) fn place(&self) -> Option<&str> {
        let ended = matches!(self.status.phase.as_str(), "Succeeded" | "Failed");
        Some(self.spec.node_name.as_str()).filter(|node| !node.is_empty() && !ended)
    }

    /// What its PodScheduled condition says is wrong, if it does.
    pub(super) fn complaint(&self) -> Option<&str> {
        let scheduled = Condition::find(&self.status.conditions, "PodScheduled");
        scheduled.filter(|condition| condition.status == "False").map(|condition| condition.message.as_str())
    }
}

/// What is wanted of a Pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) node_name: String,
    pub(super) scheduler_name: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub(super) affinity: Affinity,
    #[serde(deserialize_with = "nullable")]
    pub(super) tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "nullable")]
    pub(super) scheduling_gates: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    pub(super) init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub(super) containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub(super) resources: Resources,
    #[serde(deserialize_with = "nullable")]
    pub(super) overhead: BTreeMap<String, String>,
}

impl PodSpec {
    /// The amount of a resource that the Pod requests, in thousandths.
    pub(super) fn requested(&self, resource: &str) -> i128 {
        let overhead = milli(&self.overhead, resource).unwrap_or_default();
        let amount = |container: &Container| milli(&container.resources.requests, resource).unwrap_or_default();
        let init = self.init_containers.iter().map(|container| match container.restart_policy.as_str() {
            "Always" => Demand::Sidecar(amount(container)),
            _ => Demand::Init(amount(container)),
        });
        let mains = self.containers.iter().map(|container| Demand::Main(amount(container)));
        milli(&self.resources.requests, resource).unwrap_or_else(|| requests::total(init.chain(mains))) + overhead
    }
}

/// Returns an amount of a list of resources, in thousandths.
fn milli(list: &BTreeMap<String, String>, resource: &str) -> Option<i128> {
    Some(Quantity::parse(list.get(resource)?).ok()?.milli())
}

/// A container, as far as it requests something.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    #[serde(deserialize_with = "nullable")]
    restart_policy: String,
    #[serde(deserialize_with = "nullable")]
    resources: Resources,
}

/// Amounts of resources that a container or a Pod requests.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    #[serde(deserialize_with = "nullable")]
    requests: BTreeMap<String, String>,
}

/// What is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    pub(super) phase: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) conditions: Vec<Condition>,
}

/// What a Pod wants of its neighbours and its Node.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Affinity {
    #[serde(deserialize_with = "nullable")]
    pub(super) node_affinity: NodeAffinity,
}

/// What a Pod wants of its Node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(super) required: Option<NodeSelector>,
}

/// One of its terms must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeSelector {
    #[serde(deserialize_with = "nullable")]
    pub(super) node_selector_terms: Vec<Term>,
}

/// All of its requirements must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Term {
    #[serde(deserialize_with = "nullable")]
    pub(super) match_expressions: Vec<Requirement>,
    #[serde(deserialize_with = "nullable")]
    pub(super) match_fields: Vec<Requirement>,
}

/// What must hold for one label or field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Requirement {
    pub(super) key: String,
    pub(super) operator: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) values: Vec<String>,
}

/// What a Pod puts up with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Toleration {
    pub(super) key: String,
    pub(super) operator: String,
    pub(super) value: String,
    pub(super) effect: String,
}

/// A Node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    pub(super) metadata: Meta,
    pub(super) spec: NodeSpec,
    pub(super) status: NodeStatus,
}

impl View for Node {
    const KIND: &'static Kind = &kinds::NODE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// What is wanted of a Node.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct NodeSpec {
    pub(super) unschedulable: bool,
    #[serde(deserialize_with = "nullable")]
    pub(super) taints: Vec<Taint>,
}

/// What keeps Pods away from a Node.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Taint {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) effect: String,
}

/// What a Node is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatus {
    #[serde(deserialize_with = "nullable")]
    pub(super) allocatable: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub(super) conditions: Vec<Condition>,
}

impl Node {
    /// Whether its agent says that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        Condition::is_true(&self.status.conditions, "Ready")
    }

    /// How many Pods it takes, if it says so.
    pub(super) fn room(&self) -> Option<usize> {
        self.status.allocatable.get("pods")?.parse().ok()
    }

    /// The amount of a resource that the Node has for Pods, in thousandths, if it says so.
    pub(super) fn capacity(&self, resource: &str) -> Option<i128> {
        milli(&self.status.allocatable, resource)
    }

    /// Whether two states of a Node differ in what counts here; agents write their Node often for other reasons.
    pub(super) fn decides_as(&self, other: &Node) -> bool {
        self.spec == other.spec
            && self.metadata.labels == other.metadata.labels
            && self.is_ready() == other.is_ready()
            && self.status.allocatable == other.status.allocatable
    }
}
