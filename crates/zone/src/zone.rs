//! Keeps what is known of the cluster so that names can be looked up: a change costs what it changes, not what is there.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::selector::LabelSelector;
use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Meta, Namespace, Pod, Service};
use foldhash::fast::RandomState;

use crate::name::{Name, push_label};
use crate::options::{Options, PodRecords};

mod entry;
mod slice;

pub(crate) use entry::{Entry, Form};
pub(crate) use slice::{Endpoints, Member, Port};

/// The label with the Service a slice belongs to.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Something that changed in the cluster. `None` says that it is gone.
#[derive(Debug, Clone)]
pub enum Change {
    /// A Service.
    Service(Key, Option<Arc<Service>>),
    /// An EndpointSlice.
    EndpointSlice(Key, Option<Arc<EndpointSlice>>),
    /// A Pod. Only verified Pod records and search paths look at them.
    Pod(Key, Option<Arc<Pod>>),
    /// A Namespace, by its name alone.
    Namespace(Key, Option<Arc<Namespace>>),
}

/// The names of a cluster.
#[derive(Debug, Clone)]
pub struct Zone {
    pub(crate) options: Options,
    pub(crate) apexes: Vec<Apex>,
    /// The zone names that belong to addresses are given in: the first that is no reverse zone.
    pub(crate) primary: Name,
    pub(crate) serial: u32,
    /// Namespaces that are served.
    pub(crate) namespaces: HashSet<Box<[u8]>, RandomState>,
    /// Services by the labels of their name and namespace, in wire form.
    pub(crate) services: HashMap<Box<[u8]>, Entry, RandomState>,
    /// The Service each slice belongs to.
    owners: HashMap<Key, Box<[u8]>, RandomState>,
    /// What claims an address, sorted.
    pub(crate) addresses: HashMap<IpAddr, Vec<Claim>, RandomState>,
    /// The address of each Pod.
    pods: HashMap<Key, IpAddr, RandomState>,
    /// Pods by their address, sorted.
    pub(crate) pod_addresses: HashMap<IpAddr, Vec<Key>, RandomState>,
}

/// A zone that is served.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Apex {
    pub(crate) name: Name,
    /// In wire form and lower case.
    pub(crate) lower: Box<[u8]>,
    pub(crate) labels: usize,
    pub(crate) reverse: bool,
}

/// Who an address belongs to, by the key of the Service in [`Zone::services`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// It is a cluster IP.
    ClusterIp(Box<[u8]>),
    /// It is the address of a ready endpoint.
    Endpoint(Box<[u8]>),
}

impl Zone {
    /// The names of an empty cluster.
    pub fn new(options: Options) -> Zone {
        let apexes: Vec<Apex> = options.zones.iter().map(Apex::new).collect();
        let primary = apexes.iter().find(|apex| !apex.reverse).map_or_else(Name::root, |apex| apex.name.clone());
        Zone {
            options,
            apexes,
            primary,
            serial: 1,
            namespaces: HashSet::default(),
            services: HashMap::default(),
            owners: HashMap::default(),
            addresses: HashMap::default(),
            pods: HashMap::default(),
            pod_addresses: HashMap::default(),
        }
    }

    /// What is served.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Sets the serial number of the zones: the time of the last change in seconds, as CoreDNS has it.
    pub fn set_serial(&mut self, serial: u32) {
        self.serial = serial;
    }

