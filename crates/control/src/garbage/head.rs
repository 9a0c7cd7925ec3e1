//! What the collector reads of an object: a few fields of its metadata, and not a byte of what comes after.

use std::borrow::Cow;

use fairlead_api::head;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What the collector needs of an object's metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    deletion_timestamp: Option<IgnoredAny>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<Owner>>,
}

/// An owner as an object names it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) block_owner_deletion: bool,
}

impl<'a> Head<'a> {
    /// Reads it; `None` if there is no metadata to be read.
    pub(super) fn read(json: &'a [u8]) -> Option<Head<'a>> {
        head::read(json)
    }

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().flatten().any(|finalizer| finalizer == name)
    }

    pub(super) fn owners(&self) -> &[Owner] {
        self.owner_references.as_deref().unwrap_or_default()
    }
}
