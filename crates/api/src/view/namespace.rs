//! Namespaces as controllers see them.

use serde::Deserialize;

use super::{Meta, View, nullable};
use crate::Kind;

/// A Namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Metadata.
    pub metadata: Meta,
    /// What is wanted.
    pub spec: NamespaceSpec,
    /// What is.
    pub status: NamespaceStatus,
}

impl Namespace {
    /// Whether it is on its way out.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some() || self.status.phase == "Terminating"
    }
}

impl View for Namespace {
    const KIND: &'static Kind = &crate::kinds::NAMESPACE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// What is wanted of a Namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NamespaceSpec {
    /// What must happen before its content counts as gone.
    #[serde(deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
}

/// What a Namespace is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NamespaceStatus {
    /// `Active` or `Terminating`.
    pub phase: String,
}
