//! Follows a plan: which steps make the program from nothing, and which follow from a change. A change costs its own size.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_plan::{
    Endpoint, Family, Frontend, FrontendKey, Node, Plan, PlanChange, Pool, PoolKey, PortKey, Protocol, family_of,
};

use super::batch::Batch;
use super::code::{self, Marks};
use super::counts::{Counts, Numbers};
use super::layout;
use super::model::{At, Op, Program, Server};
use super::port::{self, Port};
use crate::nft::code as nft_code;
use crate::nft::{self, Element, Key};

/// How the program is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The bit of the mark that says that a packet is to be masqueraded (`--masquerade-bit`).
    pub masquerade_mark: u32,
    /// Who gets the next connection (`--ipvs-scheduler`).
    pub scheduler: String,
}

/// Bit 14 and round robin, as ever.
impl Default for Options {
    fn default() -> Options {
        Options { masquerade_mark: 1 << 14, scheduler: "rr".to_owned() }
    }
}

/// Numbers of ports that a program in the kernel has given out, by an earlier run. With them marks mean what they meant.
#[derive(Debug, Clone, Default)]
pub struct Known(HashMap<Key, u32>);

impl Known {
    /// Reads one element of a map of a program; of other maps nothing is known.
    pub fn read(&mut self, map: &str, key: &[u8], value: &[u8], options: &Options) {
        let mark = value.try_into().ok().map(u32::from_ne_bytes);
        let number = mark.and_then(|mark| Marks::new(options.masquerade_mark).number(mark));
        if let (true, Some(number)) = (map == "marks" || map == "nodeport-marks", number) {
            self.0.insert(Key::new().part(key), number);
        }
    }
}

/// What is known of the program in the kernel.
#[derive(Debug)]
pub struct Ipvs {
    options: Options,
    node: Node,
    ports: HashMap<PortKey, Port>,
    /// Whose each frontend is.
    owners: HashMap<FrontendKey, PortKey>,
    numbers: Numbers,
    /// How many frontends have an address of the link.
    vips: Counts<IpAddr>,
    /// How many pools have an endpoint on this Node.
    hairpins: Counts<Place>,
    health_ports: Counts<u16>,
}

/// Where an endpoint is.
type Place = (IpAddr, Protocol, u16);

/// The whole program for a plan.
pub fn render(plan: &Plan, options: &Options) -> Program {
    let (_, ops) = Ipvs::new(plan, options.clone());
    let mut program = Program::default();
    program.take(&ops).expect("what is made from nothing is in order");
    program
}

impl Ipvs {
    /// Begins, with the steps that make the program from nothing.
    pub fn new(plan: &Plan, options: Options) -> (Ipvs, Vec<Op>) {
        Ipvs::resume(plan, options, &Known::default())
    }

    /// The same with numbers as an earlier run gave them out.
    pub fn resume(plan: &Plan, options: Options, known: &Known) -> (Ipvs, Vec<Op>) {
        let mut ipvs = Ipvs {
            options,
            node: plan.node().clone(),
            ports: HashMap::new(),
            owners: HashMap::new(),
            numbers: Numbers::default(),
            vips: Counts::default(),
            hairpins: Counts::default(),
            health_ports: Counts::default(),
        };
        ipvs.reserve(plan, known);
        let mut batch = Batch::default();
        for family in &plan.node().families {
            ipvs.build(*family, &mut batch);
        }
        let frontends: Vec<FrontendKey> = plan.frontends().map(|frontend| frontend.key).collect();
        let mut pools: Vec<PoolKey> = plan.pools().map(|pool| pool.key.clone()).collect();
        pools.sort_unstable();
        plan.health_checks().for_each(|check| ipvs.health_ports.add(check.port));
        let before = ipvs.node.clone();
        ipvs.update(plan, &before, &frontends, &pools, &mut batch);
        (ipvs, batch.into_ops())
    }

    /// Takes a change of the plan, which is as it is after the change, and returns the steps.
    pub fn apply(&mut self, plan: &Plan, change: &PlanChange) -> Vec<Op> {
        if plan.node().families != self.node.families {
            return self.begin_again(plan);
        }
        let mut batch = Batch::default();
        let before = std::mem::replace(&mut self.node, plan.node().clone());
        let mut frontends: BTreeSet<FrontendKey> = change.frontends.iter().map(|delta| delta.key).collect();
        if before != self.node {
            self.change_layout(&before, &mut batch);
            frontends.extend(self.moved(&before));
        }
        let pools: Vec<PoolKey> = change.pools.iter().map(|delta| delta.key.clone()).collect();
        for delta in &change.health_checks {
            delta.old.iter().for_each(|check| self.health_ports.remove(check.port));
            delta.new.iter().for_each(|check| self.health_ports.add(check.port));
        }
        self.update(plan, &before, &frontends.into_iter().collect::<Vec<_>>(), &pools, &mut batch);
        batch.into_ops()
    }

