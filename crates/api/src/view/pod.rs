//! Pods as controllers and DNS see them: addresses, ports, readiness.

use serde::Deserialize;

use super::{Meta, Protocol, View, nullable};
use crate::Kind;

/// A Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
    pub metadata: Meta,
    /// What is wanted.
    pub spec: PodSpec,
    /// What is.
    pub status: PodStatus,
}

impl Pod {
    /// Its Ready condition, if it has one.
    pub fn ready_condition(&self) -> Option<&Condition> {
        Condition::find(&self.status.conditions, "Ready")
    }

    /// Whether it says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.ready_condition().is_some_and(|condition| condition.status == "True")
    }

    /// Whether all its containers have ended for good.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether it is on its way out.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Its addresses as written, in order. One who fills in only `podIP` still has one.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let single = Some(self.status.pod_ip.as_str()).filter(|ip| !ip.is_empty() && self.status.pod_ips.is_empty());
        self.status.pod_ips.iter().map(|pod_ip| pod_ip.ip.as_str()).filter(|ip| !ip.is_empty()).chain(single)
    }
}

impl View for Pod {
    const KIND: &'static Kind = &crate::kinds::POD;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// What is wanted of a Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The Node it is on.
    pub node_name: String,
    /// Its host name.
    pub hostname: String,
    /// The Service whose name its own name goes under.
    pub subdomain: String,
    /// Whether it has the addresses of its Node.
    pub host_network: bool,
    /// Its containers.
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    /// Those that run before, and the sidecars.
    #[serde(deserialize_with = "nullable")]
    pub init_containers: Vec<Container>,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// The name.
    pub name: String,
    /// Its ports.
    #[serde(deserialize_with = "nullable")]
    pub ports: Vec<ContainerPort>,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    /// The name, which a target port may give.
    pub name: String,
    /// The number.
    pub container_port: i32,
    /// The port of the Node that leads to it, 0 for none.
    pub host_port: i32,
    /// The protocol.
    pub protocol: Protocol,
}

/// What a Pod is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: String,
    /// The first address.
    #[serde(rename = "podIP")]
    pub pod_ip: String,
    /// All addresses.
    #[serde(rename = "podIPs", deserialize_with = "nullable")]
    pub pod_ips: Vec<PodIp>,
    /// The address of its Node.
    #[serde(rename = "hostIP")]
    pub host_ip: String,
    /// Its state.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    /// State of its containers.
    #[serde(deserialize_with = "nullable")]
    pub container_statuses: Vec<ContainerStatus>,
}

/// State of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Number of times the container was started again.
    pub restart_count: i32,
}

/// An address of a Pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodIp {
    /// The address.
    pub ip: String,
}

/// A fact about an object that its keeper reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When the status last changed, RFC 3339.
    pub last_transition_time: Option<String>,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

impl Condition {
    /// The first of that type.
    pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
        conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether the first of that type is true.
    pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
        Condition::find(conditions, kind).is_some_and(|condition| condition.status == "True")
    }
}
