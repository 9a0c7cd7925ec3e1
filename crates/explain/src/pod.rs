//! Pods as one who asks why sees them: what endpoints are made of, and what a Pod says of itself when it is none.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::Kind;
use fairlead_api::view::{self, Condition, Container, Meta, PodIp, View};
use serde::{Deserialize, Deserializer};

/// A Pod with the reasons it gives.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Read")]
pub struct Pod {
    /// What endpoints are made of.
    pub view: Arc<view::Pod>,
    /// Conditions that others must set before it is ready.
    pub readiness_gates: Vec<String>,
    /// `Always`, `OnFailure` or `Never`.
    pub restart_policy: String,
    /// Names of containers with a readiness probe.
    pub probed: Vec<String>,
    /// Names of containers with a startup probe.
    pub startup_probed: Vec<String>,
    /// `ClusterFirst`, `Default`, `None` or `ClusterFirstWithHostNet`.
    pub dns_policy: String,
    /// What it sets for its resolver.
    pub dns_config: DnsConfig,
    /// Labels of Nodes it asks for.
    pub node_selector: BTreeMap<String, String>,
    /// Why it is in its phase, in a word: `Evicted`.
    pub reason: String,
    /// The same in a sentence.
    pub message: String,
    /// What its containers do.
    pub containers: Vec<ContainerStatus>,
    /// What its init containers do.
    pub init_containers: Vec<ContainerStatus>,
}

impl View for Pod {
    const KIND: &'static Kind = view::Pod::KIND;

    fn meta(&self) -> &Meta {
        &self.view.metadata
    }
}

/// What a Pod sets for its resolver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DnsConfig {
    /// Addresses of servers.
    #[serde(deserialize_with = "nullable")]
    pub nameservers: Vec<String>,
    /// Search path.
    #[serde(deserialize_with = "nullable")]
    pub searches: Vec<String>,
    /// `ndots` and others.
    #[serde(deserialize_with = "nullable")]
    pub options: Vec<DnsOption>,
}

/// An option of a resolver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DnsOption {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

/// What a container does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether its startup probe has passed.
    pub started: Option<bool>,
    /// How often it was started again.
    pub restart_count: i64,
    /// What it does.
    #[serde(deserialize_with = "nullable")]
    pub state: ContainerState,
    /// What it did before.
    #[serde(deserialize_with = "nullable")]
    pub last_state: ContainerState,
}

/// One of these, or nothing yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It waits.
    pub waiting: Option<Waiting>,
    /// It runs.
    pub running: Option<Running>,
    /// It has ended.
    pub terminated: Option<Stopped>,
}

/// A container that runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Running {}

/// Why a container waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// In a word: `CrashLoopBackOff`.
    pub reason: String,
    /// In a sentence.
    pub message: String,
}

/// How a container ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stopped {
    /// Its exit code.
    pub exit_code: i64,
    /// In a word: `OOMKilled`.
    pub reason: String,
    /// In a sentence.
    pub message: String,
}

fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// The object as it is written.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Read {
    metadata: Meta,
    spec: ReadSpec,
    status: ReadStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReadSpec {
    node_name: String,
    hostname: String,
    subdomain: String,
    host_network: bool,
    #[serde(deserialize_with = "nullable")]
    containers: Vec<ReadContainer>,
    #[serde(deserialize_with = "nullable")]
    init_containers: Vec<ReadContainer>,
    #[serde(deserialize_with = "nullable")]
    readiness_gates: Vec<Gate>,
    restart_policy: String,
    dns_policy: String,
    #[serde(deserialize_with = "nullable")]
    dns_config: DnsConfig,
    #[serde(deserialize_with = "nullable")]
    node_selector: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReadContainer {
    name: String,
    #[serde(deserialize_with = "nullable")]
    ports: Vec<view::ContainerPort>,
    restart_policy: Option<String>,
    readiness_probe: Option<Probe>,
    startup_probe: Option<Probe>,
}

/// That there is one is all that matters.
#[derive(Deserialize)]
struct Probe {}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Gate {
    condition_type: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReadStatus {
    phase: String,
    reason: String,
    message: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(rename = "podIPs", deserialize_with = "nullable")]
    pod_ips: Vec<PodIp>,
    #[serde(rename = "hostIP")]
    host_ip: String,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    init_container_statuses: Vec<ContainerStatus>,
}

impl std::convert::From<Read> for Pod {
    fn from(Read { metadata, spec, status }: Read) -> Pod {
        let with = |has: fn(&ReadContainer) -> bool| {
            spec.containers.iter().filter(|container| has(container)).map(|container| container.name.clone()).collect()
        };
        let (probed, startup_probed) = (
            with(|container| container.readiness_probe.is_some()),
            with(|container| container.startup_probe.is_some()),
        );
        let of = |containers: Vec<ReadContainer>| containers.into_iter().map(ReadContainer::view).collect();
        let view = view::Pod {
            metadata,
            spec: view::PodSpec {
                node_name: spec.node_name,
                hostname: spec.hostname,
                subdomain: spec.subdomain,
                host_network: spec.host_network,
                containers: of(spec.containers),
                init_containers: of(spec.init_containers),
            },
            status: view::PodStatus {
                phase: status.phase,
                pod_ip: status.pod_ip,
                pod_ips: status.pod_ips,
                host_ip: status.host_ip,
                conditions: status.conditions,
                container_statuses: Vec::new(),
            },
        };
        Pod {
            view: view.into(),
            readiness_gates: spec.readiness_gates.into_iter().map(|gate| gate.condition_type).collect(),
            restart_policy: spec.restart_policy,
            probed,
            startup_probed,
            dns_policy: spec.dns_policy,
            dns_config: spec.dns_config,
            node_selector: spec.node_selector,
            reason: status.reason,
            message: status.message,
            containers: status.container_statuses,
            init_containers: status.init_container_statuses,
        }
    }
}

impl ReadContainer {
    fn view(self) -> Container {
        Container { name: self.name, ports: self.ports, restart_policy: self.restart_policy }
    }
}
