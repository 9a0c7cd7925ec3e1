//! Keeps a plan up to date: a change costs what it changes, not what is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Service};

use crate::change::{Change, Deltas, PlanChange, Table};
use crate::key::{FrontendKey, PoolKey, PortKey};
use crate::node::Node;
use crate::plan::{Endpoint, Frontend, HealthCheck, Plan, Pool};
use crate::reason::Note;
use crate::service::{self, Planned};
use crate::slice::{Names, Place, Slice, Viewpoint};

/// The label with the Service a slice belongs to.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A plan with what it was made from.
#[derive(Debug, Default)]
pub struct Planner {
    plan: Plan,
    services: HashMap<Arc<Key>, Held>,
    /// The Service each slice belongs to.
    owners: HashMap<Key, Arc<Key>>,
    /// Labels of Nodes.
    labels: HashMap<String, BTreeMap<String, String>>,
    /// Names of Nodes and zones that endpoints are in.
    names: Names,
    /// How many Services have a cluster IP: more than one only by mistake.
    cluster_ips: HashMap<IpAddr, usize>,
}

/// What is known of a Service, and what it put into the plan.
#[derive(Debug, Default)]
struct Held {
    service: Option<Arc<Service>>,
    /// By name. Most Services have one.
    slices: Vec<Slice>,
    made: Made,
}

/// Names of what a Service put into the plan.
#[derive(Debug, Default)]
struct Made {
    frontends: Vec<FrontendKey>,
    pools: Vec<PoolKey>,
    backends: Vec<PortKey>,
    cluster_ips: Vec<IpAddr>,
}

/// Changes of the plan while they are gathered.
#[derive(Default)]
struct Gathered {
    frontends: Deltas<FrontendKey, Arc<Frontend>>,
    contested: Deltas<FrontendKey, Vec<Arc<Frontend>>>,
    pools: Deltas<PoolKey, Arc<Pool>>,
    backends: Deltas<PortKey, Arc<[Endpoint]>>,
    cluster_ips: Deltas<IpAddr, ()>,
    health_checks: Deltas<Arc<Key>, HealthCheck>,
    notes: Deltas<Arc<Key>, Arc<[Note]>>,
}

impl Planner {
    /// A plan for a Node in an empty cluster.
    pub fn new(node: Node) -> Planner {
        Planner { plan: Plan { node, ..Plan::default() }, ..Planner::default() }
    }

    /// The plan as it is.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where an endpoint of a Service is, as far as its slices say so.
    pub fn place(&self, service: &Key, ip: IpAddr) -> Place {
        let slices = self.services.get(service).map(|held| &held.slices);
        slices.into_iter().flatten().find_map(|slice| slice.place(ip)).unwrap_or_default()
    }

