//! StatefulSets as their controller sees them.

use fairlead_api::view::{Meta, ObjectSelector, View};
use fairlead_api::{Kind, kinds};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Reads null as what is absent reads as.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

/// A StatefulSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StatefulSet {
    pub(crate) metadata: Meta,
    pub(crate) spec: StatefulSetSpec,
    pub(crate) status: StatefulSetStatus,
}

impl View for StatefulSet {
    const KIND: &'static Kind = &kinds::STATEFUL_SET;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl StatefulSet {
    /// The number in the name of a Pod of this set, such as 2 of `web-2`.
    pub(crate) fn ordinal(&self, pod: &str) -> Option<u32> {
        let digits = pod.strip_prefix(&self.metadata.name)?.strip_prefix('-')?;
        let ordinal: u32 = digits.parse().ok()?;
        // `web-01` and `web-+1` are no names of ours.
        (ordinal.to_string() == digits).then_some(ordinal)
    }
}

/// The specification of a StatefulSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatefulSetSpec {
    pub(crate) replicas: Option<i32>,
    #[serde(deserialize_with = "nullable")]
    pub(crate) selector: ObjectSelector,
    pub(crate) template: Value,
    #[serde(deserialize_with = "nullable")]
    pub(crate) volume_claim_templates: Vec<Value>,
    pub(crate) service_name: String,
    /// `OrderedReady` or `Parallel`.
    pub(crate) pod_management_policy: String,
    #[serde(deserialize_with = "nullable")]
    pub(crate) update_strategy: UpdateStrategy,
    pub(crate) revision_history_limit: Option<i32>,
    pub(crate) min_ready_seconds: i32,
    #[serde(deserialize_with = "nullable")]
    pub(crate) ordinals: Ordinals,
}

/// The way a StatefulSet replaces Pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UpdateStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) rolling_update: Option<RollingUpdate>,
}

/// Limits of a rolling update.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RollingUpdate {
    /// Pods with a smaller number keep the old template.
    pub(crate) partition: i32,
}

/// The numbers in the names of Pods.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ordinals {
    pub(crate) start: i32,
}

/// The state of a StatefulSet, in numbers of Pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StatefulSetStatus {
    pub(crate) observed_generation: i64,
    pub(crate) replicas: i32,
    pub(crate) ready_replicas: i32,
    pub(crate) current_replicas: i32,
    pub(crate) updated_replicas: i32,
    pub(crate) current_revision: String,
    pub(crate) update_revision: String,
    pub(crate) collision_count: Option<i32>,
    pub(crate) available_replicas: i32,
}
