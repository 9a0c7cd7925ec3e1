//! The objects of a cluster that explanations need, kept so that everything about one Service is found without looking at the
//! others, and so that a change says which Services it concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Endpoints, Namespace, Node, Service, ServiceType, View};
use fairlead_endpoints::Membership;

use crate::Pod;
pub use event::Event;

mod event;

/// The domain of clusters when nothing else is said.
const DOMAIN: &str = "cluster.local";
/// The label with the Service a slice belongs to.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// A Pod with new labels may be a near miss of Services that select nothing. So many of them are looked at again.
const NEAR: usize = 64;

/// The objects of a cluster, or of the part of it that matters.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    /// The domain of the cluster, if it is not the usual one.
    domain: Option<Box<str>>,
    services: BTreeMap<Key, Arc<Service>>,
    /// Aliases by the Service they lead to, whether it exists or not.
    aliases_of: BTreeMap<Key, BTreeSet<Key>>,
    pods: BTreeMap<Key, Arc<Pod>>,
    slices: BTreeMap<Key, Arc<EndpointSlice>>,
    /// Slices by the Service they name.
    slices_of: BTreeMap<Key, BTreeSet<Key>>,
    endpoints: BTreeMap<Key, Arc<Endpoints>>,
    nodes: BTreeMap<Box<str>, Arc<Node>>,
    namespaces: BTreeMap<Box<str>, Arc<Namespace>>,
    events: BTreeMap<Key, Arc<Event>>,
    /// Events by the kind and the key of what they are about.
    events_of: BTreeMap<(String, Key), BTreeSet<Key>>,
    membership: Membership,
    /// Services with a selector that selects nothing.
    idle: BTreeSet<Key>,
}

/// An object that is new, another, or, with `None`, gone.
#[derive(Debug, Clone)]
pub enum Change {
    /// A Service.
    Service(Key, Option<Arc<Service>>),
    /// A Pod.
    Pod(Key, Option<Arc<Pod>>),
    /// An EndpointSlice.
    EndpointSlice(Key, Option<Arc<EndpointSlice>>),
    /// An Endpoints object.
    Endpoints(Key, Option<Arc<Endpoints>>),
    /// A Node.
    Node(Key, Option<Arc<Node>>),
    /// A Namespace. Without any, it is not known which there are.
    Namespace(Key, Option<Arc<Namespace>>),
    /// An Event about a Service or a Pod: its message is shown as evidence.
    Event(Key, Option<Arc<Event>>),
}

impl Objects {
    /// Says which domain the cluster has; without, it is `cluster.local`.
    pub fn set_domain(&mut self, domain: &str) {
        self.domain = Some(domain.trim_end_matches('.').into());
    }

    /// The domain of the cluster.
    pub fn domain(&self) -> &str {
        self.domain.as_deref().unwrap_or(DOMAIN)
    }

