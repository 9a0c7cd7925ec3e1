//! Of stored objects, the few fields that allocations are about. They borrow from the text, so that looking at ten thousand
//! Services costs little.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Deserialize, Deserializer};

use super::Owner;

/// A text, borrowed where possible; null is no text.
#[derive(Debug, Clone, Default)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Text<'a>, D::Error> {
        #[derive(Deserialize)]
        struct Given<'b>(#[serde(borrow)] Cow<'b, str>);
        Ok(Option::<Given<'a>>::deserialize(from)?.map(|given| Text(given.0)).unwrap_or_default())
    }
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// What is read of metadata.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) namespace: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) uid: Text<'a>,
    #[serde(borrow)]
    resource_version: Text<'a>,
    #[serde(borrow)]
    creation_timestamp: Text<'a>,
    #[serde(borrow)]
    pub(super) labels: Option<Labels<'a>>,
}

/// Labels that say who made an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Labels<'a> {
    #[serde(borrow, rename = "ipaddress.kubernetes.io/ip-family")]
    pub(super) family: Text<'a>,
    #[serde(borrow, rename = "ipaddress.kubernetes.io/managed-by")]
    pub(super) allocator: Text<'a>,
    #[serde(borrow, rename = "endpointslice.kubernetes.io/managed-by")]
    pub(super) slice_controller: Text<'a>,
    #[serde(borrow, rename = "endpoints.kubernetes.io/managed-by")]
    pub(super) endpoints_controller: Text<'a>,
}

/// A Service.
#[derive(Debug, Clone, Deserialize)]
pub struct Service<'a> {
    #[serde(borrow)]
    pub(super) metadata: Metadata<'a>,
    #[serde(borrow, default)]
    pub(super) spec: Spec<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, rename = "clusterIP")]
    cluster_ip: Text<'a>,
    #[serde(borrow, rename = "clusterIPs")]
    cluster_ips: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub(super) ports: Option<Vec<Port<'a>>>,
    #[serde(borrow)]
    pub(super) external_traffic_policy: Text<'a>,
    pub(super) health_check_node_port: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Port<'a> {
    #[serde(borrow)]
    pub(super) protocol: Text<'a>,
    pub(super) node_port: i64,
}

/// An IPAddress object.
#[derive(Debug, Clone, Deserialize)]
pub struct Address<'a> {
    #[serde(borrow)]
    pub(super) metadata: Metadata<'a>,
    #[serde(borrow, default)]
    spec: AddressSpec<'a>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AddressSpec<'a> {
    #[serde(borrow)]
    parent_ref: Option<Reference<'a>>,
}

/// What an IPAddress object says it belongs to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reference<'a> {
    #[serde(borrow)]
    pub(super) group: Text<'a>,
    #[serde(borrow)]
    pub(super) resource: Text<'a>,
    #[serde(borrow)]
    pub(super) namespace: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
}

impl Metadata<'_> {
    /// When the object was written last.
    pub(super) fn revision(&self) -> u64 {
        self.resource_version.parse().unwrap_or_default()
    }

    /// When the object was made, in a form that sorts.
    pub(super) fn created(&self) -> &str {
        &self.creation_timestamp
    }
}

impl<'a> Service<'a> {
    /// Reads a stored Service.
    pub fn read(json: &'a [u8]) -> Result<Service<'a>, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// The cluster IPs it should have been given, as they are written.
    pub fn cluster_ips(&self) -> Vec<&str> {
        if &*self.spec.kind == "ExternalName" {
            return Vec::new();
        }
        let several = self.spec.cluster_ips.iter().flatten().map(|text| &**text);
        let mut all: Vec<&str> = several.collect();
        if all.is_empty() {
            // As servers wrote it that knew one address only.
            all.push(&self.spec.cluster_ip);
        }
        all.retain(|text| !text.is_empty() && *text != "None");
        all
    }

    pub(super) fn key(&self) -> (&str, &str) {
        (&self.metadata.namespace, &self.metadata.name)
    }

    pub(super) fn owner(&self) -> Owner {
        let (namespace, name) = self.key();
        Owner { namespace: namespace.to_owned(), name: name.to_owned(), revision: self.metadata.revision() }
    }
}

impl<'a> Address<'a> {
    /// Reads a stored IPAddress object.
    pub fn read(json: &'a [u8]) -> Result<Address<'a>, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Namespace and name of the Service it belongs to, if it belongs to one.
    pub fn service(&self) -> Option<(&str, &str)> {
        let parent = self.spec.parent_ref.as_ref()?;
        (parent.group.is_empty() && &*parent.resource == "services").then_some((&*parent.namespace, &*parent.name))
    }

    pub(super) fn parent(&self) -> Option<&Reference<'a>> {
        self.spec.parent_ref.as_ref()
    }
}
