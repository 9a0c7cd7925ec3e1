//! A heartbeat: the Lease of a Node's announcer, as it is written and read. One a Node, however many addresses there are.
//!
//! ```text
//! Lease kube-node-lease/fairlead-announcer-NODE, which goes with its Node
//!   fairlead.dev/unguarded: true, while its kernel does not take the rules that guard addresses
//!   fairlead.dev/networks: eth0 02:00:00:00:00:01 192.0.2.0/24 fd00::/64; eth1 ...
//!   holderIdentity: NODE, or nothing once it said that it goes
//!   renewTime: another one with every beat; only that it changes counts
//!   leaseDurationSeconds: how long it may take to the next one, where its Node is alone and beats slowly
//! ```

#[cfg(test)]
mod tests;

use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::{Key, Selection};
use fairlead_api::view::Meta;
use fairlead_cluster::{Cluster, Error, Patch};
use fairlead_kernel::packet::Hardware;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::owner::Attachment;

/// Where the Leases are.
const NAMESPACE: &str = "kube-node-lease";
const PREFIX: &str = "fairlead-announcer-";
/// The label with the component.
const COMPONENT: &str = "fairlead.dev/component";
const ANNOUNCER: &str = "announcer";
/// The annotation with the links of the Node.
const NETWORKS: &str = "fairlead.dev/networks";
/// The annotation of a Node whose kernel does not take the rules that guard addresses.
const UNGUARDED: &str = "fairlead.dev/unguarded";
/// Nobody is waited for longer, whatever its Lease says, in seconds.
const LONGEST: u64 = 60;
/// More links, or networks of a link, are not believed.
const MOST: usize = 64;

/// What a Lease says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beat {
    /// Its `renewTime`.
    pub(super) stamp: String,
    /// Whether its holder said that it goes.
    pub(super) left: bool,
    /// How long it may take to the next one; `None`: as long as usual.
    pub(super) lasts: Option<Duration>,
    /// The links of the Node.
    pub(super) attachments: Vec<Attachment>,
    /// True unless the Node said that its kernel does not take the rules that guard addresses:
    /// others may have them then.
    pub(super) guarded: bool,
}

/// The Leases of all Nodes.
pub(super) fn selection() -> Selection {
    Selection::all(&kinds::LEASE).in_namespace(NAMESPACE).with_labels(format!("{COMPONENT}={ANNOUNCER}"))
}

/// The Node whose Lease has this name.
pub(super) fn node(key: &Key) -> Option<&str> {
    key.name.strip_prefix(PREFIX)
}

impl Beat {
    /// What a Lease says; `None`: nothing that can be read.
    pub(super) fn read(json: &[u8]) -> Option<Beat> {
        let lease: Lease = serde_json::from_slice(json).ok()?;
        let networks = lease.metadata.annotations.get(NETWORKS).map(String::as_str).unwrap_or_default();
        let left = lease.spec.holder_identity.unwrap_or_default().is_empty();
        let lasts = lease.spec.lease_duration_seconds.map(|seconds| Duration::from_secs(seconds.min(LONGEST)));
        let guarded = !lease.metadata.annotations.contains_key(UNGUARDED);
        let stamp = lease.spec.renew_time.unwrap_or_default();
        Some(Beat { stamp, left, lasts, attachments: read(networks), guarded })
    }
}

#[derive(Deserialize)]
struct Lease {
    metadata: Meta,
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    renew_time: Option<String>,
    lease_duration_seconds: Option<u64>,
}

/// Our own Lease.
#[derive(Debug, Clone)]
pub(super) struct Heart {
    pub(super) cluster: Cluster,
    pub(super) node: String,
    /// The uid of the Node, if it is known.
    pub(super) uid: Option<String>,
}

impl Heart {
    /// A stamp for the next beat. No two are the same.
    pub(super) fn stamp(last: &str) -> String {
        let now = Timestamp::now();
        let text = format!("{now:.6}");
        if text == last { format!("{:.6}", now + jiff::SignedDuration::from_micros(1)) } else { text }
    }

    /// Renews it, or makes it.
    pub(super) async fn beat(self, beat: Beat) -> Result<(), Error> {
        // Null takes an annotation away.
        let unguarded = if beat.guarded { None } else { Some("true") };
        let annotations = json!({NETWORKS: write(&beat.attachments), UNGUARDED: unguarded});
        let lasts = beat.lasts.map(|lasts| lasts.as_secs() + u64::from(lasts.subsec_nanos() > 0));
        let spec = json!({"holderIdentity": self.node, "renewTime": beat.stamp, "leaseDurationSeconds": lasts});
        let patch = Patch::Merge(json!({"metadata": {"annotations": &annotations}, "spec": spec}));
        let name = format!("{PREFIX}{}", self.node);
        match self.cluster.patch(&kinds::LEASE, NAMESPACE, &name, &patch).await {
            Err(Error::NotFound(_)) => {}
            done => return done.map(drop),
        }
        let mut made = annotations;
        if let Some(annotations) = made.as_object_mut() {
            annotations.retain(|_, value| !value.is_null());
        }
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "namespace": NAMESPACE, "name": name, "labels": {COMPONENT: ANNOUNCER}, "annotations": made,
            },
            "spec": spec,
        });
        if let Some(uid) = &self.uid {
            let owner = json!({"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": uid});
            lease["metadata"]["ownerReferences"] = json!([owner]);
        }
        self.cluster.create(&kinds::LEASE, &lease).await.map(drop)
    }

    /// Says that this Node goes: others need not wait.
    pub(super) async fn leave(self) -> Result<(), Error> {
        let spec = json!({"holderIdentity": "", "renewTime": Heart::stamp("")});
        let name = format!("{PREFIX}{}", self.node);
        self.cluster.patch(&kinds::LEASE, NAMESPACE, &name, &Patch::Merge(json!({"spec": spec}))).await.map(drop)
    }
}

/// Links as text.
fn write(attachments: &[Attachment]) -> String {
    let one = |one: &Attachment| {
        let networks = one.networks.iter().take(MOST).map(ToString::to_string);
        [one.link.clone(), hardware(one.hardware)].into_iter().chain(networks).collect::<Vec<_>>().join(" ")
    };
    attachments.iter().take(MOST).map(one).collect::<Vec<_>>().join("; ")
}

/// Text as links; what makes no sense is left out.
fn read(text: &str) -> Vec<Attachment> {
    let one = |text: &str| {
        let mut words = text.split_whitespace();
        let (link, hardware) = (words.next()?.to_owned(), parse_hardware(words.next()?)?);
        let networks = words.filter_map(|word| word.parse().ok()).take(MOST).collect();
        Some(Attachment { link, hardware, networks })
    };
    text.split(';').filter_map(one).take(MOST).collect()
}

/// A hardware address as people write it.
pub(super) fn hardware(address: Hardware) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

fn parse_hardware(text: &str) -> Option<Hardware> {
    let bytes: Option<Vec<u8>> = text.split(':').take(7).map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}
