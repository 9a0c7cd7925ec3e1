//! Keeps the program for a plan: renders it, and says which steps turn it into that of the plan after a change.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairlead_plan::{
    Action, Delta, Endpoint, Family, Frontend, FrontendKey, Node, Plan, PlanChange, Pool, PoolKey, PortKey, Protocol,
    Scope, family_of,
};
use ipnet::IpNet;

use super::batch::Batch;
use super::code;
use super::key::Key;
use super::layout;
use super::model::{Chain, Element, Op, Program};
use super::ports::Ports;
use super::rules::Via;
use super::sets::{Sizes, sets};
use super::slots::Place;

/// How the program is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The bit of the mark that says that a packet is to be masqueraded (`--masquerade-bit`). No other bit is changed.
    pub masquerade_mark: u32,
}

/// Bit 14, as ever.
impl Default for Options {
    fn default() -> Options {
        Options { masquerade_mark: 1 << 14 }
    }
}

/// What is known of the program in the kernel: numbers given out, and who has which slot. The elements themselves are not
/// kept.
#[derive(Debug)]
pub struct Nft {
    options: Options,
    portals: Option<Portals>,
    node: Node,
    families: BTreeMap<Family, State>,
}

/// Where a process of the Node serves pools, which then have no other endpoint: mode userspace. Who sends there without having
/// been led there is refused, and so is SCTP.
pub type Portals = HashMap<PoolKey, SocketAddr>;

/// A pool as packets see it. `None`: nobody serves it.
fn seen<'a>(pool: &'a Pool, portals: Option<&Portals>) -> Option<Cow<'a, Pool>> {
    let Some(portals) = portals else { return Some(Cow::Borrowed(pool)) };
    let at = portals.get(&pool.key)?;
    let (ip, port) = (at.ip(), at.port());
    let (ready, serving, terminating) = (true, true, false);
    let portal = Endpoint { ip, port, local: false, weight: 1, ready, serving, terminating };
    Some(Cow::Owned(Pool { key: pool.key.clone(), endpoints: [portal].into(), affinity: None }))
}

/// A frontend as packets see it: what processes of the Node cannot serve is refused.
fn served(frontend: &Arc<Frontend>, portals: Option<&Portals>) -> Arc<Frontend> {
    if portals.is_none() || frontend.key.protocol() != Protocol::Sctp {
        return frontend.clone();
    }
    let actions = frontend.actions.map(|action| match action {
        Action::Forward { .. } => Action::Reject,
        other => other,
    });
    Arc::new(Frontend { actions, ..Frontend::clone(frontend) })
}

/// One table.
#[derive(Debug, Default)]
struct State {
    ports: Ports,
    /// Portals nobody may use directly.
    portals: Portals,
    /// How many elements there are.
    sizes: Sizes,
    /// How many there may be.
    room: Sizes,
    /// Up to which size there are chains.
    largest: u32,
}

/// Up to which size there are chains at least. The kernel is slow to add one that uses a map when there is much in it, so
/// there are more from the start than are needed.
const LARGEST: u32 = 128;

/// An endpoint with its number.
type Member = (u32, Place);

/// Numbers that a program in the kernel has given out, by an earlier run. With them what the kernel remembers of clients
/// stays true.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The elements of `frontends` and `nodeports`: numbers of ports.
    frontends: HashMap<Key, u32>,
    /// The elements of `members`: by number of the port, numbers of endpoints.
    members: HashMap<u32, Vec<Member>>,
}

impl Known {
    /// Reads one element of a map of a program; of other maps nothing is known.
    pub fn read(&mut self, map: &str, key: &[u8], value: &[u8]) {
        let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
        match map {
            "frontends" | "nodeports" => {
                let value = number(value).map(|value| (Key::new().part(key), value & code::PORT));
                self.frontends.extend(value.filter(|(_, number)| *number != 0));
            }
            "members" if key.len() == 8 => {
                let (pool, index) = (number(&key[..4]).unwrap_or(0), number(&key[4..]).unwrap_or(0));
                let member = code::read_endpoint(value).map(|place| (index, place));
                self.members.entry(pool & code::PORT).or_default().extend(member);
            }
            _ => {}
        }
    }
}

/// Maps whose elements count: each new connection is one packet of one of them.
pub const COUNTED: [&str; 2] = ["endpoints", "members"];

/// Which port's connections to which endpoint an element of such a map counts: the port by its number.
pub fn counted(key: &[u8], value: &[u8]) -> Option<(u32, SocketAddr)> {
    let pool = key.first_chunk().copied().map(u32::from_ne_bytes)?;
    let (ip, port) = code::read_endpoint(value)?;
    Some((pool & code::PORT, SocketAddr::new(ip, port)))
}