    /// Takes changes in. Returns the Services about which [`crate::check`] may now say something else.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> BTreeSet<Key> {
        let mut concerned = BTreeSet::new();
        for change in changes {
            match change {
                Change::Service(key, service) => {
                    self.put_service(&key, service);
                    self.note_aliases(key, &mut concerned);
                }
                Change::Pod(key, pod) => self.put_pod(key, pod, &mut concerned),
                Change::EndpointSlice(key, slice) => self.put_slice(key, slice, &mut concerned),
                Change::Endpoints(key, endpoints) => {
                    put(&mut self.endpoints, key.clone(), endpoints);
                    concerned.insert(key);
                }
                // What becomes of their Pods is told by the Pods.
                Change::Node(key, node) => put(&mut self.nodes, key.name, node),
                Change::Namespace(key, namespace) => put(&mut self.namespaces, key.name, namespace),
                Change::Event(key, event) => self.put_event(key, event, &mut concerned),
            }
        }
        concerned
    }

    /// A Service, and those that are other names of it.
    fn note_aliases(&self, key: Key, concerned: &mut BTreeSet<Key>) {
        let (mut open, mut all) = (vec![key], BTreeSet::new());
        while let Some(key) = open.pop() {
            if all.insert(key.clone()) {
                open.extend(self.aliases_of.get(&key).into_iter().flatten().cloned());
            }
        }
        concerned.append(&mut all);
    }

    fn put_service(&mut self, key: &Key, service: Option<Arc<Service>>) {
        if let Some(before) = self.services.get(key).and_then(|service| target(service)) {
            remove(&mut self.aliases_of, &before, key);
        }
        if let Some(now) = service.as_deref().and_then(target) {
            self.aliases_of.entry(now).or_default().insert(key.clone());
        }
        match &service {
            Some(service) => {
                let pods = in_namespace(&self.pods, &key.namespace).map(|(_, pod)| &*pod.view);
                self.membership.apply_service(service, pods);
            }
            None => self.membership.remove_service(&key.namespace, &key.name),
        }
        put(&mut self.services, key.clone(), service);
        self.note_idle(key);
    }

    fn put_pod(&mut self, key: Key, pod: Option<Arc<Pod>>, concerned: &mut BTreeSet<Key>) {
        let before = self.pods.get(&key);
        let labels = |pod: Option<&Arc<Pod>>| pod.map(|pod| pod.view.metadata.labels.clone());
        let moved = labels(before) != labels(pod.as_ref());
        let names = match &pod {
            Some(pod) => self.membership.apply_pod(&pod.view),
            None => self.membership.remove_pod(&key.namespace, &key.name),
        };
        let namespace = key.namespace.clone();
        put(&mut self.pods, key, pod);
        for name in names {
            let service = Key::new(namespace.clone(), name);
            self.note_idle(&service);
            concerned.insert(service);
        }
        if moved {
            let idle = self.idle.range(Key::new(namespace.clone(), "")..).take_while(|key| key.namespace == namespace);
            concerned.extend(idle.take(NEAR).cloned());
        }
    }

    fn note_idle(&mut self, key: &Key) {
        let selects = self.services.get(key).is_some_and(|service| !service.spec.selector.is_empty());
        if selects && self.membership.pods_of(&key.namespace, &key.name).next().is_none() {
            self.idle.insert(key.clone());
        } else {
            self.idle.remove(key);
        }
    }

    fn put_slice(&mut self, key: Key, slice: Option<Arc<EndpointSlice>>, concerned: &mut BTreeSet<Key>) {
        let before = self.slices.get(&key).and_then(|slice| owner(slice));
        if let Some(before) = before {
            remove(&mut self.slices_of, &before, &key);
            concerned.insert(before);
        }
        if let Some(now) = slice.as_deref().and_then(owner) {
            self.slices_of.entry(now.clone()).or_default().insert(key.clone());
            concerned.insert(now);
        }
        put(&mut self.slices, key, slice);
    }

    fn put_event(&mut self, key: Key, event: Option<Arc<Event>>, concerned: &mut BTreeSet<Key>) {
        if let Some(before) = self.events.get(&key).map(|event| event.about()) {
            remove(&mut self.events_of, &before, &key);
        }
        if let Some((kind, about)) = event.as_deref().map(Event::about) {
            if kind == Service::KIND.kind {
                concerned.insert(about.clone());
            }
            self.events_of.entry((kind, about)).or_default().insert(key.clone());
        }
        put(&mut self.events, key, event);
    }

    /// A Service.
    pub fn service(&self, key: &Key) -> Option<&Arc<Service>> {
        self.services.get(key)
    }

    /// All Services.
    pub fn services(&self) -> impl Iterator<Item = (&Key, &Arc<Service>)> {
        self.services.iter()
    }

    /// A Pod.
    pub fn pod(&self, key: &Key) -> Option<&Arc<Pod>> {
        self.pods.get(key)
    }

    /// All Pods.
    pub fn pods(&self) -> impl Iterator<Item = (&Key, &Arc<Pod>)> {
        self.pods.iter()
    }

    /// Those of a namespace.
    pub fn pods_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<Pod>> {
        in_namespace(&self.pods, namespace).map(|(_, pod)| pod)
    }

    /// Those a Service selects, by name.
    pub fn pods_of(&self, service: &Key) -> impl Iterator<Item = &Arc<Pod>> {
        let names = self.membership.pods_of(&service.namespace, &service.name);
        names.filter_map(|name| self.pods.get(&Key::new(&*service.namespace, name)))
    }

    /// Whether some Service selects a Pod.
    pub fn is_selected(&self, pod: &Pod) -> bool {
        let meta = &pod.view.metadata;
        !self.membership.services_of(&meta.namespace, &meta.labels).is_empty()
    }

    /// Slices that name a Service, by name.
    pub fn slices_of(&self, service: &Key) -> impl Iterator<Item = &Arc<EndpointSlice>> {
        self.slices_of.get(service).into_iter().flatten().filter_map(|key| self.slices.get(key))
    }

    /// All slices.
    pub fn slices(&self) -> impl Iterator<Item = (&Key, &Arc<EndpointSlice>)> {
        self.slices.iter()
    }

    /// Those of a namespace.
    pub fn slices_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<EndpointSlice>> {
        in_namespace(&self.slices, namespace).map(|(_, slice)| slice)
    }

    /// The Endpoints of a Service.
    pub fn endpoints(&self, key: &Key) -> Option<&Arc<Endpoints>> {
        self.endpoints.get(key)
    }

    /// A Node.
    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    /// All Nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// A Namespace.
    pub fn namespace(&self, name: &str) -> Option<&Arc<Namespace>> {
        self.namespaces.get(name)
    }

    /// All Namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<Namespace>> {
        self.namespaces.values()
    }

    /// The newest warning about an object, of those that are wanted.
    pub fn warning(&self, kind: &str, key: &Key, wanted: impl Fn(&Event) -> bool) -> Option<&Event> {
        self.last_event(kind, key, |event| event.kind == "Warning" && wanted(event))
    }

    /// Returns the last Event about an object among those that are wanted.
    pub fn last_event(&self, kind: &str, key: &Key, wanted: impl Fn(&Event) -> bool) -> Option<&Event> {
        let events = self.events_of.get(&(kind.to_owned(), key.clone())).into_iter().flatten();
        let events = events.filter_map(|key| self.events.get(key)).filter(|event| wanted(event));
        events.max_by_key(|event| event.at()).map(|event| &**event)
    }
}

