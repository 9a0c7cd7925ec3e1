//! Objects as controllers, proxies and DNS see them: typed, with the fields they use and no others. What is not here is not
//! lost; it is only not looked at. The API server itself works on whole JSON objects, never on these.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Kind;

mod address;
mod endpoint_slice;
mod endpoints;
mod namespace;
mod node;
mod pod;
mod service;
mod workload;

pub use address::{Family, ObjectReference, Protocol};
pub use endpoint_slice::{AddressType, Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, Hint};
pub use endpoints::{EndpointAddress, EndpointSubset, Endpoints, SubsetPort};
pub use namespace::{Namespace, NamespaceSpec, NamespaceStatus};
pub use node::{Node, NodeAddress, NodeSpec, NodeStatus, Taint};
pub use pod::{Condition, Container, ContainerPort, ContainerStatus, Pod, PodIp, PodSpec, PodStatus};
pub use service::{
    ClientIpConfig, Ingress, IngressPort, LoadBalancerStatus, Service, ServicePort, ServiceSpec, ServiceStatus,
    ServiceType, SessionAffinity, SessionAffinityConfig, TargetPort, TrafficPolicy,
};
pub use workload::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, DeploymentStrategy, LabelExpression,
    ObjectSelector, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus, ReplicationController, ReplicationControllerSpec,
    RollingUpdate, SelectorFields,
};

/// A view of a kind.
pub trait View: DeserializeOwned + Send + Sync + 'static {
    /// The kind it is a view of.
    const KIND: &'static Kind;

    /// Its metadata.
    fn meta(&self) -> &Meta;
}

/// The object a view stands for, ready to be written. Only for views that leave no field of their kind out, save what the
/// server alone sets.
pub fn to_bytes<T: View + Serialize>(view: &T) -> Vec<u8> {
    serde_json::to_vec(&Object { kind: T::KIND.kind, api_version: T::KIND.api_version(), view })
        .expect("a view has texts for keys, so it is JSON")
}

/// The same as a value.
pub fn to_json<T: View + Serialize>(view: &T) -> Value {
    serde_json::from_slice(&to_bytes(view)).expect("it was just written")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a, T> {
    kind: &'static str,
    api_version: String,
    #[serde(flatten)]
    view: &'a T,
}

/// Reads null as what is absent reads as: the API writes `null` for some empty lists.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// What every object has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The beginning of a name the server is to make.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Empty for kinds without namespaces.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Tells this object from another of the same name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The version of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts changes of the spec, for kinds that do.
    #[serde(skip_serializing)]
    pub generation: i64,
    /// RFC 3339.
    #[serde(skip_serializing)]
    pub creation_timestamp: Option<String>,
    /// Set when the object is on its way out.
    #[serde(skip_serializing)]
    pub deletion_timestamp: Option<String>,
    /// Labels.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What must happen before the object may go.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Whose object it is.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<Owner>,
}

impl Meta {
    /// The owner that manages the object, if there is one.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// Whose object an object is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Owner {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// `Service`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// Whether the owner manages the object.
    #[serde(skip_serializing_if = "is_false")]
    pub controller: bool,
    /// Whether the owner waits for the object to go.
    #[serde(skip_serializing_if = "is_false")]
    pub block_owner_deletion: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests;