/// The steps that remove whatever is there of ours. Before those of [`Nft::new`], in one batch, they put a program in the place
/// of another without a gap.
pub fn clear() -> Vec<Op> {
    let both = [Family::V4, Family::V6];
    // What is made need not be there, and what is deleted must.
    both.into_iter().flat_map(|family| [Op::AddTable(family), Op::DeleteTable(family)]).collect()
}

/// The whole program for a plan.
pub fn render(plan: &Plan, options: Options) -> Program {
    let (_, ops) = Nft::new(plan, options);
    let mut program = Program::default();
    program.take(&ops).expect("what is made from nothing is in order");
    program
}

impl Nft {
    /// Begins, with the steps that make the program from nothing.
    pub fn new(plan: &Plan, options: Options) -> (Nft, Vec<Op>) {
        Nft::resume(plan, options, &BTreeMap::new())
    }

    /// The same with numbers as an earlier run gave them out.
    pub fn resume(plan: &Plan, options: Options, known: &BTreeMap<Family, Known>) -> (Nft, Vec<Op>) {
        let nft = Nft { options, portals: None, node: plan.node().clone(), families: BTreeMap::new() };
        nft.begin(plan, known)
    }

    /// Begins with pools that a process of the Node serves.
    pub fn with_portals(plan: &Plan, options: Options, portals: Portals) -> (Nft, Vec<Op>) {
        let nft = Nft { options, portals: Some(portals), node: plan.node().clone(), families: BTreeMap::new() };
        nft.begin(plan, &BTreeMap::new())
    }

    fn begin(mut self, plan: &Plan, known: &BTreeMap<Family, Known>) -> (Nft, Vec<Op>) {
        let mut ops = Vec::new();
        for family in &plan.node().families {
            self.build(*family, plan, known.get(family), &mut ops);
        }
        (self, ops)
    }

    /// The number of a port in the maps, if it has endpoints: see [`counted`].
    pub fn number(&self, port: &PortKey) -> Option<u32> {
        let state = self.families.get(&port.family)?;
        Some(state.ports.number(port)).filter(|number| *number != 0)
    }

    /// Where pools are served. Before [`Nft::apply`] it must have those that are new.
    pub fn portals(&mut self) -> Option<&mut Portals> {
        self.portals.as_mut()
    }

    /// Takes a change of the plan, which is as it is after the change, and returns the steps for one batch.
    pub fn apply(&mut self, plan: &Plan, change: &PlanChange) -> Vec<Op> {
        let mut ops = Vec::new();
        let before = std::mem::replace(&mut self.node, plan.node().clone());
        for family in before.families.difference(&self.node.families) {
            self.families.remove(family);
            ops.push(Op::DeleteTable(*family));
        }
        let setup = self.setup();
        for family in self.node.families.clone() {
            let Some(state) = self.families.get_mut(&family) else {
                self.build(family, plan, None, &mut ops);
                continue;
            };
            let mut batch = Batch::new(family);
            state.change(family, change, self.portals.as_ref(), &mut batch);
            batch.count(&mut state.sizes);
            state.grow(&mut batch);
            if state.room.fits(&state.sizes) {
                if before != self.node {
                    change_layout(&before, &self.node, family, setup, &mut batch, &mut ops);
                }
                batch.into_ops(&mut ops);
            } else {
                // A map is full: all of it anew, with more room, at once.
                ops.push(Op::DeleteTable(family));
                self.build(family, plan, None, &mut ops);
            }
        }
        ops
    }

    fn setup(&self) -> layout::Setup {
        layout::Setup { masquerade_mark: self.options.masquerade_mark, portals: self.portals.is_some() }
    }

    /// Makes a table.
    fn build(&mut self, family: Family, plan: &Plan, known: Option<&Known>, ops: &mut Vec<Op>) {
        let mut state = State::default();
        let mut batch = Batch::new(family);
        if let Some(known) = known {
            state.reserve(family, plan, known);
        }
        state.fill(family, plan, self.portals.as_ref(), &mut batch);
        state.ports.forget_unused();
        batch.count(&mut state.sizes);
        state.room = state.sizes.with_room();
        state.largest = (state.ports.largest() * 2).max(LARGEST);
        batch.add_sizes(0, state.largest);
        ops.push(Op::AddTable(family));
        ops.extend(sets(family, &state.room).into_iter().map(|set| Op::AddSet(family, set)));
        for chain in layout::chains(&self.node, family, self.setup()) {
            add_chain(family, chain, ops);
        }
        for (set, elements) in layout::elements(&self.node, family) {
            elements.into_iter().for_each(|element| batch.add(set, element));
        }
        batch.into_ops(ops);
        self.families.insert(family, state);
    }
}

