//! Who belongs to whom: every object that has owners or that waits for its dependents, the owners it names, and nothing else.
//!
//! It is small because most objects of a cluster own nothing and are owned by nobody, and because uids are kept as hashes: they
//! only tell that there may be something to do. Whether there is, is asked of the API ([`super::collect`]).

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use fairlead_api::{Kind, kinds};
use fairlead_cluster::Key;

use super::head::Head;

#[cfg(test)]
mod tests;

/// The finalizer of an object whose dependents go first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents lose their owner first.
pub(super) const ORPHAN: &str = "orphan";

/// An object, there or not. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id {
    /// Its place in the table of kinds.
    kind: u8,
    /// `namespace/name`, or only the name.
    path: Arc<str>,
}

impl Id {
    /// An object of the kind at a place in the table of kinds.
    pub(super) fn new(kind: usize, namespace: &str, name: &str) -> Id {
        let kind = u8::try_from(kind).expect("the table of kinds has fewer than 256 entries");
        let path = if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() };
        Id { kind, path }
    }

    pub(super) fn of(kind: usize, key: &Key) -> Id {
        Id::new(kind, &key.namespace, &key.name)
    }

    pub(super) fn kind(&self) -> &'static Kind {
        kinds::KINDS[usize::from(self.kind)]
    }

    pub(super) fn place(&self) -> usize {
        usize::from(self.kind)
    }

    /// Namespace and name.
    pub(super) fn parts(&self) -> (&str, &str) {
        self.path.split_once('/').unwrap_or(("", &self.path))
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind().kind, self.path)
    }
}

/// What is to be done about an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// See whether its owners are still there.
    Check(Known),
    /// Take it from these, its dependents, as their owner, and let it go.
    Orphan(Vec<Id>),
    /// It waits for no dependent any more: let it go.
    Release,
}

/// What the graph knows and the object does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// It owns something.
    pub(super) has_dependents: bool,
    /// Something it owns waits for its own dependents, so that there may be a circle.
    pub(super) in_circle: bool,
    /// Its owners are new.
    pub(super) fresh: bool,
}

/// Who belongs to whom.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Node>,
    free: Vec<u32>,
    places: HashMap<Id, u32>,
    /// The objects of lists that are coming in, or that came in before everything was listed, with their uids; as hashes.
    listed: HashMap<usize, HashMap<u64, u64>>,
    synced: bool,
    hasher: RandomState,
}

#[derive(Debug)]
struct Node {
    id: Id,
    /// The hash of its uid; 0 if it was not seen.
    uid: u64,
    owners: Box<[Edge]>,
    dependents: Vec<u32>,
    fate: Fate,
    /// One of its owners is of a kind we do not follow.
    foreign: bool,
    fresh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    uid: u64,
    owner: u32,
    /// Whether the owner waits for it.
    blocks: bool,
}

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    /// It is on its way out, and that is no matter of ours.
    Goes,
    /// It goes once its dependents have gone.
    DeletesDependents,
    /// It goes once its dependents have lost it.
    Orphans,
}

impl Fate {
    fn of(head: &Head<'_>) -> Fate {
        match head {
            _ if !head.is_terminating() => Fate::Stays,
            _ if head.has_finalizer(FOREGROUND) => Fate::DeletesDependents,
            _ if head.has_finalizer(ORPHAN) => Fate::Orphans,
            _ => Fate::Goes,
        }
    }

    fn is_work(self) -> bool {
        matches!(self, Fate::DeletesDependents | Fate::Orphans)
    }
}

impl Graph {
    /// An object is there, as it is now. `todo` gets every object about which there may be something to do.
    pub(super) fn put(&mut self, id: Id, head: &Head<'_>, todo: &mut Vec<Id>) {
        let (uid, fate) = (self.hash(head.uid()), Fate::of(head));
        if let Some(listed) = self.listed.get_mut(&id.place()) {
            listed.insert(self.hasher.hash_one(&id), uid);
        }
        if !self.places.contains_key(&id) && head.owners().is_empty() && !fate.is_work() {
            return;
        }
        let at = self.place(&id);
        self.seen(at, uid, todo);
        self.own(at, head, todo);
        self.decide(at, fate, todo);
        self.forget(at);
    }

