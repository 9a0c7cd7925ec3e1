//! Which Node answers for an address? Pure: the same Nodes and the same address always give the same owner, so that every Node
//! finds it out for itself and nobody has to be asked.
//!
//! ```text
//! Nodes --> may not (each with its reason)
//!       \-> may, in this order of preference:  on the address' network and ready
//!                                              on the address' network, not ready
//!                                              elsewhere and ready           (nobody is told where the address is)
//!                                              elsewhere, not ready
//! of the first that are not empty: the one with the highest number drawn from its name and the address (rendezvous hashing)
//! ```
//! When a Node goes, only its addresses move; when one comes, it takes its share and nothing else moves.

mod exclusion;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::selector::LabelSelector;
use fairlead_api::view::{Condition, Node};
use fairlead_cluster::Reference;
use fairlead_kernel::packet::Hardware;
use ipnet::IpNet;

pub use exclusion::Exclusion;

/// Nodes with this label get no traffic of load balancers, whatever its value.
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The autoscaler is about to take a Node with this taint away.
pub const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// An address somebody has to answer for.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The address.
    pub address: IpAddr,
    /// Where it may be announced: by a Node that one of these selects. None at all: nowhere, it is only held.
    pub advertisements: Vec<Advertisement>,
    /// The Nodes with a ready endpoint, if only those may have it (`externalTrafficPolicy: Local`).
    pub local: Option<BTreeSet<String>>,
    /// The Services that have it, for Events.
    pub services: Vec<Reference>,
}

impl Wanted {
    /// An address that any Node may have.
    pub fn new(address: IpAddr) -> Wanted {
        Wanted { address, advertisements: vec![Advertisement::default()], local: None, services: Vec::new() }
    }

    /// The same address, wanted for others too: only Nodes that are fine for all of them may have it.
    pub fn and(mut self, other: Wanted) -> Wanted {
        self.local = match (self.local, other.local) {
            (Some(ours), Some(theirs)) => Some(ours.intersection(&theirs).cloned().collect()),
            (ours, theirs) => ours.or(theirs),
        };
        self.advertisements.extend(other.advertisements);
        self.services.extend(other.services);
        self
    }
}

/// Where addresses may be announced: what MetalLB's L2Advertisement says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Advertisement {
    /// One of these must select the Node; none: every Node.
    pub nodes: Vec<LabelSelector>,
    /// By these interfaces; none: by all that have the network.
    pub interfaces: Vec<String>,
}

impl Advertisement {
    fn selects(&self, node: &Node) -> bool {
        let label = |name: &str| node.metadata.labels.get(name).map(String::as_str);
        self.nodes.is_empty() || self.nodes.iter().any(|selector| selector.matches(label))
    }

    fn allows(&self, link: &str) -> bool {
        self.interfaces.is_empty() || self.interfaces.iter().any(|name| name == link)
    }
}

/// What is known of a Node.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Whether its heart beats.
    pub presence: Presence,
    /// The links it is reached by.
    pub attachments: Vec<Attachment>,
    /// True if the rules that guard addresses are in force in its kernel.
    pub guarded: bool,
    /// What the API says of it; `None`: it is not there.
    pub node: Option<Arc<Node>>,
}

/// Whether a Node's heart beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Live,
    /// It did, and does no more.
    Silent,
    /// It said that it goes.
    Left,
    /// It was never heard.
    Unheard,
}

/// A link of a Node, as its heartbeat tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The name of the interface.
    pub link: String,
    /// Its hardware address.
    pub hardware: Hardware,
    /// The networks that are reached by it.
    pub networks: Vec<IpNet>,
}

/// Who answers for an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The Node; `None`: none may.
    pub owner: Option<String>,
    /// How others learn of it.
    pub reach: Reach,
    /// Why other Nodes do not.
    pub others: BTreeMap<String, Exclusion>,
}

/// How others learn where an address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// It is announced by these interfaces of the owner.
    Announced(Vec<String>),
    /// No Node that may have it is on its network: it is served, but only who has a route to the owner gets there.
    Routed,
}

