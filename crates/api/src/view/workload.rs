//! ReplicaSets, ReplicationControllers and Deployments as their controllers see them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Condition, Meta, View, nullable};
use crate::selector::{Expression, LabelSelector};
use crate::{Kind, kinds};

/// A ReplicaSet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicaSet {
    /// Metadata.
    pub metadata: Meta,
    /// The Pods that should exist.
    pub spec: ReplicaSetSpec,
    /// The Pods that exist.
    pub status: ReplicaSetStatus,
}

impl View for ReplicaSet {
    const KIND: &'static Kind = &kinds::REPLICA_SET;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The Pods of a ReplicaSet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetSpec {
    /// Number of Pods; 1 if absent.
    pub replicas: Option<i32>,
    /// Seconds for which a Pod must be ready before it counts as available.
    pub min_ready_seconds: i32,
    /// Labels of its Pods.
    pub selector: ObjectSelector,
    /// The Pod to create, as in the manifest.
    pub template: Value,
}

/// The state of a ReplicaSet or a ReplicationController.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaSetStatus {
    /// Number of Pods that are neither terminating nor ended.
    pub replicas: i32,
    /// Number of Pods that have all labels of the template.
    pub fully_labeled_replicas: i32,
    /// Number of Pods that are ready.
    pub ready_replicas: i32,
    /// Number of Pods that have been ready for `minReadySeconds`.
    pub available_replicas: i32,
    /// Number of Pods that are terminating.
    pub terminating_replicas: Option<i32>,
    /// The generation of the specification that this state belongs to.
    pub observed_generation: i64,
    /// Condition `ReplicaFailure`.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}

/// A ReplicationController.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicationController {
    /// Metadata.
    pub metadata: Meta,
    /// The Pods that should exist.
    pub spec: ReplicationControllerSpec,
    /// The Pods that exist.
    pub status: ReplicaSetStatus,
}

impl View for ReplicationController {
    const KIND: &'static Kind = &kinds::REPLICATION_CONTROLLER;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The Pods of a ReplicationController.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicationControllerSpec {
    /// Number of Pods; 1 if absent.
    pub replicas: Option<i32>,
    /// Seconds for which a Pod must be ready before it counts as available.
    pub min_ready_seconds: i32,
    /// Labels of its Pods. An empty selector selects nothing.
    #[serde(deserialize_with = "nullable")]
    pub selector: BTreeMap<String, String>,
    /// The Pod to create, as in the manifest.
    pub template: Value,
}

/// A Deployment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// Metadata.
    pub metadata: Meta,
    /// The Pods that should exist, and the way to replace them.
    pub spec: DeploymentSpec,
    /// The Pods that exist.
    pub status: DeploymentStatus,
}

impl View for Deployment {
    const KIND: &'static Kind = &kinds::DEPLOYMENT;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The specification of a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentSpec {
    /// Number of Pods; 1 if absent.
    pub replicas: Option<i32>,
    /// Labels of its Pods.
    pub selector: ObjectSelector,
    /// The Pod to create, as in the manifest.
    pub template: Value,
    /// The way to replace Pods.
    pub strategy: DeploymentStrategy,
    /// Seconds for which a Pod must be ready before it counts as available.
    pub min_ready_seconds: i32,
    /// Number of old ReplicaSets to keep; all if absent.
    pub revision_history_limit: Option<i32>,
    /// True if changes of the template wait.
    pub paused: bool,
    /// Seconds without progress after which a rollout is reported as failed; never if absent.
    pub progress_deadline_seconds: Option<i32>,
}

/// The way a Deployment replaces Pods.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStrategy {
    /// `RollingUpdate` or `Recreate`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Limits of a rolling update.
    #[serde(deserialize_with = "nullable")]
    pub rolling_update: RollingUpdate,
}

/// Limits of a rolling update: numbers, or texts such as `25%`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// Number of Pods that may be missing.
    pub max_unavailable: Value,
    /// Number of Pods beyond the wanted one.
    pub max_surge: Value,
}

/// The state of a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    /// The generation of the specification that this state belongs to.
    pub observed_generation: i64,
    /// Number of Pods that are neither terminating nor ended.
    pub replicas: i32,
    /// Number of Pods of the current template.
    pub updated_replicas: i32,
    /// Number of Pods that are ready.
    pub ready_replicas: i32,
    /// Number of Pods that have been ready for `minReadySeconds`.
    pub available_replicas: i32,
    /// Number of Pods that are missing.
    pub unavailable_replicas: i32,
    /// Number of Pods that are terminating.
    pub terminating_replicas: Option<i32>,
    /// Number of times that the name of a new ReplicaSet was already in use.
    pub collision_count: Option<i32>,
    /// Conditions `Available`, `Progressing` and `ReplicaFailure`.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<DeploymentCondition>,
}

/// A condition of a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentCondition {
    /// `Available`, `Progressing` or `ReplicaFailure`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Time of the last change, RFC 3339.
    pub last_update_time: String,
    /// Time of the last change of the status, RFC 3339.
    pub last_transition_time: String,
    /// The reason in one word.
    pub reason: String,
    /// The reason in a sentence.
    pub message: String,
}

/// A `LabelSelector` of an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "SelectorFields")]
pub struct ObjectSelector {
    fields: SelectorFields,
    /// `None` if the selector has no requirements, or one that makes no sense. Both select nothing.
    requirements: Option<LabelSelector>,
}

/// A `LabelSelector` as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectorFields {
    /// Labels and their values.
    #[serde(deserialize_with = "nullable")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<LabelExpression>,
}

/// A requirement on one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelExpression {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values of `In` and `NotIn`.
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
}

impl From<SelectorFields> for ObjectSelector {
    fn from(fields: SelectorFields) -> ObjectSelector {
        let labels = fields.match_labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let expressions = fields.match_expressions.iter().map(|expression| Expression {
            key: &expression.key,
            operator: &expression.operator,
            values: expression.values.iter().map(String::as_str).collect(),
        });
        let requirements = LabelSelector::from_parts(labels, expressions).ok();
        let requirements = requirements.filter(|requirements| !requirements.is_everything());
        ObjectSelector { fields, requirements }
    }
}

impl ObjectSelector {
    /// The selector as it is written.
    pub fn fields(&self) -> &SelectorFields {
        &self.fields
    }

    /// True if it has no requirements. Controllers do not act on such a selector.
    pub fn is_empty(&self) -> bool {
        self.fields.match_labels.is_empty() && self.fields.match_expressions.is_empty()
    }

    /// True if it has requirements and the labels meet all of them.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = |key: &str| labels.get(key).map(String::as_str);
        self.requirements.as_ref().is_some_and(|requirements| requirements.matches(value))
    }
}