    /// Takes changes in, all at once: each Service they concern is planned once. Returns what is otherwise in the plan than
    /// before.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> PlanChange {
        let mut touched = BTreeSet::new();
        let before = self.take_in(changes, &mut touched);
        let mut gathered = Gathered::default();
        for key in &touched {
            self.replan(key, &mut gathered);
        }
        PlanChange {
            node: before.filter(|before| **before != self.plan.node),
            frontends: gathered.frontends.into_vec(),
            contested: gathered.contested.into_vec(),
            pools: gathered.pools.into_vec(),
            backends: gathered.backends.into_vec(),
            cluster_ips: gathered.cluster_ips.into_vec(),
            health_checks: gathered.health_checks.into_vec(),
            notes: gathered.notes.into_vec(),
        }
    }

    /// Takes changes in and says which Services must be planned again. Returns the Node as it was, if it was told anew.
    fn take_in(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
        touched: &mut BTreeSet<Arc<Key>>,
    ) -> Option<Box<Node>> {
        let mut before = None;
        for change in changes {
            match change {
                Change::Service(key, service) => touched.extend(self.put_service(key, service)),
                Change::Slice(key, slice) => self.put_slice(key, slice, touched),
                Change::Labels(name, labels) => self.put_labels(name, labels, touched),
                Change::Node(mut node) => {
                    std::mem::swap(&mut self.plan.node, &mut node);
                    if !node.plans_like(&self.plan.node) {
                        self.read_again(|_| true, touched);
                    }
                    before.get_or_insert(node);
                }
            }
        }
        before
    }

    fn put_service(&mut self, key: Key, service: Option<Arc<Service>>) -> Option<Arc<Key>> {
        if service.is_none() && !self.services.contains_key(&key) {
            return None;
        }
        let key = self.hold(key);
        let held = self.services.get_mut(&key).expect("held since a line ago");
        let old_keys = service::keys(held.service.as_deref(), &self.plan.node).to_vec();
        held.service = service;
        if old_keys != service::keys(held.service.as_deref(), &self.plan.node) {
            held.read_slices(&self.plan.node, &self.labels);
        }
        Some(key)
    }

    fn put_slice(&mut self, key: Key, slice: Option<Arc<EndpointSlice>>, touched: &mut BTreeSet<Arc<Key>>) {
        let owner = slice.as_deref().and_then(|slice| owner_of(&key, slice));
        let before = self.owners.remove(&key).filter(|before| owner.as_ref() != Some(&**before));
        if let Some((before, held)) = before.and_then(|key| self.services.get_mut(&key).map(|held| (key, held))) {
            held.slices.retain(|slice| slice.name != key.name);
            touched.insert(before);
        }
        let (Some(owner), Some(slice)) = (owner, slice) else { return };
        let owner = self.hold(owner);
        let held = self.services.get_mut(&owner).expect("held since a line ago");
        let keys = service::keys(held.service.as_deref(), &self.plan.node);
        let from = Viewpoint { node: &self.plan.node, labels: &self.labels, keys };
        let slice = Slice::read(key.name.clone(), &slice, &from, &mut self.names);
        match held.slices.binary_search_by(|other| other.name.cmp(&key.name)) {
            Ok(place) => held.slices[place] = slice,
            Err(place) => held.slices.insert(place, slice),
        }
        self.owners.insert(key, owner.clone());
        touched.insert(owner);
    }

    fn put_labels(&mut self, name: String, labels: Option<BTreeMap<String, String>>, touched: &mut BTreeSet<Arc<Key>>) {
        let before = match labels {
            Some(labels) if self.labels.get(&name) == Some(&labels) => return,
            Some(labels) => self.labels.insert(name, labels),
            None => match self.labels.remove(&name) {
                None => return,
                before => before,
            },
        };
        drop(before);
        if self.plan.node.topology_keys {
            self.read_again(|service| !service.spec.topology_keys.is_empty(), touched);
        }
    }

    /// Reads the slices of some Services again, because from here they look otherwise now.
    fn read_again(&mut self, which: impl Fn(&Service) -> bool, touched: &mut BTreeSet<Arc<Key>>) {
        for (key, held) in &mut self.services {
            if held.service.as_deref().is_none_or(&which) {
                held.read_slices(&self.plan.node, &self.labels);
                touched.insert(key.clone());
            }
        }
    }

    /// A place for what is known of a Service; its key as it is used everywhere.
    fn hold(&mut self, key: Key) -> Arc<Key> {
        if let Some((known, _)) = self.services.get_key_value(&key) {
            return known.clone();
        }
        let key = Arc::new(key);
        self.services.insert(key.clone(), Held::default());
        key
    }

    /// Plans a Service and puts what comes out in the place of what it had in the plan.
    fn replan(&mut self, key: &Arc<Key>, gathered: &mut Gathered) {
        let Some(held) = self.services.get_mut(key) else { return };
        let planned = match &held.service {
            Some(service) => service::plan(key, service, &held.slices, &self.plan.node),
            None => Planned::default(),
        };
        let made = std::mem::replace(&mut held.made, Made::of(&planned));
        if held.service.is_none() && held.slices.is_empty() {
            self.services.remove(key);
        }
        let Planned { frontends, pools, backends, cluster_ips, health_check, mut notes } = planned;
        self.put_frontends(key, made.frontends, frontends, gathered);
        replace(&mut self.plan.pools, made.pools, pools, &mut gathered.pools);
        replace(&mut self.plan.backends, made.backends, backends, &mut gathered.backends);
        self.put_cluster_ips(&made.cluster_ips, &cluster_ips, &mut gathered.cluster_ips);
        gathered.health_checks.set(&mut self.plan.health_checks, key.clone(), health_check);
        notes.sort_unstable();
        notes.dedup();
        let notes = (!notes.is_empty()).then(|| notes.into());
        gathered.notes.set(&mut self.plan.notes, key.clone(), notes);
    }

    fn put_frontends(
        &mut self,
        service: &Arc<Key>,
        old: Vec<FrontendKey>,
        mut new: BTreeMap<FrontendKey, Arc<Frontend>>,
        gathered: &mut Gathered,
    ) {
        for key in old {
            let frontend = new.remove(&key);
            self.claim(service, key, frontend, gathered);
        }
        for (key, frontend) in new {
            self.claim(service, key, Some(frontend), gathered);
        }
    }

    /// A Service asks for an address, or no longer does. If several ask, one gets it and the others wait.
    fn claim(&mut self, service: &Arc<Key>, key: FrontendKey, claim: Option<Arc<Frontend>>, gathered: &mut Gathered) {
        let mut claims = self.plan.contested(&key).to_vec();
        claims.extend(self.plan.frontends.get(&key).cloned());
        claims.retain(|other| other.port.service != *service);
        claims.extend(claim);
        if claims.len() > 1 {
            claims.sort_by_cached_key(|frontend| self.rank(frontend));
        }
        let mut claims = claims.into_iter();
        gathered.frontends.set(&mut self.plan.frontends, key, claims.next());
        let waiting: Vec<_> = claims.collect();
        let waiting = (!waiting.is_empty()).then_some(waiting);
        gathered.contested.set(&mut self.plan.contested, key, waiting);
    }

    /// Who gets an address several ask for: those for whom it was allocated before those who only name it, then the older.
    fn rank(&self, frontend: &Frontend) -> impl Ord + use<> {
        let held = self.services.get(&frontend.port.service);
        let created = held.and_then(|held| held.service.as_ref()?.metadata.creation_timestamp.clone());
        (frontend.kind, created.is_none(), created, frontend.port.clone())
    }

    fn put_cluster_ips(&mut self, old: &[IpAddr], new: &BTreeSet<IpAddr>, gathered: &mut Deltas<IpAddr, ()>) {
        for ip in new.iter().filter(|ip| !old.contains(ip)) {
            let count = self.cluster_ips.entry(*ip).or_default();
            *count += 1;
            if self.plan.cluster_ips.insert(*ip) {
                gathered.note(*ip, None, Some(()));
            }
        }
        for ip in old.iter().filter(|ip| !new.contains(ip)) {
            let Some(count) = self.cluster_ips.get_mut(ip) else { continue };
            *count -= 1;
            if *count == 0 {
                self.cluster_ips.remove(ip);
                self.plan.cluster_ips.remove(ip);
                gathered.note(*ip, Some(()), None);
            }
        }
    }
}

