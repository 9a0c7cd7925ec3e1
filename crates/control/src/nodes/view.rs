//! Nodes and Leases as far as they tell that an agent is alive.

use fairlead_api::view::{Meta, View};
use fairlead_api::{Kind, kinds};
use serde::Deserialize;

/// The Lease of an agent: that it changes is all there is to know.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Agent {
    metadata: Meta,
}

impl View for Agent {
    const KIND: &'static Kind = &kinds::LEASE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// A Node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reported {
    metadata: Meta,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
    taints: Option<Vec<Taint>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
    effect: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    r#type: String,
    status: String,
    last_heartbeat_time: Option<String>,
}

impl View for Reported {
    const KIND: &'static Kind = &kinds::NODE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Reported {
    /// What a condition says.
    pub(super) fn status(&self, kind: &str) -> Option<&str> {
        let found = self.status.conditions.iter().flatten().find(|condition| condition.r#type == kind);
        found.map(|condition| condition.status.as_str())
    }

    /// Whether no new Pods may come.
    pub(super) fn unschedulable(&self) -> bool {
        self.spec.unschedulable
    }

    /// Keys and effects of its taints.
    pub(super) fn taints(&self) -> impl Iterator<Item = (&str, &str)> {
        self.spec.taints.iter().flatten().map(|taint| (taint.key.as_str(), taint.effect.as_str()))
    }

    /// The time the agent last wrote, as it sees it.
    pub(super) fn heartbeat(&self) -> Option<&str> {
        let ready = self.status.conditions.iter().flatten().find(|condition| condition.r#type == "Ready");
        ready.and_then(|ready| ready.last_heartbeat_time.as_deref())
    }
}