    /// An object is not there.
    pub(super) fn delete(&mut self, id: &Id, todo: &mut Vec<Id>) {
        if let Some(listed) = self.listed.get_mut(&id.place()) {
            listed.remove(&self.hasher.hash_one(id));
        }
        let Some(&at) = self.places.get(id) else { return };
        self.link(at, Box::default(), todo);
        let node = self.node_mut(at);
        (node.uid, node.fate, node.foreign) = (0, Fate::Stays, false);
        todo.extend(self.node(at).dependents.iter().map(|&at| self.node(at).id.clone()));
        self.forget(at);
    }

    /// A list of a kind begins.
    pub(super) fn listing(&mut self, kind: usize) {
        self.listed.insert(kind, HashMap::new());
    }

    /// A list of a kind is complete: what is not in it is not there.
    pub(super) fn listed(&mut self, kind: usize, todo: &mut Vec<Id>) {
        let Some(listed) = self.listed.get(&kind) else { return };
        let of_kind = self.places.keys().filter(|id| id.place() == kind);
        let gone: Vec<Id> = of_kind.filter(|id| !listed.contains_key(&self.hasher.hash_one(*id))).cloned().collect();
        if self.synced {
            self.listed.remove(&kind);
        }
        gone.iter().for_each(|id| self.delete(id, todo));
    }

    /// Every kind has been listed: from now on what is not known is not there.
    pub(super) fn sync(&mut self, todo: &mut Vec<Id>) {
        self.synced = true;
        for node in &mut self.nodes {
            let listed = self.listed.get(&node.id.place());
            if let Some(uid) = listed.and_then(|listed| listed.get(&self.hasher.hash_one(&node.id))) {
                node.uid = *uid;
            }
        }
        self.listed = HashMap::new();
        self.nodes.shrink_to_fit();
        let at_work = self.places.iter().filter(|(_, at)| self.node(**at).fate.is_work() || self.is_doubtful(**at));
        todo.extend(at_work.map(|(id, _)| id.clone()));
    }

    /// Whether every kind has been listed.
    pub(super) fn is_synced(&self) -> bool {
        self.synced
    }

    /// What is to be done about an object, if anything.
    pub(super) fn work(&mut self, id: &Id) -> Option<Work> {
        let at = *self.places.get(id)?;
        let fresh = std::mem::take(&mut self.node_mut(at).fresh);
        let node = self.node(at);
        match node.fate {
            Fate::Goes => None,
            Fate::Orphans => Some(Work::Orphan(self.owned(at).map(|(node, _)| node.id.clone()).collect())),
            Fate::DeletesDependents if self.owned(at).any(|(_, edge)| edge.blocks) => None,
            Fate::DeletesDependents => Some(Work::Release),
            Fate::Stays if node.foreign || node.owners.is_empty() => None,
            Fate::Stays => Some(Work::Check(Known {
                has_dependents: !node.dependents.is_empty(),
                in_circle: node.dependents.iter().any(|&at| self.node(at).fate == Fate::DeletesDependents),
                fresh,
            })),
        }
    }

    /// The uid of an object is this: its dependents may mean another.
    fn seen(&mut self, at: u32, uid: u64, todo: &mut Vec<Id>) {
        if std::mem::replace(&mut self.node_mut(at).uid, uid) == uid || !self.synced {
            return;
        }
        let dependents = self.node(at).dependents.iter().map(|&at| self.node(at));
        let others = dependents.filter(|node| node.owners.iter().any(|edge| edge.owner == at && edge.uid != uid));
        todo.extend(others.map(|node| node.id.clone()));
    }

