//! ServiceCIDRs as their controller sees them.

use fairlead_api::view::{Condition, Meta, View};
use fairlead_api::{Kind, kinds};
use ipnet::IpNet;
use serde::Deserialize;

/// A ServiceCIDR.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServiceCidr {
    pub(super) metadata: Meta,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    cidrs: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Option<Vec<Condition>>,
}

impl View for ServiceCidr {
    const KIND: &'static Kind = &kinds::SERVICE_CIDR;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl ServiceCidr {
    pub(super) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it waits for us before it goes.
    pub(super) fn is_kept(&self) -> bool {
        self.metadata.finalizers.iter().any(|name| name == super::FINALIZER)
    }

    /// Its ranges.
    pub(super) fn nets(&self) -> Vec<IpNet> {
        self.spec.cidrs.iter().flatten().filter_map(|text| text.parse().ok()).collect()
    }

    /// Whether its Ready condition says this.
    pub(super) fn is_told(&self, status: &str, reason: &str, message: &str) -> bool {
        let conditions = self.status.conditions.as_deref().unwrap_or_default();
        Condition::find(conditions, "Ready")
            .is_some_and(|ready| ready.status == status && ready.reason == reason && ready.message == message)
    }
}
