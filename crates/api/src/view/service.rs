//! Services as controllers, proxies, DNS and load balancers see them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Family, Meta, Protocol, View, nullable};
use crate::Kind;

/// A Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Metadata.
    pub metadata: Meta,
    /// What is wanted.
    pub spec: ServiceSpec,
    /// What is.
    pub status: ServiceStatus,
}

impl Service {
    /// Whether it has cluster IPs. A Service of type ExternalName has none either.
    pub fn has_cluster_ip(&self) -> bool {
        !self.spec.cluster_ip.is_empty() && self.spec.cluster_ip != "None"
    }

    /// Whether it asked for no cluster IP.
    pub fn is_headless(&self) -> bool {
        self.spec.cluster_ip == "None"
    }

    /// Whether it selects Pods with these labels. Without a selector it selects none.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = &self.spec.selector;
        !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

impl View for Service {
    const KIND: &'static Kind = &crate::kinds::SERVICE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// What is wanted of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// Its type.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: ServiceType,
    /// Which Pods stand behind it.
    #[serde(deserialize_with = "nullable")]
    pub selector: BTreeMap<String, String>,
    /// Its ports.
    #[serde(deserialize_with = "nullable")]
    pub ports: Vec<ServicePort>,
    /// The first cluster IP, `None` for a headless Service, empty for ExternalName.
    #[serde(rename = "clusterIP")]
    pub cluster_ip: String,
    /// All cluster IPs.
    #[serde(rename = "clusterIPs", deserialize_with = "nullable")]
    pub cluster_ips: Vec<String>,
    /// Families of its addresses, the first first.
    #[serde(deserialize_with = "nullable")]
    pub ip_families: Vec<Family>,
    /// `SingleStack`, `PreferDualStack` or `RequireDualStack`.
    pub ip_family_policy: Option<String>,
    /// Addresses from elsewhere that lead here.
    #[serde(rename = "externalIPs", deserialize_with = "nullable")]
    pub external_ips: Vec<String>,
    /// The name an ExternalName Service stands for.
    pub external_name: String,
    /// Whether endpoints count as ready whatever they say.
    pub publish_not_ready_addresses: bool,
    /// `PreferClose`, `PreferSameZone` or `PreferSameNode`.
    pub traffic_distribution: Option<String>,
    /// Labels of Nodes, in the order in which endpoints that share them are preferred; `*` for any. Only with the gate
    /// ServiceTopology.
    #[serde(deserialize_with = "nullable")]
    pub topology_keys: Vec<String>,
    /// Which endpoints traffic from outside may reach.
    #[serde(deserialize_with = "nullable")]
    pub external_traffic_policy: TrafficPolicy,
    /// Which endpoints traffic from inside may reach.
    #[serde(deserialize_with = "nullable")]
    pub internal_traffic_policy: TrafficPolicy,
    /// Whether a client stays with its endpoint.
    #[serde(deserialize_with = "nullable")]
    pub session_affinity: SessionAffinity,
    /// For how long.
    #[serde(deserialize_with = "nullable")]
    pub session_affinity_config: SessionAffinityConfig,
    /// The address asked of a load balancer.
    #[serde(rename = "loadBalancerIP")]
    pub load_balancer_ip: String,
    /// Who may reach the load balancer.
    #[serde(deserialize_with = "nullable")]
    pub load_balancer_source_ranges: Vec<String>,
    /// Whose load balancer it is.
    pub load_balancer_class: Option<String>,
    /// Whether a load balancer's ports get node ports; yes when absent.
    pub allocate_load_balancer_node_ports: Option<bool>,
    /// The port that tells a load balancer whether a Node has endpoints, 0 for none.
    pub health_check_node_port: i32,
}

/// The type of a Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum ServiceType {
    /// Reached inside the cluster.
    #[default]
    #[serde(rename = "ClusterIP")]
    ClusterIp,
    /// Reached on a port of every Node too.
    NodePort,
    /// Reached through a load balancer too.
    LoadBalancer,
    /// Only another name.
    ExternalName,
}

/// Which endpoints traffic may reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum TrafficPolicy {
    /// All.
    #[default]
    Cluster,
    /// Those on the Node the traffic is on.
    Local,
}

/// Whether a client stays with its endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum SessionAffinity {
    /// No.
    #[default]
    None,
    /// By its address.
    #[serde(rename = "ClientIP")]
    ClientIp,
}

/// For how long a client stays with its endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionAffinityConfig {
    /// When it is known by its address.
    #[serde(rename = "clientIP", deserialize_with = "nullable")]
    pub client_ip: ClientIpConfig,
}

/// For how long a client known by its address stays with its endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientIpConfig {
    /// In seconds.
    pub timeout_seconds: Option<i32>,
}

/// A port of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// The name, empty when it is the only one.
    pub name: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The number clients use.
    pub port: i32,
    /// Where it leads in a Pod.
    pub target_port: TargetPort,
    /// The port of every Node that leads here, 0 for none.
    pub node_port: i32,
    /// What is spoken on it.
    pub app_protocol: Option<String>,
}

/// Where a port of a Service leads in a Pod.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum TargetPort {
    /// To this port.
    Number(i32),
    /// To the container port of that name.
    Name(String),
}

impl Default for TargetPort {
    fn default() -> TargetPort {
        TargetPort::Number(0)
    }
}

/// What a Service is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    /// What the load balancer reports.
    #[serde(deserialize_with = "nullable")]
    pub load_balancer: LoadBalancerStatus,
}

/// What a load balancer reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LoadBalancerStatus {
    /// Where it listens.
    #[serde(deserialize_with = "nullable")]
    pub ingress: Vec<Ingress>,
}

/// A place where a load balancer listens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ingress {
    /// By address.
    pub ip: String,
    /// By name.
    pub hostname: String,
    /// `VIP` or `Proxy`.
    pub ip_mode: Option<String>,
    /// Its ports.
    #[serde(deserialize_with = "nullable")]
    pub ports: Vec<IngressPort>,
}

impl Ingress {
    /// Returns why a load balancer of Fairlead does not serve a port: the error in the status that
    /// begins with `fairlead.dev/`. Errors of other load balancers are for people to read, as
    /// kube-proxy has it.
    pub fn unserved(&self, port: i32, protocol: Protocol) -> Option<&str> {
        let same = |one: &&IngressPort| (one.port, one.protocol) == (port, protocol);
        let error = self.ports.iter().find(same)?.error.as_deref()?;
        error.starts_with("fairlead.dev/").then_some(error)
    }
}

/// A port of a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressPort {
    /// The number.
    pub port: i32,
    /// The protocol.
    pub protocol: Protocol,
    /// What is wrong with it.
    pub error: Option<String>,
}