fn add_chain(family: Family, chain: Chain, ops: &mut Vec<Op>) {
    ops.push(Op::AddChain(family, chain.name.clone(), chain.base));
    let name = chain.name;
    ops.extend(chain.rules.into_iter().map(|rule| Op::AddRule(family, name.clone(), rule)));
}

/// What follows when the Node is another: rules that name it, and sets with its addresses and ranges.
fn change_layout(
    before: &Node,
    after: &Node,
    family: Family,
    setup: layout::Setup,
    batch: &mut Batch,
    ops: &mut Vec<Op>,
) {
    let chains = |node| layout::chains(node, family, setup);
    for (old, new) in chains(before).into_iter().zip(chains(after)) {
        if old.rules != new.rules {
            ops.push(Op::FlushChain(family, new.name.clone()));
            let name = new.name;
            ops.extend(new.rules.into_iter().map(|rule| Op::AddRule(family, name.clone(), rule)));
        }
    }
    for ((set, old), (_, new)) in layout::elements(before, family).into_iter().zip(layout::elements(after, family)) {
        old.iter().filter(|element| !new.contains(element)).for_each(|element| batch.delete(set, element.clone()));
        new.iter().filter(|element| !old.contains(element)).for_each(|element| batch.add(set, element.clone()));
    }
}

impl State {
    /// Gives ports the numbers they had.
    fn reserve(&mut self, family: Family, plan: &Plan, known: &Known) {
        // What the kernel says may be anything: two ports with one number are not both taken over.
        let mut owners: HashMap<u32, &PortKey> = HashMap::new();
        for frontend in plan.frontends().filter(|frontend| frontend.key.family() == family) {
            let number = known.frontends.get(&code::frontend_key(&frontend.key));
            let forwards = code::forwards(&frontend.actions);
            if let Some(number) = number.filter(|_| forwards)
                && *owners.entry(*number).or_insert(&frontend.port) == &frontend.port
            {
                let members = known.members.get(number).map_or(&[][..], Vec::as_slice);
                self.ports.reserve(&frontend.port, *number, members);
            }
        }
    }

    /// Everything the plan has for a family.
    fn fill(&mut self, family: Family, plan: &Plan, portals: Option<&Portals>, batch: &mut Batch) {
        // In the order of addresses: it is the same every time, and names are slow to compare.
        for frontend in plan.frontends().filter(|frontend| frontend.key.family() == family) {
            for scope in [Scope::Cluster, Scope::Local] {
                let pool = plan.pool_of(frontend, scope);
                let pool = pool.filter(|pool| !self.ports.has(&pool.key));
                if let Some(pool) = pool.and_then(|pool| seen(pool, portals)) {
                    self.ports.set(&pool.key, None, Some(&pool), batch);
                    self.guard_portal(&pool.key, portals, batch);
                }
            }
            self.set_frontend(None, Some(&served(frontend, portals)), batch);
        }
        let mut rest: Vec<_> = plan.pools().filter(|pool| pool.key.port.family == family).collect();
        rest.retain(|pool| !self.ports.has(&pool.key));
        rest.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        for pool in rest.into_iter().filter_map(|pool| seen(pool, portals)) {
            self.ports.set(&pool.key, None, Some(&pool), batch);
            self.guard_portal(&pool.key, portals, batch);
        }
        let ours = plan.cluster_ips().iter().filter(|ip| family_of(**ip) == family);
        ours.for_each(|ip| batch.add("cluster-ips", Element::new(Key::new().ip(*ip))));
    }

    /// Makes chains for pools larger than any before.
    fn grow(&mut self, batch: &mut Batch) {
        let (before, needed) = (self.largest, self.ports.largest());
        if needed > before {
            batch.add_sizes(before, needed);
            self.largest = needed;
        }
    }

