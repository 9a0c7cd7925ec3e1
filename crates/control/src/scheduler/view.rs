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
pub(crate) struct Pod {
    pub(crate) metadata: Meta,
    pub(crate) spec: PodSpec,
    pub(crate) status: PodStatus,
}

impl View for Pod {
    const KIND: &'static Kind = &kinds::POD;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Pod {
    /// The Node it takes a place on, if any: one that has ended takes none.
    pub(crate) fn place(&self) -> Option<&str> {
        let ended = matches!(self.status.phase.as_str(), "Succeeded" | "Failed");
        Some(self.spec.node_name.as_str()).filter(|node| !node.is_empty() && !ended)
    }

    /// What its PodScheduled condition says is wrong, if it does.
    pub(crate) fn complaint(&self) -> Option<&str> {
        let scheduled = Condition::find(&self.status.conditions, "PodScheduled");
        scheduled.filter(|condition| condition.status == "False").map(|condition| condition.message.as_str())
    }
}

/// What is wanted of a Pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
    pub(crate) scheduler_name: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) affinity: Affinity,
    #[serde(deserialize_with = "nullable")]
    pub(crate) tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) scheduling_gates: Vec<serde::de::IgnoredAny>,
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
pub(crate) struct PodStatus {
    pub(crate) phase: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) conditions: Vec<Condition>,
}

/// What a Pod wants of its neighbours and its Node.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Affinity {
    #[serde(deserialize_with = "nullable")]
    pub(crate) node_affinity: NodeAffinity,
}

/// What a Pod wants of its Node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub(crate) required: Option<NodeSelector>,
}

/// One of its terms must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NodeSelector {
    #[serde(deserialize_with = "nullable")]
    pub(crate) node_selector_terms: Vec<Term>,
}

/// All of its requirements must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Term {
    #[serde(deserialize_with = "nullable")]
    pub(crate) match_expressions: Vec<Requirement>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) match_fields: Vec<Requirement>,
}

/// What must hold for one label or field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Requirement {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) values: Vec<String>,
}

/// What a Pod puts up with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Toleration {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// A Node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) metadata: Meta,
    pub(crate) spec: NodeSpec,
    pub(crate) status: NodeStatus,
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
pub(crate) struct NodeSpec {
    pub(crate) unschedulable: bool,
    #[serde(deserialize_with = "nullable")]
    pub(crate) taints: Vec<Taint>,
}

/// What keeps Pods away from a Node.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Taint {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// What a Node is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeStatus {
    #[serde(deserialize_with = "nullable")]
    pub(crate) allocatable: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) conditions: Vec<Condition>,
}

impl Node {
    /// Whether its agent says that it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        Condition::is_true(&self.status.conditions, "Ready")
    }

    /// How many Pods it takes, if it says so.
    pub(crate) fn room(&self) -> Option<usize> {
        self.status.allocatable.get("pods")?.parse().ok()
    }

    /// The amount of a resource that the Node has for Pods, in thousandths, if it says so.
    pub(super) fn capacity(&self, resource: &str) -> Option<i128> {
        milli(&self.status.allocatable, resource)
    }

    /// Whether two states of a Node differ in what counts here; agents write their Node often for other reasons.
    pub(crate) fn decides_as(&self, other: &Node) -> bool {
        self.spec == other.spec
            && self.metadata.labels == other.metadata.labels
            && self.is_ready() == other.is_ready()
            && self.status.allocatable == other.status.allocatable
    }
}
