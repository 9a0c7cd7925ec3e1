//! Whom a change concerns: which controller must look at which Service again.

use std::collections::BTreeSet;

use fairlead_api::view::{EndpointSlice, Endpoints, Meta, Node, Pod, Service, View};
use fairlead_cluster::{Change, Changes, Key};
use fairlead_endpoints::hints::Zones;
use fairlead_endpoints::{members, mirror, slices};

use super::state::{State, key, revision};
use super::{Task, Work};

/// The label that says which Service a slice is for, and the one that says who keeps it.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// A controller must look at a Service, because of this.
#[derive(Debug)]
pub(super) struct Concern {
    pub(super) work: Work,
    /// The object that changed, if it is one that the controllers write themselves.
    pub(super) touched: Option<Touched>,
}

/// A version of an object the controllers write; no revision means that it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) kind: &'static str,
    pub(super) key: Key,
    pub(super) revision: Option<u64>,
}

impl State {
    /// Takes changes in, and says whom they concern.
    pub(super) fn observe(&mut self, changes: &Changes) -> Vec<Concern> {
        let mut concerns = Vec::new();
        changes.of::<Service>().iter().for_each(|change| self.service(change, &mut concerns));
        changes.of::<Pod>().iter().for_each(|change| self.pod(change, &mut concerns));
        self.nodes(changes.of::<Node>(), &mut concerns);
        changes.of::<EndpointSlice>().iter().for_each(|change| self.slice(change, &mut concerns));
        changes.of::<Endpoints>().iter().for_each(|change| endpoints(change, &mut concerns));
        concerns
    }

    fn service(&mut self, change: &Change<Service>, concerns: &mut Vec<Concern>) {
        match &change.new {
            Some(service) => {
                let pods = self.mirror.in_namespace::<Pod>(&change.key.namespace).map(|pod| &**pod);
                self.membership.apply_service(service, pods);
            }
            None => {
                self.membership.remove_service(&change.key.namespace, &change.key.name);
                self.memory.remove(&change.key);
            }
        }
        concerns.extend(Task::ALL.map(|task| concern(task, change.key.clone())));
    }

    fn pod(&mut self, change: &Change<Pod>, concerns: &mut Vec<Concern>) {
        let node = |pod: &Option<std::sync::Arc<Pod>>| pod.as_ref().map(|pod| pod.spec.node_name.clone());
        let (from, to) = (node(&change.old), node(&change.new));
        if from != to {
            self.move_pod(&change.key, from, to);
        }
        let services = match (&change.old, &change.new) {
            (Some(old), Some(new)) if !members::differs(old, new) => return,
            (_, Some(new)) => self.membership.apply_pod(new),
            (_, None) => self.membership.remove_pod(&change.key.namespace, &change.key.name),
        };
        concerns.extend(from_pods(&change.key.namespace, services, &[Task::Slices, Task::Endpoints]));
    }

    /// A Node says in which zone its endpoints are, and without it they are none; all Nodes together say how much of the
    /// cluster is in each zone.
    fn nodes(&mut self, changes: &[Change<Node>], concerns: &mut Vec<Concern>) {
        let said = |node: &Option<std::sync::Arc<Node>>| node.as_ref().map(|node| node.zone().map(str::to_owned));
        for change in changes.iter().filter(|change| said(&change.old) != said(&change.new)) {
            for pod in self.on_node.get(&*change.key.name).into_iter().flatten() {
                let Some(pod) = self.mirror.get::<Pod>(&pod.namespace, &pod.name) else { continue };
                let Meta { namespace, labels, .. } = &pod.metadata;
                let services = self.membership.services_of(namespace, labels).into_iter().map(str::to_owned);
                concerns.extend(from_pods(namespace, services.collect(), &[Task::Slices]));
            }
        }
        if !changes.iter().any(changes_zones) {
            return;
        }
        self.zones = Zones::of(self.mirror.all::<Node>().map(|node| &**node));
        let overloaded = self.memory.iter().filter(|(_, memory)| memory.hinted.is_overloaded(&self.zones));
        concerns.extend(overloaded.map(|(service, _)| concern(Task::Slices, service.clone())));
    }

    fn slice(&mut self, change: &Change<EndpointSlice>, concerns: &mut Vec<Concern>) {
        let touched = touched(change);
        for slice in [&change.old, &change.new].into_iter().flatten() {
            let Some(service) = service_of(slice) else { continue };
            self.index(&change.key, &service, change.new.as_deref());
            let task = match slice.metadata.labels.get(MANAGED_BY).map(String::as_str) {
                Some(slices::CONTROLLER) => Task::Slices,
                Some(mirror::CONTROLLER) => Task::Mirroring,
                _ => continue,
            };
            concerns.push(Concern { work: Work { task, service }, touched: Some(touched.clone()) });
        }
    }
}

fn endpoints(change: &Change<Endpoints>, concerns: &mut Vec<Concern>) {
    let touched = touched(change);
    let work = |task| Work { task, service: change.key.clone() };
    concerns.push(Concern { work: work(Task::Endpoints), touched: Some(touched) });
    concerns.push(concern(Task::Mirroring, change.key.clone()));
}

/// Which Service a slice is for.
pub(super) fn service_of(slice: &EndpointSlice) -> Option<Key> {
    let name = slice.metadata.labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    Some(Key::new(slice.metadata.namespace.as_str(), name.as_str()))
}

fn touched<T: View>(change: &Change<T>) -> Touched {
    let revision = change.new.as_ref().map(|object| revision(object.meta()));
    Touched { kind: T::KIND.kind, key: change.key.clone(), revision }
}

fn concern(task: Task, service: Key) -> Concern {
    Concern { work: Work { task, service }, touched: None }
}

fn from_pods(namespace: &str, services: BTreeSet<String>, tasks: &'static [Task]) -> impl Iterator<Item = Concern> {
    services.into_iter().flat_map(move |service| tasks.iter().map(move |task| concern(*task, key(namespace, &service))))
}

/// Whether the shares of the zones may be others now. Nodes report every few seconds; most of it does not matter here.
fn changes_zones(change: &Change<Node>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    old.metadata.labels != new.metadata.labels
        || old.is_ready() != new.is_ready()
        || old.status.allocatable != new.status.allocatable
}