    fn change(&mut self, family: Family, change: &PlanChange, portals: Option<&Portals>, batch: &mut Batch) {
        let served = |frontend: &Arc<Frontend>| served(frontend, portals);
        let changed = change.frontends.iter().filter(|delta| delta.key.family() == family);
        let frontends: Vec<_> = changed
            .map(|delta| Delta {
                key: delta.key,
                old: delta.old.as_ref().map(served),
                new: delta.new.as_ref().map(served),
            })
            .collect();
        // What they led to, before numbers change hands.
        let before: Vec<_> = frontends.iter().map(|delta| self.lead(delta.old.as_deref())).collect();
        let pools = || change.pools.iter().filter(|delta| delta.key.port.family == family);
        pools().for_each(|delta: &Delta<PoolKey, Arc<Pool>>| {
            let new = delta.new.as_deref().and_then(|pool| seen(pool, portals));
            let old = delta.old.as_deref().filter(|_| portals.is_none());
            self.ports.set(&delta.key, old, new.as_deref(), batch);
            let portals = if new.is_some() { portals } else { None };
            self.guard_portal(&delta.key, portals, batch);
        });
        pools().for_each(|delta| self.ports.tidy(&delta.key.port));
        for (delta, before) in frontends.iter().zip(before) {
            self.change_frontend(delta, before, batch);
        }
        for delta in change.cluster_ips.iter().filter(|delta| family_of(delta.key) == family) {
            let element = |_: &()| Element::new(Key::new().ip(delta.key));
            batch.change("cluster-ips", delta.old.as_ref().map(element), delta.new.as_ref().map(element));
        }
    }

    /// Makes a pool's portal an address at which everybody is refused. It is not the address packets have that are led there.
    fn guard_portal(&mut self, key: &PoolKey, portals: Option<&Portals>, batch: &mut Batch) {
        let new = portals.and_then(|portals| portals.get(key)).copied();
        let old = match new {
            Some(new) => self.portals.insert(key.clone(), new),
            None => self.portals.remove(key),
        };
        let element = |at: SocketAddr, value: u32| {
            let protocol = key.port.protocol;
            let key = FrontendKey::Address { ip: at.ip(), protocol, port: at.port() };
            Element::data(code::frontend_key(&key), Key::new().number(value))
        };
        for (map, value) in [("frontends", code::GUARDED), ("guarded", code::refuse_all())] {
            batch.change(map, old.map(|at| element(at, value)), new.map(|at| element(at, value)));
        }
    }

    fn change_frontend(&self, delta: &Delta<FrontendKey, Arc<Frontend>>, before: Option<u32>, batch: &mut Batch) {
        let (old, new) = (delta.old.as_deref(), delta.new.as_deref());
        let after = self.lead(new);
        let key = code::frontend_key(&delta.key);
        let element = |number: u32| Element::data(key, Key::new().number(number));
        batch.change(via(&delta.key).frontends(), before.map(element), after.map(element));
        let guard = |frontend: Option<&Frontend>| frontend.and_then(code::guard).map(element);
        batch.change(via(&delta.key).guarded(), guard(old), guard(new));
        change_allowed(old, new, batch);
    }

    fn set_frontend(&self, old: Option<&Arc<Frontend>>, new: Option<&Arc<Frontend>>, batch: &mut Batch) {
        let Some(key) = new.or(old).map(|frontend| frontend.key) else { return };
        let delta = Delta { key, old: old.cloned(), new: new.cloned() };
        self.change_frontend(&delta, self.lead(old.map(|old| &**old)), batch);
    }

    /// What a frontend leads to.
    fn lead(&self, frontend: Option<&Frontend>) -> Option<u32> {
        let number = |frontend: &Frontend| match code::forwards(&frontend.actions) {
            true => self.ports.number(&frontend.port),
            false => 0,
        };
        frontend.map(|frontend| code::frontend(frontend, number(frontend)))
    }
}

fn via(key: &FrontendKey) -> Via {
    match key {
        FrontendKey::Address { .. } => Via::Address,
        FrontendKey::NodePort { .. } => Via::NodePort,
    }
}

/// Source ranges, which only addresses of load balancers have.
fn change_allowed(old: Option<&Frontend>, new: Option<&Frontend>, batch: &mut Batch) {
    let (old, new) = (allowed(old), allowed(new));
    old.iter().filter(|element| !new.contains(element)).for_each(|element| batch.delete("allowed", element.clone()));
    new.iter().filter(|element| !old.contains(element)).for_each(|element| batch.add("allowed", element.clone()));
}

fn allowed(frontend: Option<&Frontend>) -> Vec<Element> {
    let Some((frontend, ranges)) = frontend.and_then(|frontend| Some((frontend, frontend.allowed.as_ref()?))) else {
        return Vec::new();
    };
    let key = |ip: IpAddr| code::frontend_key(&frontend.key).ip(ip);
    let ends = |range: &IpNet| Element::range(key(range.network()), key(range.broadcast()));
    IpNet::aggregate(&ranges.to_vec()).iter().map(ends).collect()
}
