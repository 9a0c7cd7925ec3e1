//! What the controllers know of the cluster, and what they conclude from it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fairlead_api::kinds;
use fairlead_api::view::{EndpointSlice, Endpoints, Meta, Node, Pod, Service, View};
use fairlead_cluster::{Error, Key, Mirror, Reference};
use fairlead_endpoints::hints::{Hinted, Zones};
use fairlead_endpoints::{Changes, LeftOut, Membership, Notice, Severity, TriggerTimes, legacy, mirror, slices};

use super::concern::service_of;
use super::write::{Object, Write, writes};
use super::{Task, Work};
use crate::Options;
use crate::metrics::{Share, SliceMeter};

/// The label by which Endpoints say who keeps them.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

/// The cluster, with what makes a change cheap: nobody looks at all Services or Pods because of one.
pub(super) struct State {
    pub(super) mirror: Mirror,
    pub(super) membership: Membership,
    /// The Pods of each Node.
    pub(super) on_node: HashMap<String, BTreeSet<Key>>,
    pub(super) zones: Zones,
    /// What is remembered of each Service.
    pub(super) memory: HashMap<Key, Memory>,
    /// The names of the slices of each Service.
    slices: HashMap<Key, BTreeSet<Box<str>>>,
    meter: Arc<SliceMeter>,
}

/// What is remembered of a Service between two looks.
#[derive(Debug, Default)]
pub(super) struct Memory {
    slices: TriggerTimes,
    endpoints: TriggerTimes,
    pub(super) hinted: Hinted,
    share: Share,
}

/// What is to be done.
#[derive(Default)]
pub(super) struct Todo {
    pub(super) writes: Vec<Write>,
    pub(super) notices: Vec<(Reference, Notice)>,
}

pub(super) fn key(namespace: &str, name: &str) -> Key {
    Key::new(namespace, name)
}

/// When an object was written; 0 if it does not say.
pub(super) fn revision(metadata: &Meta) -> u64 {
    metadata.resource_version.parse().unwrap_or_default()
}

impl State {
    /// What follows from a mirror that has been listed.
    pub(super) fn new(mirror: Mirror, meter: Arc<SliceMeter>) -> State {
        let mut membership = Membership::default();
        let (mut on_node, mut slices) = (HashMap::<String, BTreeSet<Key>>::new(), HashMap::<Key, BTreeSet<_>>::new());
        for service in mirror.all::<Service>() {
            membership.apply_service(service, []);
        }
        for pod in mirror.all::<Pod>() {
            membership.apply_pod(pod);
            on_node.entry(pod.spec.node_name.clone()).or_default().insert(key_of(&pod.metadata));
        }
        for slice in mirror.all::<EndpointSlice>() {
            if let Some(service) = service_of(slice) {
                slices.entry(service).or_default().insert(slice.metadata.name.as_str().into());
            }
        }
        let zones = Zones::of(mirror.all::<Node>().map(|node| &**node));
        State { mirror, membership, on_node, zones, memory: HashMap::new(), slices, meter }
    }

    /// Everything there is to look at.
    pub(super) fn all(&self) -> Vec<Work> {
        let services = self.mirror.all::<Service>().map(|service| key_of(&service.metadata));
        let endpoints = self.mirror.all::<Endpoints>().map(|endpoints| key_of(&endpoints.metadata));
        let mut names: BTreeSet<Key> = services.chain(endpoints).collect();
        names.extend(self.slices.keys().cloned());
        let works = |service: Key| Task::ALL.map(|task| Work { task, service: service.clone() });
        names.into_iter().flat_map(works).collect()
    }

    pub(super) fn move_pod(&mut self, pod: &Key, from: Option<String>, to: Option<String>) {
        if let Some(from) = from {
            let pods = self.on_node.get_mut(&from);
            let empty = pods.is_some_and(|pods| {
                pods.remove(pod);
                pods.is_empty()
            });
            if empty {
                self.on_node.remove(&from);
            }
        }
        if let Some(to) = to {
            self.on_node.entry(to).or_default().insert(pod.clone());
        }
    }

    /// Keeps a slice under the Service it is for, as long as it is.
    pub(super) fn index(&mut self, slice: &Key, service: &Key, now: Option<&EndpointSlice>) {
        if now.and_then(service_of).as_ref() == Some(service) {
            self.slices.entry(service.clone()).or_default().insert(slice.name.clone());
            return;
        }
        let Some(names) = self.slices.get_mut(service) else { return };
        names.remove(&slice.name);
        if names.is_empty() {
            self.slices.remove(service);
        }
    }

    /// What a controller has to do about a Service.
    pub(super) fn decide(&mut self, work: &Work, options: &Options) -> Todo {
        let todo = match work.task {
            Task::Slices => self.decide_slices(&work.service, options.max_endpoints_per_slice),
            Task::Endpoints => self.decide_endpoints(&work.service),
            Task::Mirroring => self.decide_mirroring(&work.service, options.mirroring_max_endpoints_per_subset),
        };
        todo.unwrap_or_default()
    }

