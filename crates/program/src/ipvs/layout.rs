//! The chains, sets and maps of a table of nftables in mode IPVS, none of which belongs to one Service:
//!
//! ```text
//! filter-prerouting, filter-output      first packets only
//!   guards: frontends that do not serve all -> guard: source ranges, what is refused or dropped
//!           node ports alike; ports that addresses of the link do not have are refused
//! mark-prerouting, mark-output          first packets only
//!   services: by source: nothing, or the masquerade bit, or a mark of ours that a virtual server has
//!   ... then IPVS ...
//! nat-postrouting: masquerade what is marked, and endpoints that would be their own clients
//! ```

use fairlead_plan::{Family, LocalDetection, Node, NodePorts, Scope, Source};

use super::code::{Marks, Way, way_mask};
use super::port::{Elements, marks_of};
use crate::nft::layout::{self, BEFORE_NAT, SRCNAT, chain};
use crate::nft::rules::{KEY, NUMBER, Rules, Via, bits, go, rule};
use crate::nft::{
    Base, Chain, ChainName, ChainType, CmpOp, DataType, Element, End, Expr, Found, Hook, Key, MetaKey, Reg, Rule, Set,
    ValueType, Verdict,
};

/// Behind those who refuse, before IPVS, which comes right behind the translation of destinations.
const BEFORE_IPVS: i32 = -105;

/// Chains, in an order in which each only names those before it.
pub(crate) fn chains(node: &Node, family: Family, marks: Marks) -> Vec<Chain> {
    let setup = layout::Setup { masquerade_mark: marks.masquerade(), portals: false };
    let parts = layout::Layout { node, rules: Rules { family }, setup };
    let layout = Layout { parts, marks };
    let mut chains = vec![chain("reject", layout::reject()), chain("masquerade", vec![layout.masquerade()])];
    let marking = Way::all().filter_map(|way| layout.marking(way));
    chains.extend(marking.map(|(name, rule)| Chain { name, base: None, rules: vec![rule] }));
    for (via, [ways, guard]) in
        [(Via::Address, ["ways", "guard"]), (Via::NodePort, ["nodeport-ways", "guard-nodeport"])]
    {
        chains.push(chain(ways, layout.ways(via)));
        chains.push(chain(guard, layout.parts.guard(via)));
    }
    chains.push(chain("services", layout.services()));
    chains.push(chain("services-output", layout.services_output()));
    chains.push(chain("guards", layout.guards()));
    chains.extend(layout.bases());
    chains
}

struct Layout<'a> {
    parts: layout::Layout<'a>,
    marks: Marks,
}