impl Held {
    fn read_slices(&mut self, node: &Node, labels: &HashMap<String, BTreeMap<String, String>>) {
        let from = Viewpoint { node, labels, keys: service::keys(self.service.as_deref(), node) };
        self.slices.iter_mut().for_each(|slice| slice.look(&from));
    }
}

impl Made {
    fn of(planned: &Planned) -> Made {
        Made {
            frontends: planned.frontends.keys().copied().collect(),
            pools: planned.pools.keys().cloned().collect(),
            backends: planned.backends.keys().cloned().collect(),
            cluster_ips: planned.cluster_ips.iter().copied().collect(),
        }
    }
}

/// Puts new entries in the place of old ones.
fn replace<K: Ord + Clone, V: PartialEq + Clone>(
    table: &mut impl Table<K, V>,
    old: Vec<K>,
    mut new: BTreeMap<K, V>,
    gathered: &mut Deltas<K, V>,
) {
    for key in old {
        let value = new.remove(&key);
        gathered.set(table, key, value);
    }
    for (key, value) in new {
        gathered.set(table, key, Some(value));
    }
}

/// The Service a slice belongs to, if it is one of ours.
fn owner_of(key: &Key, slice: &EndpointSlice) -> Option<Key> {
    let labels = &slice.metadata.labels;
    let name = labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    service::label_reason(labels).is_none().then(|| Key::new(key.namespace.clone(), name.as_str()))
}