    /// All virtual servers there should be.
    pub fn servers(&self) -> BTreeMap<At, Server> {
        self.ports.iter().flat_map(|(key, port)| self.servers_of(key, port, &self.node)).collect()
    }

    /// Ports of Services with each of their virtual servers.
    pub fn ports(&self) -> impl Iterator<Item = (&PortKey, At)> {
        self.ports.iter().flat_map(|(key, port)| {
            let servers = self.servers_of(key, port, &self.node);
            servers.into_keys().map(move |at| (key, at))
        })
    }

    /// All addresses the link should have.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.vips.counts.keys().copied()
    }

    /// Tables come or go: all of it anew, with what is there as it was where it stays.
    fn begin_again(&mut self, plan: &Plan) -> Vec<Op> {
        let mut known = Known::default();
        for port in self.ports.values() {
            known.0.extend(port.frontends.keys().map(|key| (nft_code::frontend_key(key), port.number)));
        }
        let (servers, addresses) = (self.servers(), self.addresses().collect::<BTreeSet<_>>());
        let mut batch = Batch::default();
        batch.tables.extend(self.node.families.iter().map(|family| nft::Op::DeleteTable(*family)));
        let (next, ops) = Ipvs::resume(plan, self.options.clone(), &known);
        *self = next;
        port::difference(&servers, &self.servers(), &mut batch.made, &mut batch.gone);
        let now: BTreeSet<IpAddr> = self.addresses().collect();
        batch.addresses = addresses.difference(&now).map(|ip| (*ip, false)).collect();
        batch.addresses.extend(now.difference(&addresses).map(|ip| (*ip, true)));
        let filter = ops.into_iter().filter_map(|op| if let Op::Filter(ops) = op { Some(ops) } else { None });
        batch.tables.extend(filter.flatten());
        batch.into_ops()
    }

    /// Gives ports the numbers they had.
    fn reserve(&mut self, plan: &Plan, known: &Known) {
        for frontend in plan.frontends() {
            let number = known.0.get(&nft_code::frontend_key(&frontend.key));
            let new = !self.ports.contains_key(&frontend.port);
            if let Some(number) = number.filter(|number| new && self.numbers.take_this(**number)) {
                self.ports.insert(frontend.port.clone(), Port { number: *number, ..Port::default() });
            }
        }
    }

    /// Makes a table.
    fn build(&self, family: Family, batch: &mut Batch) {
        batch.tables.push(nft::Op::AddTable(family));
        batch.tables.extend(layout::sets(family).into_iter().map(|set| nft::Op::AddSet(family, set)));
        for chain in layout::chains(&self.node, family, self.marks()) {
            batch.tables.push(nft::Op::AddChain(family, chain.name.clone(), chain.base));
            let name = chain.name;
            batch.tables.extend(chain.rules.into_iter().map(|rule| nft::Op::AddRule(family, name.clone(), rule)));
        }
        layout::elements(&self.node, family).into_iter().for_each(|(set, element)| batch.add(family, set, element));
    }

    /// What follows when the Node is another: rules that name it, and sets with its addresses and ranges.
    fn change_layout(&self, before: &Node, batch: &mut Batch) {
        for family in self.node.families.iter().copied() {
            let chains = |node| layout::chains(node, family, self.marks());
            for (old, new) in chains(before).into_iter().zip(chains(&self.node)) {
                if old.rules != new.rules {
                    let name = new.name;
                    batch.tables.push(nft::Op::FlushChain(family, name.clone()));
                    let rules = new.rules.into_iter().map(|rule| nft::Op::AddRule(family, name.clone(), rule));
                    batch.tables.extend(rules);
                }
            }
            let (old, new) = (layout::elements(before, family), layout::elements(&self.node, family));
            batch.change(family, &old, &new);
        }
    }

    /// Frontends that are others because the Node is: their address became the Node's, or is no longer.
    fn moved(&self, before: &Node) -> Vec<FrontendKey> {
        let renamed = before.ips != self.node.ips;
        let all = self.ports.values().flat_map(|port| port.frontends.values());
        let moved = all.filter(|frontend| match frontend.key {
            FrontendKey::Address { ip, .. } => {
                before.has(ip) != self.node.has(ip) || renamed && frontend.allowed.is_some()
            }
            FrontendKey::NodePort { .. } => false,
        });
        moved.map(|frontend| frontend.key).collect()
    }

    /// Makes some frontends and pools as the plan has them.
    fn update(&mut self, plan: &Plan, before: &Node, frontends: &[FrontendKey], pools: &[PoolKey], batch: &mut Batch) {
        let ours = |family: Family| plan.node().families.contains(&family);
        let mut touched: BTreeSet<&PortKey> = pools.iter().map(|pool| &pool.port).collect();
        touched.extend(frontends.iter().filter_map(|key| plan.frontend(key)).map(|frontend| &frontend.port));
        let owners: Vec<PortKey> = frontends.iter().filter_map(|key| self.owners.get(key)).cloned().collect();
        touched.extend(&owners);
        let touched: Vec<&PortKey> = touched.into_iter().filter(|key| ours(key.family)).collect();
        for key in &touched {
            let new = || Port { number: self.numbers.take(), ..Port::default() };
            self.ports.entry((*key).clone()).or_insert_with(new);
        }
        // All at once: an address may pass from one port to another.
        let old = self.servers_among(&touched, before);
        for key in pools.iter().filter(|key| ours(key.port.family)) {
            self.set_pool(key, plan.pool(key));
        }
        for key in frontends.iter().filter(|key| ours(key.family())) {
            self.set_frontend(key, plan.frontend(key), before, batch);
        }
        port::difference(&old, &self.servers_among(&touched, &self.node), &mut batch.made, &mut batch.gone);
        for key in touched {
            if let Some(port) = self.ports.get(key).filter(|port| port.is_unused()) {
                self.numbers.give_back(port.number);
                self.ports.remove(key);
            }
        }
        self.settle(batch);
    }

    fn set_pool(&mut self, key: &PoolKey, new: Option<&Arc<Pool>>) {
        let Some(port) = self.ports.get_mut(&key.port) else { return };
        let old = std::mem::replace(port.pool(key.scope), new.cloned());
        let places = |pool: Option<&Arc<Pool>>| {
            let local = pool.into_iter().flat_map(|pool| pool.endpoints.iter()).filter(|endpoint| endpoint.local);
            let place = |endpoint: &Endpoint| (endpoint.ip, key.port.protocol, endpoint.port);
            local.map(place).collect::<Vec<_>>()
        };
        places(old.as_ref()).into_iter().for_each(|place| self.hairpins.remove(place));
        places(new).into_iter().for_each(|place| self.hairpins.add(place));
    }

    fn set_frontend(&mut self, key: &FrontendKey, new: Option<&Arc<Frontend>>, before: &Node, batch: &mut Batch) {
        let marks = self.marks();
        let owner = self.owners.remove(key);
        let port = owner.and_then(|owner| self.ports.get_mut(&owner));
        let old = port.and_then(|port| Some((port.frontends.remove(key)?, port.number)));
        let mut elements = [Vec::new(), Vec::new()];
        if let Some((old, number)) = &old {
            elements[0] = port::elements(old, *number, before, marks);
            self.count_vip(old, before, false);
        }
        if let Some(new) = new {
            self.owners.insert(*key, new.port.clone());
            if let Some(port) = self.ports.get_mut(&new.port) {
                port.frontends.insert(*key, new.clone());
                elements[1] = port::elements(new, port.number, &self.node, marks);
            }
            let node = self.node.clone();
            self.count_vip(new, &node, true);
        }
        batch.change(key.family(), &elements[0], &elements[1]);
    }

    fn count_vip(&mut self, frontend: &Frontend, node: &Node, comes: bool) {
        if let (FrontendKey::Address { ip, .. }, true) = (frontend.key, code::is_on_link(frontend, node)) {
            if comes { self.vips.add(ip) } else { self.vips.remove(ip) }
        }
    }

    /// What came and went among what is counted.
    fn settle(&mut self, batch: &mut Batch) {
        for (ip, comes) in self.vips.settle() {
            batch.put(family_of(ip), "vips", Element::new(Key::new().ip(ip)), comes);
            batch.addresses.push((ip, comes));
        }
        for ((ip, protocol, port), comes) in self.hairpins.settle() {
            let key = Key::new().ip(ip).ip(ip).proto(nft_code::protocol(protocol)).port(port);
            batch.put(family_of(ip), "hairpin", Element::new(key), comes);
        }
        for (port, comes) in self.health_ports.settle() {
            for family in &self.node.families {
                batch.put(*family, "health-ports", Element::new(Key::new().port(port)), comes);
            }
        }
    }

    fn marks(&self) -> Marks {
        Marks::new(self.options.masquerade_mark)
    }

    fn servers_among(&self, keys: &[&PortKey], node: &Node) -> BTreeMap<At, Server> {
        let ports = keys.iter().filter_map(|key| Some((*key, self.ports.get(*key)?)));
        ports.flat_map(|(key, port)| self.servers_of(key, port, node)).collect()
    }

    fn servers_of(&self, key: &PortKey, port: &Port, node: &Node) -> BTreeMap<At, Server> {
        port.servers(key, node, self.marks(), &self.options.scheduler)
    }
}