impl Layout<'_> {
    fn rules(&self) -> Rules {
        self.parts.rules
    }

    fn bases(&self) -> Vec<Chain> {
        let base = |name: &'static str, kind, hook, priority, rules| {
            let base = Base { kind, hook, priority };
            Chain { name: name.into(), base: Some(base), rules }
        };
        let mut incoming = Vec::new();
        incoming.extend(self.parts.loopback());
        incoming.push(layout::first_packets("guards"));
        let first = |chain| vec![layout::first_packets(chain)];
        vec![
            base("filter-prerouting", ChainType::Filter, Hook::Prerouting, BEFORE_NAT, incoming),
            base("filter-output", ChainType::Filter, Hook::Output, BEFORE_NAT, first("guards")),
            base("mark-prerouting", ChainType::Filter, Hook::Prerouting, BEFORE_IPVS, first("services")),
            base("mark-output", ChainType::Filter, Hook::Output, BEFORE_IPVS, first("services-output")),
            base("nat-postrouting", ChainType::Nat, Hook::Postrouting, SRCNAT, self.postrouting()),
        ]
    }

    fn guards(&self) -> Vec<Rule> {
        let mut rules = self.parts.known(&self.serves_node_ports());
        rules.extend(self.ports_nobody_has());
        rules.extend(self.parts.node.guard_cluster_ips.then(|| self.parts.nobodys()));
        rules
    }

    /// The Node has the addresses of the link, but its own processes are not meant.
    fn ports_nobody_has(&self) -> Vec<Rule> {
        let health = [
            protocol(6).to_vec(),
            self.rules().is_in(End::Destination, "vips").to_vec(),
            vec![
                Expr::Payload { base: crate::nft::PayloadBase::Transport, offset: 2, len: 2, dreg: KEY },
                Expr::Lookup { set: "health-ports", sreg: KEY, found: Found::Continue, invert: false },
                Expr::Verdict(Verdict::Accept),
            ],
        ];
        let mut rules = vec![rule("load balancers ask for the health of the Node", health.concat())];
        rules.extend([6, 17, 132].map(|number| {
            let vip = self.rules().is_in(End::Destination, "vips");
            rule(
                "ports that addresses of the link do not have",
                protocol(number).into_iter().chain(vip).chain([go("reject")]),
            )
        }));
        rules
    }

    /// Goes on only if node ports are served on the packet's destination, which addresses of the link are not for.
    fn serves_node_ports(&self) -> Vec<Expr> {
        let mut exprs = self.parts.serves_node_ports();
        if let NodePorts::All { .. } = self.parts.node.node_ports(self.rules().family) {
            exprs.push(self.rules().load(End::Destination, KEY));
            exprs.push(Expr::Lookup { set: "vips", sreg: KEY, found: Found::Continue, invert: true });
        }
        exprs
    }

    fn services(&self) -> Vec<Rule> {
        let address = self.rules().value(Via::Address, Via::Address.frontends());
        let mut node_port = self.rules().value(Via::NodePort, Via::NodePort.frontends());
        node_port.extend(self.serves_node_ports());
        vec![
            rule("", address.into_iter().chain([go("ways")])),
            rule("", node_port.into_iter().chain([go("nodeport-ways")])),
        ]
    }

    /// What the Node sends to an address of the link has that address as its source, too. No answer would come back.
    fn services_output(&self) -> Vec<Rule> {
        let mut own = self.rules().is_in(End::Source, "vips").to_vec();
        own.extend(self.rules().value(Via::Address, Via::Address.frontends()));
        own.extend(self.or_mark(self.marks.masquerade()));
        vec![rule("from an address of the link", own), rule("", [go("services")])]
    }

    fn ways(&self, via: Via) -> Vec<Rule> {
        let by_source = self.parts.sources().into_iter().map(|(mut exprs, source)| {
            exprs.extend(self.rules().value(via, via.frontends()));
            exprs.push(bits(NUMBER, NUMBER, way_mask(source), 0));
            exprs.push(Expr::verdict_map(ways_of(source), NUMBER));
            rule(layout::name(source), exprs)
        });
        by_source.collect()
    }

    fn masquerade(&self) -> Rule {
        rule("", self.or_mark(self.marks.masquerade()))
    }

    /// The chain that gives packets a mark of ours.
    fn marking(&self, way: Way) -> Option<(ChainName, Rule)> {
        let Way::Mark { by_address, scope, masquerade } = way else { return None };
        let via = if by_address { Via::Address } else { Via::NodePort };
        let mut exprs = Vec::new();
        self.rules().load_key(via, &mut exprs);
        exprs.push(Expr::Lookup { set: marks_of(via), sreg: KEY, found: Found::Load(KEY), invert: false });
        exprs.push(Expr::MetaSet { key: MetaKey::Mark, sreg: KEY });
        let local = if scope == Scope::Local { self.marks.local() } else { 0 };
        let bits = local | if masquerade { self.marks.masquerade() } else { 0 };
        exprs.extend(if bits == 0 { Vec::new() } else { self.or_mark(bits).to_vec() });
        Some((marking_name(way).into(), rule("", exprs)))
    }

    fn or_mark(&self, set: u32) -> [Expr; 3] {
        [
            Expr::Meta { key: MetaKey::Mark, dreg: KEY },
            bits(KEY, KEY, !set, set),
            Expr::MetaSet { key: MetaKey::Mark, sreg: KEY },
        ]
    }

    /// Goes on only if these bits of the mark are set so.
    fn marked(mask: u32, value: u32) -> [Expr; 3] {
        [
            Expr::Meta { key: MetaKey::Mark, dreg: KEY },
            bits(KEY, KEY, mask, 0),
            Expr::Cmp { sreg: KEY, op: CmpOp::Equal, data: Key::new().number(value) },
        ]
    }

    /// Keeps the bits of the mark that are in the mask.
    fn keep(mask: u32) -> [Expr; 3] {
        [
            Expr::Meta { key: MetaKey::Mark, dreg: KEY },
            bits(KEY, KEY, mask, 0),
            Expr::MetaSet { key: MetaKey::Mark, sreg: KEY },
        ]
    }

    fn postrouting(&self) -> Vec<Rule> {
        let (bit, marks) = (self.marks.masquerade(), self.marks);
        // A mark of ours is no use any more, but for the bit.
        let ours = Self::marked(marks.signature_mask(), marks.signature()).into_iter().chain(Self::keep(bit));
        let masquerade = Self::marked(bit, bit).into_iter().chain(Self::keep(!bit)).chain([Expr::Masquerade]);
        let mut hairpin = Vec::new();
        let width = if self.rules().family == Family::V4 { 1 } else { 4 };
        hairpin.extend([self.rules().load(End::Source, KEY), self.rules().load(End::Destination, Reg(width))]);
        hairpin.push(Expr::Meta { key: MetaKey::L4proto, dreg: Reg(2 * width) });
        let base = crate::nft::PayloadBase::Transport;
        hairpin.push(Expr::Payload { base, offset: 2, len: 2, dreg: Reg(2 * width + 1) });
        hairpin.push(Expr::Lookup { set: "hairpin", sreg: KEY, found: Found::Continue, invert: false });
        hairpin.push(Expr::Masquerade);
        vec![rule("", ours), rule("", masquerade), rule("endpoints that would be their own clients", hairpin)]
    }
}

