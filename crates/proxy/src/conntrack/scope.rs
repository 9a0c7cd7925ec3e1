//! What of the kernel's table is to be looked at: a few destinations or endpoints, or all flows of a protocol. Each filter
//! is a walk over the table in the kernel; what passes it costs far more.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use fairlead_kernel::conntrack::Filter;
use fairlead_plan::{
    Action, Delta, Endpoint, Family, Frontend, FrontendKey, Node, Plan, PlanChange, PortKey, Protocol,
};

use super::removed::Removed;
use super::stale::number;

/// So many targets are looked for one by one at most.
const MANY: usize = 8;
/// A walk over the table takes as long as it takes to hand out this many entries of it.
const WALK: usize = 4000;

/// Protocols of which flows may be stale.
pub(super) fn is_tracked(protocol: Protocol) -> bool {
    protocol != Protocol::Tcp
}

/// What is to be looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Scope {
    parts: BTreeSet<(Family, Protocol)>,
    targets: BTreeSet<Target>,
}

/// Some flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// Those to a frontend that came, went, or has another owner.
    Frontend(FrontendKey),
    /// Those at an endpoint that is gone.
    Backend(Protocol, SocketAddr),
}

impl Scope {
    /// Everything a plan is concerned with.
    pub(super) fn of(plan: &Plan, removed: &Removed) -> Scope {
        let served = plan.frontends().map(|frontend| (frontend.key.family(), frontend.key.protocol()));
        let parts = served.chain(removed.parts()).filter(|(_, protocol)| is_tracked(*protocol)).collect();
        Scope { parts, targets: BTreeSet::new() }
    }

    /// What a change may have made stale. A frontend that changes hands leads elsewhere, and so does one that is new, and one
    /// that led nowhere: what is refused is not remembered, but while tables are written one after the other something may
    /// have passed. Any further endpoint makes no flow stale.
    pub(super) fn changed(plan: &Plan, change: &PlanChange) -> Scope {
        if change.node.as_ref().is_some_and(|before| !serves_like(before, plan.node())) {
            return Scope::of(plan, &Removed::default());
        }
        let mut scope = Scope::default();
        for delta in change.frontends.iter().filter(|delta| is_tracked(delta.key.protocol())) {
            let owner = |side: &Option<Arc<Frontend>>| side.as_ref().map(|it| it.port.clone());
            let leads = |side: &Option<Arc<Frontend>>| side.as_ref().is_some_and(|it| leads(it));
            if owner(&delta.old) != owner(&delta.new) || leads(&delta.new) && !leads(&delta.old) {
                scope.targets.insert(Target::Frontend(delta.key));
            }
        }
        for delta in change.backends.iter().filter(|delta| is_tracked(delta.key.protocol)) {
            scope.targets.extend(gone(delta).map(|at| Target::Backend(delta.key.protocol, at)));
        }
        scope.bound();
        scope
    }

    /// What is not about endpoints that are gone, and what is.
    pub(super) fn split(self) -> (Scope, Scope) {
        let gone = |target: &Target| matches!(target, Target::Backend(..));
        let (gone, other): (BTreeSet<_>, BTreeSet<_>) = self.targets.into_iter().partition(gone);
        (Scope { parts: self.parts, targets: other }, Scope { parts: BTreeSet::new(), targets: gone })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.targets.is_empty()
    }

    pub(super) fn merge(&mut self, other: Scope) {
        self.parts.extend(other.parts);
        self.targets.extend(other.targets);
        self.bound();
    }

    fn bound(&mut self) {
        if self.targets.len() > MANY {
            self.parts.extend(self.targets.iter().map(Target::part));
        }
        let parts = &self.parts;
        self.targets.retain(|target| !parts.contains(&target.part()));
    }

    /// What to ask the kernel for, which remembers so many flows.
    pub(super) fn filters(&self, known: u32) -> Vec<Filter> {
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let mut parts = self.parts.clone();
        let (one_by_one, whole) = (self.targets.len() * WALK, WALK.saturating_add(known));
        if known == 0 {
            return Vec::new();
        }
        if one_by_one > whole {
            parts.extend(self.targets.iter().map(Target::part));
        }
        let targets = self.targets.iter().filter(|target| !parts.contains(&target.part()));
        parts.iter().map(|part| of_part(*part)).chain(targets.map(Target::filter)).collect()
    }
}

impl Target {
    fn part(&self) -> (Family, Protocol) {
        match self {
            Target::Frontend(key) => (key.family(), key.protocol()),
            Target::Backend(protocol, at) => (fairlead_plan::family_of(at.ip()), *protocol),
        }
    }

    fn filter(&self) -> Filter {
        let part = of_part(self.part());
        match *self {
            Target::Frontend(FrontendKey::Address { ip, port, .. }) => {
                Filter { destination: Some(ip), destination_port: Some(port), ..part }
            }
            Target::Frontend(FrontendKey::NodePort { port, .. }) => Filter { destination_port: Some(port), ..part },
            Target::Backend(_, at) => {
                Filter { answers_from: Some(at.ip()), answers_from_port: Some(at.port()), ..part }
            }
        }
    }
}

fn of_part((family, protocol): (Family, Protocol)) -> Filter {
    Filter { protocol: Some(number(protocol)), ipv6: Some(family == Family::V6), ..Filter::default() }
}

/// Whether packets from anywhere get to an endpoint.
fn leads(frontend: &Frontend) -> bool {
    frontend.actions.iter().any(|(_, action)| matches!(action, Action::Forward { .. }))
}

/// Endpoints of a port that served before a change and do not after it.
fn gone(delta: &Delta<PortKey, Arc<[Endpoint]>>) -> impl Iterator<Item = SocketAddr> {
    let serving = |side: &Option<Arc<[Endpoint]>>| {
        let all = side.iter().flat_map(|all| all.iter());
        all.filter(|one| one.serving).map(|one| SocketAddr::new(one.ip, one.port)).collect::<BTreeSet<_>>()
    };
    let after = serving(&delta.new);
    serving(&delta.old).into_iter().filter(move |at| !after.contains(at))
}

/// Whether the same addresses serve node ports.
fn serves_like(one: &Node, other: &Node) -> bool {
    let of = |node: &Node| [Family::V4, Family::V6].map(|family| node.node_ports(family));
    one.addresses == other.addresses && one.families == other.families && of(one) == of(other)
}
