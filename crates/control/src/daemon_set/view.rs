//! DaemonSets as their controller sees them.

use fairlead_api::view::{Meta, ObjectSelector, RollingUpdate, View};
use fairlead_api::{Kind, kinds};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Reads null as what is absent reads as.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// A DaemonSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DaemonSet {
    pub(crate) metadata: Meta,
    pub(crate) spec: DaemonSetSpec,
    pub(crate) status: DaemonSetStatus,
}

impl View for DaemonSet {
    const KIND: &'static Kind = &kinds::DAEMON_SET;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The specification of a DaemonSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DaemonSetSpec {
    #[serde(deserialize_with = "nullable")]
    pub(crate) selector: ObjectSelector,
    pub(crate) template: Value,
    #[serde(deserialize_with = "nullable")]
    pub(crate) update_strategy: UpdateStrategy,
    pub(crate) min_ready_seconds: i32,
    pub(crate) revision_history_limit: Option<i32>,
}

/// The way a DaemonSet replaces Pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UpdateStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) rolling_update: RollingUpdate,
}

/// The state of a DaemonSet, in numbers of Nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DaemonSetStatus {
    pub(crate) current_number_scheduled: i32,
    pub(crate) number_misscheduled: i32,
    pub(crate) desired_number_scheduled: i32,
    pub(crate) number_ready: i32,
    pub(crate) observed_generation: i64,
    pub(crate) updated_number_scheduled: i32,
    pub(crate) number_available: i32,
    pub(crate) number_unavailable: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) collision_count: Option<i32>,
}
