//! Which endpoints of a port traffic may reach from this Node: readiness, the fallback to those on their way out, hints,
//! topology keys, weights. Decided for the two traffic policies separately.

use std::sync::Arc;

use crate::node::Node;
use crate::plan::Endpoint;
use crate::reason::Reason;
use crate::slice::{Hinted, Member};

/// What a port has.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Every endpoint there is.
    pub(crate) all: Arc<[Endpoint]>,
    /// For policy Cluster.
    pub(crate) cluster: Arc<[Endpoint]>,
    /// For policy Local.
    pub(crate) local: Arc<[Endpoint]>,
    /// Whether some Node could serve it.
    pub(crate) anywhere: bool,
    /// What fell back in choosing for policy Cluster, and what in choosing for policy Local.
    pub(crate) cluster_notes: Vec<Reason>,
    pub(crate) local_notes: Vec<Reason>,
}

impl Choice {
    /// Chooses among members, which are in order and have none twice. `keys` are topology keys that count.
    pub(crate) fn of(members: &[Member], node: &Node, keys: &[String]) -> Choice {
        let all: Arc<[Endpoint]> = members.iter().map(|member| member.endpoint).collect();
        let (mut cluster_notes, mut local_notes) = (Vec::new(), Vec::new());
        let cluster = cluster(members, node, keys, &mut cluster_notes);
        let local = local(members, &mut local_notes);
        let anywhere =
            members.iter().any(|member| is_usable(member, State::Ready) || is_usable(member, State::Leaving));
        Choice { cluster: share(&all, &cluster), local: share(&all, &local), all, anywhere, cluster_notes, local_notes }
    }

    /// How many endpoints are only there to finish what they have.
    pub(crate) fn drained(&self) -> usize {
        self.all.iter().filter(|endpoint| endpoint.weight == 0).count()
    }
}

/// How far an endpoint is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// On its way out, but still serving.
    Leaving,
}

fn is_usable(member: &Member, state: State) -> bool {
    let Endpoint { ready, serving, terminating, weight, .. } = member.endpoint;
    let fits = match state {
        State::Ready => ready,
        State::Leaving => !ready && serving && terminating,
    };
    fits && weight > 0
}

/// Those that are ready, or else those that still serve; and which of the two.
fn usable(members: &[Member], only: impl Fn(&Member) -> bool) -> (Vec<Member>, State) {
    let pick = |state| members.iter().filter(|member| only(member) && is_usable(member, state)).copied().collect();
    let ready: Vec<Member> = pick(State::Ready);
    if ready.is_empty() { (pick(State::Leaving), State::Leaving) } else { (ready, State::Ready) }
}

fn local(members: &[Member], notes: &mut Vec<Reason>) -> Vec<Member> {
    let (chosen, state) = usable(members, |member| member.endpoint.local);
    if state == State::Leaving && !chosen.is_empty() {
        notes.push(Reason::UsesLocalTerminating { count: chosen.len() });
    }
    chosen
}

fn cluster(members: &[Member], node: &Node, keys: &[String], notes: &mut Vec<Reason>) -> Vec<Member> {
    let (mut chosen, state) = usable(members, |_| true);
    if chosen.is_empty() {
        return chosen;
    }
    if state == State::Leaving {
        notes.push(Reason::UsesTerminating { count: chosen.len() });
    }
    if !keys.is_empty() {
        notes.push(follow_keys(&mut chosen, keys));
    } else if state == State::Ready {
        follow_hints(&mut chosen, node, notes);
    }
    chosen
}

/// The first key that this Node shares with some endpoint decides.
fn follow_keys(chosen: &mut Vec<Member>, keys: &[String]) -> Reason {
    let usable = chosen.len();
    for (bit, key) in keys.iter().enumerate().take(u16::BITS as usize) {
        let shares = |member: &Member| member.shares & (1 << bit) != 0;
        if chosen.iter().any(shares) {
            chosen.retain(shares);
            return Reason::TopologyKey { key: key.clone(), kept: chosen.len(), usable };
        }
    }
    chosen.clear();
    Reason::NoTopologyMatch { keys: keys.to_vec(), usable }
}

/// Hints for Nodes before hints for zones; each only if all endpoints have one and one names us.
fn follow_hints(chosen: &mut Vec<Member>, node: &Node, notes: &mut Vec<Reason>) {
    let nodes = HintKind { what: "Nodes", ours: Some(&node.name), of: |member| member.node_hint };
    let zones = HintKind { what: "zones", ours: node.zone(), of: |member| member.zone_hint };
    if !nodes.follow(chosen, notes) {
        zones.follow(chosen, notes);
    }
}

/// One kind of hints.
struct HintKind<'a> {
    what: &'static str,
    ours: Option<&'a str>,
    of: fn(&Member) -> Hinted,
}

impl HintKind<'_> {
    /// Keeps what is hinted at us, if hints of this kind can be followed.
    fn follow(&self, chosen: &mut Vec<Member>, notes: &mut Vec<Reason>) -> bool {
        let (what, ready) = (self.what, chosen.len());
        let count = |hinted| chosen.iter().filter(|member| (self.of)(member) == hinted).count();
        let (without, kept) = (count(Hinted::Not), count(Hinted::Here));
        match self.ours {
            // Nobody hints at anything: nothing is ignored.
            _ if without == ready => return false,
            _ if without > 0 => notes.push(Reason::HintsIncomplete { what, without, ready }),
            None => notes.push(Reason::NoZone),
            Some(ours) if kept == 0 => notes.push(Reason::NotHinted { what, ours: ours.to_owned() }),
            Some(ours) => {
                chosen.retain(|member| (self.of)(member) == Hinted::Here);
                notes.push(Reason::Hinted { what, ours: ours.to_owned(), kept, ready });
                return true;
            }
        }
        false
    }
}

/// The endpoints of what was chosen. Nearly always that is all there are: then they are kept once.
fn share(all: &Arc<[Endpoint]>, chosen: &[Member]) -> Arc<[Endpoint]> {
    if chosen.len() == all.len() { all.clone() } else { chosen.iter().map(|member| member.endpoint).collect() }
}
