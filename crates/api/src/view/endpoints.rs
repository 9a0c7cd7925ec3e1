//! Endpoints, whole: an object that is read and written again loses nothing.

use serde::{Deserialize, Serialize};

use super::{Meta, ObjectReference, Protocol, View, nullable};
use crate::Kind;

/// An Endpoints object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Endpoints {
    /// Metadata.
    pub metadata: Meta,
    /// Addresses by the ports they have.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<EndpointSubset>,
}

impl View for Endpoints {
    const KIND: &'static Kind = &crate::kinds::ENDPOINTS;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Addresses with the same ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSubset {
    /// Ready ones.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<EndpointAddress>,
    /// Those that are not ready.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub not_ready_addresses: Vec<EndpointAddress>,
    /// Their ports.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<SubsetPort>,
}

/// An address of a subset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointAddress {
    /// The address.
    pub ip: String,
    /// Its own name under the Service's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// The Node it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// What it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<ObjectReference>,
}

/// A port of a subset.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubsetPort {
    /// The name of the Service's port, empty for an unnamed one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The number.
    pub port: i32,
    /// The protocol.
    pub protocol: Protocol,
    /// What is spoken on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}
