//! EndpointSlices, whole: a slice that is read and written again loses nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Family, Meta, ObjectReference, Protocol, View, nullable};
use crate::Kind;

/// An EndpointSlice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {
    /// Metadata.
    pub metadata: Meta,
    /// What its addresses are.
    pub address_type: AddressType,
    /// The endpoints.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// The ports every one of them has.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<EndpointPort>,
}

impl View for EndpointSlice {
    const KIND: &'static Kind = &crate::kinds::ENDPOINT_SLICE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// What the addresses of a slice are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum AddressType {
    /// IPv4 addresses.
    #[default]
    #[serde(rename = "IPv4")]
    V4,
    /// IPv6 addresses.
    #[serde(rename = "IPv6")]
    V6,
    /// Names.
    #[serde(rename = "FQDN")]
    Fqdn,
}

impl AddressType {
    /// `IPv4`, `IPv6` or `FQDN`.
    pub fn as_str(self) -> &'static str {
        match self {
            AddressType::V4 => "IPv4",
            AddressType::V6 => "IPv6",
            AddressType::Fqdn => "FQDN",
        }
    }
}

impl From<Family> for AddressType {
    fn from(family: Family) -> AddressType {
        match family {
            Family::V4 => AddressType::V4,
            Family::V6 => AddressType::V6,
        }
    }
}

/// One endpoint of a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// Addresses of the same backend.
    #[serde(deserialize_with = "nullable")]
    pub addresses: Vec<String>,
    /// Its state.
    #[serde(deserialize_with = "nullable")]
    pub conditions: EndpointConditions,
    /// Its own name under the Service's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// What it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<ObjectReference>,
    /// What v1beta1 wrote in `topology` and v1 has no field for.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "BTreeMap::is_empty")]
    pub deprecated_topology: BTreeMap<String, String>,
    /// The Node it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The zone it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Who should use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<EndpointHints>,
}

impl Endpoint {
    /// Whether it says that it is ready. Silence is not a yes here, as it is for those who only read slices.
    pub fn is_ready(&self) -> bool {
        self.conditions.ready == Some(true)
    }
}

/// The state of an endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct EndpointConditions {
    /// May get traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Answers, even if it is on its way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<bool>,
    /// Is on its way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminating: Option<bool>,
}

/// Who should use an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointHints {
    /// Clients in these zones.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub for_zones: Vec<Hint>,
    /// Clients on these Nodes.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub for_nodes: Vec<Hint>,
}

/// A zone or a Node by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Hint {
    /// The name.
    pub name: String,
}

/// A port of a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// The name of the Service's port; `""` for an unnamed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The number; every port when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// What is spoken on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}