    fn decide_slices(&mut self, service: &Key, max_endpoints: usize) -> Option<Todo> {
        let Key { namespace, name } = service;
        let mut memory = self.memory.remove(service).unwrap_or_default();
        let found = self.mirror.get::<Service>(namespace, name)?;
        let pods = self.pods_of(service);
        let of_service = self.slices_of(service);
        let trigger_time = memory.slices.observe(found, &pods);
        let outcome = slices::reconcile(&slices::Input {
            service: found,
            pods: &pods,
            nodes: &|name| self.mirror.get::<Node>("", name).map(|node| &**node),
            slices: &of_service,
            max_endpoints,
            trigger_time: trigger_time.as_deref(),
            zones: &self.zones,
            hinted: &memory.hinted,
        });
        memory.hinted = outcome.hinted;
        let kept: Vec<_> = of_service.iter().copied().filter(|slice| slices::is_kept_for(slice, found)).collect();
        self.meter.decided(&mut memory.share, &kept, &outcome.changes, max_endpoints);
        let todo = todo(&Reference::of(&**found), outcome.changes, &of_service);
        self.memory.insert(service.clone(), memory);
        Some(todo)
    }

    fn decide_endpoints(&mut self, service: &Key) -> Option<Todo> {
        let Key { namespace, name } = service;
        let mut memory = self.memory.remove(service).unwrap_or_default();
        let existing = self.mirror.get::<Endpoints>(namespace, name).map(|endpoints| &**endpoints);
        let Some(found) = self.mirror.get::<Service>(namespace, name) else { return existing.and_then(orphan) };
        let pods = self.pods_of(service);
        let trigger_time = memory.endpoints.observe(found, &pods);
        let input = legacy::Input { service: found, pods: &pods, existing, trigger_time: trigger_time.as_deref() };
        let existing: Vec<&Endpoints> = existing.into_iter().collect();
        let todo = todo(&Reference::of(&**found), legacy::reconcile(&input), &existing);
        self.memory.insert(service.clone(), memory);
        Some(todo)
    }

    fn decide_mirroring(&mut self, service: &Key, max_addresses: usize) -> Option<Todo> {
        let Key { namespace, name } = service;
        let endpoints = self.mirror.get::<Endpoints>(namespace, name).map(|endpoints| &**endpoints);
        let of_service = self.slices_of(service);
        let changes = mirror::reconcile(&mirror::Input {
            endpoints,
            service: self.mirror.get::<Service>(namespace, name).map(|service| &**service),
            slices: &of_service,
            max_addresses,
        });
        let gone = Meta { namespace: namespace.to_string(), name: name.to_string(), ..Meta::default() };
        let about = Reference::to(&kinds::ENDPOINTS, endpoints.map_or(&gone, View::meta));
        Some(todo(&about, changes, &of_service))
    }

    /// What to say of a write that was refused.
    pub(super) fn failure(&self, work: &Work, error: &Error) -> Option<(Reference, Notice)> {
        let Key { namespace, name } = &work.service;
        let (reason, what) = match work.task {
            Task::Slices => ("FailedToUpdateEndpointSlices", "Error updating Endpoint Slices for Service"),
            Task::Endpoints => ("FailedToUpdateEndpoint", "Failed to update endpoint"),
            Task::Mirroring => ("FailedToUpdateEndpointSlices", "Error updating EndpointSlices for Endpoints"),
        };
        let about = match work.task {
            Task::Mirroring => Reference::of(&**self.mirror.get::<Endpoints>(namespace, name)?),
            _ => Reference::of(&**self.mirror.get::<Service>(namespace, name)?),
        };
        let message = format!("{what} {}: {error}", work.service);
        Some((about, Notice { severity: Severity::Warning, reason, message }))
    }

    fn pods_of(&self, service: &Key) -> Vec<&Pod> {
        let names = self.membership.pods_of(&service.namespace, &service.name);
        names.filter_map(|name| self.mirror.get::<Pod>(&service.namespace, name)).map(|pod| &**pod).collect()
    }

    fn slices_of(&self, service: &Key) -> Vec<&EndpointSlice> {
        let names = self.slices.get(service).into_iter().flatten();
        names
            .filter_map(|name| self.mirror.get::<EndpointSlice>(&service.namespace, name))
            .map(|slice| &**slice)
            .collect()
    }
}

pub(super) fn key_of(metadata: &Meta) -> Key {
    key(&metadata.namespace, &metadata.name)
}

/// The API server deletes the Endpoints of a deleted Service. Who sees them go first and the Service later has made them again;
/// those of others are theirs to keep.
fn orphan(endpoints: &Endpoints) -> Option<Todo> {
    let ours = endpoints.metadata.labels.get(MANAGED_BY).is_some_and(|name| name == legacy::CONTROLLER);
    let writes = vec![Write::DeleteOrphan(endpoints.metadata.clone())];
    ours.then_some(Todo { writes, notices: Vec::new() })
}

/// Turns what a pure function says into writes and Events.
fn todo<T: View + Into<Object>>(about: &Reference, changes: Changes<T>, existing: &[&T]) -> Todo {
    for LeftOut { name, reason, .. } in &changes.left_out {
        tracing::trace!(about = ?about, name, %reason, "left out");
    }
    let find = |name: &String| existing.iter().find(|object| object.meta().name == *name);
    let delete = changes.delete.iter().filter_map(find).map(|object| object.meta().clone()).collect();
    let notices = changes.notices.into_iter().map(|notice| (about.clone(), notice)).collect();
    Todo { writes: writes(changes.create, changes.update, delete), notices }
}