    /// The owners of an object are these.
    fn own(&mut self, at: u32, head: &Head<'_>, todo: &mut Vec<Id>) {
        let namespace = self.node(at).id.parts().0.to_owned();
        let (mut edges, mut foreign) = (Vec::new(), false);
        for owner in head.owners() {
            let Some(kind) = super::followed(&owner.api_version, &owner.kind) else {
                foreign = true;
                continue;
            };
            let namespace = if kinds::KINDS[kind].namespaced { namespace.as_str() } else { "" };
            let place = self.place(&Id::new(kind, namespace, &owner.name));
            edges.push(Edge { uid: self.hash(&owner.uid), owner: place, blocks: owner.block_owner_deletion });
        }
        self.node_mut(at).foreign = foreign;
        if self.link(at, edges.into(), todo) && self.synced {
            self.node_mut(at).fresh = true;
            if self.is_doubtful(at) {
                todo.push(self.node(at).id.clone());
            }
        }
    }

    /// What becomes of an object is this.
    fn decide(&mut self, at: u32, fate: Fate, todo: &mut Vec<Id>) {
        if std::mem::replace(&mut self.node_mut(at).fate, fate) == fate || !fate.is_work() {
            return;
        }
        todo.push(self.node(at).id.clone());
        if fate == Fate::DeletesDependents {
            todo.extend(self.node(at).dependents.iter().map(|&at| self.node(at).id.clone()));
        }
    }

    /// Whether an object may have to go: an owner is not known to be there, or waits for it to go.
    fn is_doubtful(&self, at: u32) -> bool {
        let doubtful = |edge: &Edge| {
            let owner = self.node(edge.owner);
            owner.uid != edge.uid || owner.fate == Fate::DeletesDependents
        };
        self.node(at).owners.iter().any(doubtful)
    }

    /// The objects that mean this very object, and not one of the same name before it.
    fn owned(&self, at: u32) -> impl Iterator<Item = (&Node, &Edge)> {
        let owner = self.node(at);
        let dependents = owner.dependents.iter().map(|&at| self.node(at));
        dependents.filter_map(move |node| {
            node.owners.iter().find(|edge| edge.owner == at && edge.uid == owner.uid).map(|edge| (node, edge))
        })
    }

    /// Gives an object other owners; says whether they differ. Owners that waited for it look again.
    fn link(&mut self, at: u32, edges: Box<[Edge]>, todo: &mut Vec<Id>) -> bool {
        if self.node(at).owners == edges {
            return false;
        }
        let before = std::mem::replace(&mut self.node_mut(at).owners, edges);
        for edge in &before {
            let owner = self.node_mut(edge.owner);
            owner.dependents.retain(|dependent| *dependent != at);
            if owner.fate == Fate::DeletesDependents {
                todo.push(owner.id.clone());
            }
        }
        let owners: Vec<u32> = self.node(at).owners.iter().map(|edge| edge.owner).collect();
        for owner in owners {
            let dependents = &mut self.node_mut(owner).dependents;
            if !dependents.contains(&at) {
                dependents.push(at);
            }
        }
        before.iter().filter(|edge| edge.owner != at).for_each(|edge| self.forget(edge.owner));
        true
    }

    /// Lets go of a node that says nothing.
    fn forget(&mut self, at: u32) {
        let node = self.node(at);
        if node.owners.is_empty() && node.dependents.is_empty() && !node.fate.is_work() && !node.foreign {
            let id = node.id.clone();
            if self.places.remove(&id).is_some() {
                self.node_mut(at).dependents = Vec::new();
                self.free.push(at);
            }
        }
    }

    fn place(&mut self, id: &Id) -> u32 {
        if let Some(at) = self.places.get(id) {
            return *at;
        }
        let node = Node {
            id: id.clone(),
            uid: 0,
            owners: Box::default(),
            dependents: Vec::new(),
            fate: Fate::Stays,
            foreign: false,
            fresh: false,
        };
        let at = match self.free.pop() {
            Some(at) => {
                *self.node_mut(at) = node;
                at
            }
            None => {
                if self.nodes.len() == self.nodes.capacity() {
                    // By a quarter, not by half: room for what may never come is the largest part of what we hold.
                    self.nodes.reserve_exact(self.nodes.len() / 4 + 16);
                }
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("there is no memory for so many objects")
            }
        };
        self.places.insert(id.clone(), at);
        at
    }

    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut self.nodes[at as usize]
    }

    /// 0 is nobody's.
    fn hash(&self, uid: &str) -> u64 {
        self.hasher.hash_one(uid).max(1)
    }
}
