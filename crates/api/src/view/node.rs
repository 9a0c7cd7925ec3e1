//! Nodes as controllers and proxies see them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Condition, Meta, View, nullable};
use crate::Kind;

/// The label that says which zone a Node is in.
const ZONE: &str = "topology.kubernetes.io/zone";

/// A Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata.
    pub metadata: Meta,
    /// What is wanted.
    pub spec: NodeSpec,
    /// What is.
    pub status: NodeStatus,
}

impl Node {
    /// The zone it is in, if it says so.
    pub fn zone(&self) -> Option<&str> {
        self.metadata.labels.get(ZONE).map(String::as_str).filter(|zone| !zone.is_empty())
    }

    /// Whether its kubelet says that it is ready.
    pub fn is_ready(&self) -> bool {
        Condition::is_true(&self.status.conditions, "Ready")
    }
}

impl View for Node {
    const KIND: &'static Kind = &crate::kinds::NODE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// What is wanted of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// The ranges its Pods get addresses from.
    #[serde(rename = "podCIDRs", deserialize_with = "nullable")]
    pub pod_cidrs: Vec<String>,
    /// Whether new Pods may come.
    pub unschedulable: bool,
    /// What keeps Pods away.
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
}

/// Something that keeps Pods away from a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// What it is.
    pub key: String,
}

/// What a Node is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// What Pods may use, as quantities.
    #[serde(deserialize_with = "nullable")]
    pub allocatable: BTreeMap<String, String>,
    /// Its state.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    /// Its addresses.
    #[serde(deserialize_with = "nullable")]
    pub addresses: Vec<NodeAddress>,
}

/// An address of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `InternalIP`, `ExternalIP`, `Hostname`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The address or name.
    pub address: String,
}