/// The Service a slice names.
pub(crate) fn owner(slice: &EndpointSlice) -> Option<Key> {
    let name = slice.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    Some(Key::new(&*slice.metadata.namespace, &**name))
}

/// The Service an alias is another name of, whatever the cluster's domain is.
fn target(service: &Service) -> Option<Key> {
    let alias = service.spec.kind == ServiceType::ExternalName;
    let (key, _) = named(&service.spec.external_name).filter(|_| alias)?;
    Some(key)
}

/// What a name such as `web.shop.svc.cluster.local` stands for in the cluster whose domain is behind `svc`.
pub(crate) fn named(name: &str) -> Option<(Key, &str)> {
    let mut labels = name.trim_end_matches('.').splitn(4, '.');
    let (service, namespace, kind, domain) = (labels.next()?, labels.next()?, labels.next()?, labels.next()?);
    (kind == "svc").then(|| (Key::new(namespace, service), domain))
}

fn put<K: Ord, T>(map: &mut BTreeMap<K, Arc<T>>, key: K, value: Option<Arc<T>>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}

fn remove<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Key>>, key: &K, member: &Key) {
    let Some(members) = index.get_mut(key) else { return };
    members.remove(member);
    if members.is_empty() {
        index.remove(key);
    }
}

fn in_namespace<'a, T>(map: &'a BTreeMap<Key, T>, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a T)> {
    let namespace: Box<str> = namespace.into();
    map.range(Key::new(namespace.clone(), "")..).take_while(move |(key, _)| key.namespace == namespace)
}

#[cfg(test)]
mod tests;
