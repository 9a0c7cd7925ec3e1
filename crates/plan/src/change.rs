//! What goes into a [`crate::Planner`] and what comes out: changes of objects in, changes of the plan out.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Service};

use crate::key::{FrontendKey, PoolKey, PortKey};
use crate::node::Node;
use crate::plan::{Endpoint, Frontend, HealthCheck, Pool};
use crate::reason::Note;

/// Something that changed in the cluster or on the Node. `None` says that it is gone.
#[derive(Debug, Clone)]
pub enum Change {
    /// A Service.
    Service(Key, Option<Arc<Service>>),
    /// An EndpointSlice.
    Slice(Key, Option<Arc<EndpointSlice>>),
    /// What is known of the Node the plan is for.
    Node(Box<Node>),
    /// Labels of some Node, by its name. Only `topologyKeys` look at them; without the gate they need not be told.
    Labels(String, Option<BTreeMap<String, String>>),
}

/// One thing of the plan that changed: both sides if it is another now. The two sides differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta<K, V> {
    /// Which.
    pub key: K,
    /// As it was; `None`: it is new.
    pub old: Option<V>,
    /// As it is; `None`: it is gone.
    pub new: Option<V>,
}

/// What changed in the plan, exactly: what is not here is as it was. Each list is sorted by key and has a key once.
///
/// A renderer that adds pools before frontends and removes frontends before pools never points at what is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanChange {
    /// The Node as it was, if what is known of it changed.
    pub node: Option<Box<Node>>,
    /// Frontends.
    pub frontends: Vec<Delta<FrontendKey, Arc<Frontend>>>,
    /// Frontends that wait for an address another Service has: for those who tell people.
    pub contested: Vec<Delta<FrontendKey, Vec<Arc<Frontend>>>>,
    /// Pools.
    pub pools: Vec<Delta<PoolKey, Arc<Pool>>>,
    /// Endpoints of ports, chosen or not: for those who look after existing connections.
    pub backends: Vec<Delta<PortKey, Arc<[Endpoint]>>>,
    /// Cluster IPs.
    pub cluster_ips: Vec<Delta<IpAddr, ()>>,
    /// Health checks.
    pub health_checks: Vec<Delta<Arc<Key>, HealthCheck>>,
    /// Notes.
    pub notes: Vec<Delta<Arc<Key>, Arc<[Note]>>>,
}

impl PlanChange {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == PlanChange::default()
    }
}

/// A table of the plan.
pub(crate) trait Table<K, V> {
    fn get(&self, key: &K) -> Option<&V>;
    fn set(&mut self, key: K, value: Option<V>);
}

impl<K: Ord, V> Table<K, V> for BTreeMap<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        BTreeMap::get(self, key)
    }

    fn set(&mut self, key: K, value: Option<V>) {
        match value {
            Some(value) => drop(self.insert(key, value)),
            None => drop(self.remove(&key)),
        }
    }
}

impl<K: Eq + Hash, V> Table<K, V> for HashMap<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        HashMap::get(self, key)
    }

    fn set(&mut self, key: K, value: Option<V>) {
        match value {
            Some(value) => drop(self.insert(key, value)),
            None => drop(self.remove(&key)),
        }
    }
}

/// Deltas while they are gathered: a key that changes twice is one change, one that changes back is none.
#[derive(Debug)]
pub(crate) struct Deltas<K, V>(BTreeMap<K, (Option<V>, Option<V>)>);

impl<K, V> Default for Deltas<K, V> {
    fn default() -> Deltas<K, V> {
        Deltas(BTreeMap::new())
    }
}

impl<K: Ord + Clone, V: PartialEq + Clone> Deltas<K, V> {
    /// Puts a value into a table, or takes it out, and notes the change.
    pub(crate) fn set(&mut self, table: &mut impl Table<K, V>, key: K, new: Option<V>) {
        let old = table.get(&key);
        if old != new.as_ref() {
            let old = old.cloned();
            table.set(key.clone(), new.clone());
            self.note(key, old, new);
        }
    }

    /// Notes that something became something else.
    pub(crate) fn note(&mut self, key: K, old: Option<V>, new: Option<V>) {
        if old.is_none() && new.is_none() {
            return;
        }
        self.0.entry(key).and_modify(|sides| sides.1 = new.clone()).or_insert((old, new));
    }

    pub(crate) fn into_vec(self) -> Vec<Delta<K, V>> {
        let changed = self.0.into_iter().filter(|(_, (old, new))| old != new);
        changed.map(|(key, (old, new))| Delta { key, old, new }).collect()
    }
}