/// Who answers for an address.
pub fn decide(wanted: &Wanted, members: &[Member]) -> Ownership {
    let mut others = BTreeMap::new();
    let mut best: Option<(Rank, &Member)> = None;
    for member in members {
        let rank = match hindrance(wanted, member) {
            Some(why) => {
                others.insert(member.name.clone(), why);
                continue;
            }
            None => Rank::of(wanted, member),
        };
        let (better, other) = match best.take() {
            Some((had, holder)) if (had, &holder.name) > (rank, &member.name) => ((had, holder), Some((rank, member))),
            had => ((rank, member), had),
        };
        if let Some((rank, loser)) = other {
            others.insert(loser.name.clone(), rank.why_not());
        }
        best = Some(better);
    }
    let reach = match best.map(|(_, member)| links(wanted, member)) {
        Some(links) if !links.is_empty() => Reach::Announced(links),
        _ => Reach::Routed,
    };
    Ownership { owner: best.map(|(_, member)| member.name.clone()), reach, others }
}

/// Why a Node may not have an address, whoever else there is.
fn hindrance(wanted: &Wanted, member: &Member) -> Option<Exclusion> {
    match member.presence {
        Presence::Live => {}
        Presence::Silent => return Some(Exclusion::Silent),
        Presence::Left => return Some(Exclusion::Left),
        Presence::Unheard => return Some(Exclusion::Unheard),
    }
    if !member.guarded {
        return Some(Exclusion::Unguarded);
    }
    let Some(node) = &member.node else { return Some(Exclusion::NoNode) };
    if node.metadata.labels.contains_key(EXCLUDED) {
        return Some(Exclusion::Labelled);
    }
    if node.spec.taints.iter().any(|taint| taint.key == TO_BE_DELETED) {
        return Some(Exclusion::ToBeDeleted);
    }
    if Condition::is_true(&node.status.conditions, "NetworkUnavailable") {
        return Some(Exclusion::NetworkUnavailable);
    }
    let advertisements = &wanted.advertisements;
    if !advertisements.is_empty() && !advertisements.iter().any(|one| one.selects(node)) {
        return Some(Exclusion::NotSelected);
    }
    let away = wanted.local.as_ref().is_some_and(|nodes| !nodes.contains(&member.name));
    away.then_some(Exclusion::NoLocalEndpoint)
}

/// The interfaces by which a Node may announce an address.
fn links(wanted: &Wanted, member: &Member) -> Vec<String> {
    let allowed = |link: &str| {
        let selects = |one: &&Advertisement| member.node.as_ref().is_some_and(|node| one.selects(node));
        wanted.advertisements.iter().filter(selects).any(|one| one.allows(link))
    };
    let there = |one: &&Attachment| one.networks.iter().any(|network| network.contains(&wanted.address));
    let links = member.attachments.iter().filter(there).map(|one| &one.link);
    links.filter(|link| allowed(link)).cloned().collect()
}

/// How good a Node is for an address; the greatest has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    near: bool,
    ready: bool,
    draw: u64,
}

impl Rank {
    fn of(wanted: &Wanted, member: &Member) -> Rank {
        let conditions = member.node.as_ref().map_or(&[][..], |node| &node.status.conditions);
        // A Node nobody says anything of counts as ready: without a kubelet nobody reports.
        let ready = Condition::find(conditions, "Ready").is_none_or(|condition| condition.status == "True");
        Rank { near: !links(wanted, member).is_empty(), ready, draw: draw(&member.name, wanted.address) }
    }

    /// Why a Node of this rank came after another.
    fn why_not(self) -> Exclusion {
        match (self.near, self.ready) {
            (false, _) => Exclusion::NoNetwork,
            (true, false) => Exclusion::NotReady,
            (true, true) => Exclusion::AnotherDrawn,
        }
    }
}

/// The number of a Node for an address. Nodes of different releases must agree on it: it never changes.
fn draw(node: &str, address: IpAddr) -> u64 {
    let (v4, v6);
    let octets: &[u8] = match address {
        IpAddr::V4(address) => {
            v4 = address.octets();
            &v4
        }
        IpAddr::V6(address) => {
            v6 = address.octets();
            &v6
        }
    };
    // FNV-1a, and the last steps of SplitMix64, as FNV alone hardly changes the upper bits for the last bytes.
    let hash = node
        .bytes()
        .chain([0])
        .chain(octets.iter().copied())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