fn protocol(number: u8) -> [Expr; 2] {
    let cmp = Expr::Cmp { sreg: KEY, op: CmpOp::Equal, data: Key::new().proto(number) };
    [Expr::Meta { key: MetaKey::L4proto, dreg: KEY }, cmp]
}

fn marking_name(way: Way) -> &'static str {
    match way {
        Way::AsItIs => "as-it-is",
        Way::Masquerade => "masquerade",
        Way::Mark { by_address: true, scope: Scope::Cluster, masquerade: false } => "mark",
        Way::Mark { by_address: true, scope: Scope::Cluster, masquerade: true } => "mark-masquerade",
        Way::Mark { by_address: true, scope: Scope::Local, masquerade: false } => "mark-local",
        Way::Mark { by_address: true, scope: Scope::Local, masquerade: true } => "mark-local-masquerade",
        Way::Mark { by_address: false, scope: Scope::Cluster, masquerade: false } => "mark-nodeport",
        Way::Mark { by_address: false, scope: Scope::Cluster, masquerade: true } => "mark-nodeport-masquerade",
        Way::Mark { by_address: false, scope: Scope::Local, masquerade: false } => "mark-nodeport-local",
        Way::Mark { by_address: false, scope: Scope::Local, masquerade: true } => "mark-nodeport-local-masquerade",
    }
}

/// The map from what is done to packets of a source to the chain that does it.
fn ways_of(source: Source) -> &'static str {
    match source {
        Source::Pod => "ways-pod",
        Source::OtherPod => "ways-other-pod",
        Source::Node => "ways-node",
        Source::Outside => "ways-outside",
    }
}

/// Every set and map.
pub(crate) fn sets(family: Family) -> Vec<Set> {
    use DataType::{InetProto, InetService, Mark};
    let ip = Rules { family }.address();
    let set = |name, key: &[DataType], comment| {
        let (key, value) = (key.to_vec(), ValueType::Nothing);
        Set { name, key, value, interval: false, dynamic: false, size: None, counter: false, comment }
    };
    let map = |name, key: &[DataType], comment| Set { value: ValueType::Data(vec![Mark]), ..set(name, key, comment) };
    let ranges = |name, key: &[DataType], comment| Set { interval: true, ..set(name, key, comment) };
    let (address, node_port) = ([ip, InetProto, InetService], [InetProto, InetService]);
    let mut sets = vec![
        map("frontends", &address, "to what is done to packets, by source"),
        map("nodeports", &node_port, "to what is done to packets, by source"),
        map("guarded", &address, "to what is refused"),
        map("guarded-nodeports", &node_port, "to what is refused"),
        map("marks", &address, "to the mark of a virtual server"),
        map("nodeport-marks", &node_port, "to the mark of a virtual server"),
        ranges("allowed", &[ip, InetProto, InetService, ip], "frontends and their source ranges"),
        set("vips", &[ip], "addresses of the link"),
        set("hairpin", &[ip, ip, InetProto, InetService], "endpoints on this Node"),
        set("health-ports", &[InetService], ""),
        ranges("pod-ranges", &[ip], ""),
        ranges("node-pod-ranges", &[ip], "of Pods on this Node"),
        ranges("nodeport-ips", &[ip], "where node ports are served"),
        ranges("service-ranges", &[ip], "where cluster IPs come from"),
        Set { value: ValueType::Verdict, ..set("refusals", &[Mark], "") },
    ];
    sets.extend(Source::ALL.map(|source| Set { value: ValueType::Verdict, ..set(ways_of(source), &[Mark], "") }));
    sets
}

/// The elements of sets and maps that depend on the Node at most.
pub(crate) fn elements(node: &Node, family: Family) -> Elements {
    let pods = match &node.detection {
        LocalDetection::Ranges(ranges) => &ranges[..],
        _ => &[],
    };
    let node_ports = match node.node_ports(family) {
        NodePorts::All { .. } => Vec::new(),
        NodePorts::Only(only) => only,
    };
    let ranges = [
        ("pod-ranges", pods),
        ("node-pod-ranges", &node.pod_ranges),
        ("nodeport-ips", &node_ports),
        ("service-ranges", &node.service_ranges),
    ];
    let ranges = ranges
        .into_iter()
        .flat_map(|(set, nets)| layout::ranges(nets, family).into_iter().map(move |element| (set, element)));
    let refusals = layout::refusal_elements().into_iter().map(|element| ("refusals", element));
    let ways = Source::ALL.into_iter().flat_map(|source| {
        Way::all().map(move |way| {
            let verdict = match way {
                Way::AsItIs => Verdict::Accept,
                other => Verdict::Goto(marking_name(other).into()),
            };
            (ways_of(source), Element::verdict(Key::new().number(way.bits(source)), verdict))
        })
    });
    ranges.chain(refusals).chain(ways).collect()
}