    /// Takes changes in. The work is in proportion to the Services they concern.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) {
        for change in changes {
            match change {
                Change::Service(key, service) => self.put_service(&key, service.as_deref()),
                Change::EndpointSlice(key, slice) => self.put_slice(key, slice.as_deref()),
                Change::Pod(key, pod) => self.put_pod(key, pod.as_deref()),
                Change::Namespace(key, namespace) => self.put_namespace(&key, namespace.as_deref()),
            }
        }
    }

    /// The namespace of the Pod that has an address. Known only while Pod records are verified.
    pub fn namespace_of(&self, address: IpAddr) -> Option<&str> {
        self.pod_addresses.get(&address)?.first().map(|key| &*key.namespace)
    }

    fn put_namespace(&mut self, key: &Key, namespace: Option<&Namespace>) {
        let configured =
            self.options.namespaces.is_empty() || self.options.namespaces.iter().any(|name| **name == *key.name);
        let served = namespace.is_some_and(|namespace| {
            configured && selected(self.options.namespace_labels.as_ref(), &namespace.metadata)
        });
        let name = key.name.as_bytes();
        if served {
            self.namespaces.insert(name.into());
        } else {
            self.namespaces.remove(name);
        }
    }

    fn put_pod(&mut self, key: Key, pod: Option<&Pod>) {
        if let Some(address) = self.pods.remove(&key) {
            remove_sorted(&mut self.pod_addresses, address, &key);
        }
        let pod = pod.filter(|pod| self.options.pods == PodRecords::Verified && self.serves_pod(pod));
        let Some(address) = pod.and_then(|pod| entry::address(&pod.status.pod_ip)) else { return };
        insert_sorted(&mut self.pod_addresses, address, key.clone());
        self.pods.insert(key, address);
    }

    fn serves_pod(&self, pod: &Pod) -> bool {
        !pod.is_terminating()
            && !pod.is_terminal()
            && pod.status.phase != "Unknown"
            && selected(self.options.labels.as_ref(), &pod.metadata)
    }

    fn put_service(&mut self, key: &Key, service: Option<&Service>) {
        let Some(wire) = service_wire(&key.name, &key.namespace) else { return };
        let service = service.filter(|service| selected(self.options.labels.as_ref(), &service.metadata));
        let form = service.map_or(Form::Unknown, Form::of);
        if form == Form::Unknown && !self.services.contains_key(&wire) {
            return;
        }
        let entry = self.services.entry(wire.clone()).or_default();
        for address in std::mem::replace(&mut entry.form, form).cluster_ips() {
            remove_sorted(&mut self.addresses, address, &Claim::ClusterIp(wire.clone()));
        }
        for address in entry.form.cluster_ips() {
            insert_sorted(&mut self.addresses, address, Claim::ClusterIp(wire.clone()));
        }
        entry.settle();
        self.forget_if_empty(&wire);
    }

    fn put_slice(&mut self, key: Key, slice: Option<&EndpointSlice>) {
        let labels = self.options.labels.as_ref();
        let slice = slice.filter(|slice| !self.options.noendpoints && selected(labels, &slice.metadata));
        let owner = slice.and_then(|slice| service_wire(slice.metadata.labels.get(SERVICE_NAME)?, &key.namespace));
        if let Some(before) = self.owners.remove(&key).filter(|before| owner.as_ref() != Some(before)) {
            self.set_slice(&before, &key.name, Endpoints::default());
        }
        let (Some(owner), Some(slice)) = (owner, slice) else { return };
        let endpoints = slice::read(&key.name, slice, self.options.endpoint_pod_names);
        self.set_slice(&owner, &key.name, endpoints);
        self.owners.insert(key, owner);
    }

    /// Puts the endpoints of a slice in the place of those it had.
    fn set_slice(&mut self, owner: &[u8], slice: &str, endpoints: Endpoints) {
        let entry = self.services.entry(owner.into()).or_default();
        let moved = entry.replace(slice, endpoints);
        for address in moved.gone {
            remove_sorted(&mut self.addresses, address, &Claim::Endpoint(owner.into()));
        }
        for address in moved.come {
            insert_sorted(&mut self.addresses, address, Claim::Endpoint(owner.into()));
        }
        self.forget_if_empty(owner);
    }

    fn forget_if_empty(&mut self, wire: &[u8]) {
        if self.services.get(wire).is_some_and(Entry::is_empty) {
            self.services.remove(wire);
        }
    }
}

/// Two zones are equal if they give the same answers for the same reasons; when they last changed does not count.
impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.options == other.options
            && self.namespaces == other.namespaces
            && self.services == other.services
            && self.owners == other.owners
            && self.addresses == other.addresses
            && self.pods == other.pods
            && self.pod_addresses == other.pod_addresses
    }
}

impl Apex {
    fn new(name: &Name) -> Apex {
        let lower: Box<[u8]> = name.lower().into();
        let reverse = [&b"\x07in-addr\x04arpa\0"[..], b"\x03ip6\x04arpa\0"].iter().any(|end| lower.ends_with(end));
        Apex { name: name.clone(), labels: name.label_count(), lower, reverse }
    }
}

/// The labels of a Service's name and namespace in wire form, without an end; none if they cannot be labels.
pub(crate) fn service_wire(name: &str, namespace: &str) -> Option<Box<[u8]>> {
    let mut wire = Vec::with_capacity(name.len() + namespace.len() + 2);
    push_label(&mut wire, name.to_ascii_lowercase().as_bytes()).ok()?;
    push_label(&mut wire, namespace.to_ascii_lowercase().as_bytes()).ok()?;
    Some(wire.into())
}

fn selected(selector: Option<&LabelSelector>, meta: &Meta) -> bool {
    selector.is_none_or(|selector| selector.matches(|key| meta.labels.get(key).map(String::as_str)))
}

type Table<T> = HashMap<IpAddr, Vec<T>, RandomState>;

fn insert_sorted<T: Ord>(table: &mut Table<T>, address: IpAddr, value: T) {
    let values = table.entry(address).or_default();
    if let Err(place) = values.binary_search(&value) {
        values.insert(place, value);
    }
}

fn remove_sorted<T: Ord>(table: &mut Table<T>, address: IpAddr, value: &T) {
    let Some(values) = table.get_mut(&address) else { return };
    values.retain(|other| other != value);
    if values.is_empty() {
        table.remove(&address);
    }
}

#[cfg(test)]
pub(crate) mod tests;
