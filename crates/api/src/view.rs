//! Objects as controllers, proxies and DNS see them: typed, with the fields they use and no others. What is not here is not
//! lost; it is only not looked at. The API server itself works on whole JSON objects, never on these.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Kind;

/// A view of a kind.
pub trait View: DeserializeOwned + Send + Sync + 'static {
    /// The kind it is a view of.
    const KIND: &'static Kind;

    /// Its metadata.
    fn meta(&self) -> &Meta;
}

/// What every object has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// The name.
    pub name: String,
    /// Empty for kinds without namespaces.
    pub namespace: String,
    /// Tells this object from another of the same name.
    pub uid: String,
    /// The version of the object.
    pub resource_version: String,
    /// Counts changes of the spec, for kinds that do.
    pub generation: i64,
    /// RFC 3339.
    pub creation_timestamp: Option<String>,
    /// Set when the object is on its way out.
    pub deletion_timestamp: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// What must happen before the object may go.
    pub finalizers: Vec<String>,
    /// Whose object it is.
    pub owner_references: Vec<Owner>,
}

/// Whose object an object is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
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
    pub controller: bool,
    /// Whether the owner waits for the object to go.
    pub block_owner_deletion: bool,
}
