//! The fixed part of the program: chains and sets that are the same however many Services there are.
//!
//! ```text
//! filter-prerouting, filter-output        first packets only
//!   guards: frontends -> nothing to refuse: go on
//!                     -> guard: source ranges, then by source: refuse, drop or go on
//!           node ports alike; other ports of cluster IPs are refused, cluster IPs nobody has dropped
//! nat-prerouting, nat-output
//!   services: by source: frontends -> mark to masquerade or not, spread or spread-local
//!             pools -> balance -> lb-N: one of N slots -> endpoints -> dnat
//!                                 stick-T: affinity -> members -> dnat; nothing remembered: draw-N: choices -> affinity
//!             node ports alike
//! nat-postrouting: masquerade what is marked, and endpoints that would be their own clients
//! ```

use fairlead_plan::{Family, LocalDetection, Node, NodePorts, Scope, Source, family_of};
use ipnet::IpNet;

use super::code::{self, Forward, Refusal};
use super::expr::{CT_DNAT, CT_NEW, CmpOp, CtKey, End, Expr, Found, MetaKey, Reg, Reject};
use super::key::Key;
use super::model::{Base, Chain, ChainType, Element, Hook, Rule, Verdict};
use super::rules::{KEY, NUMBER, Place, Rules, Via, bits, go, rule};

/// Before addresses are translated, after connections are known.
pub(crate) const BEFORE_NAT: i32 = -110;
const DSTNAT: i32 = -100;
pub(crate) const SRCNAT: i32 = 100;

/// What decides how chains look, beside the Node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) masquerade_mark: u32,
    /// Whether a process of the Node serves pools.
    pub(crate) portals: bool,
}

/// Chains, in an order in which each only names those before it.
pub(crate) fn chains(node: &Node, family: Family, setup: Setup) -> Vec<Chain> {
    let layout = Layout { node, rules: Rules { family }, setup };
    let mut chains = vec![chain("reject", reject())];
    let spread = |via, scope| layout.rules.spread(Place { via, scope });
    // What is addressed by an address never gets past the rule for that.
    for (scope, [name, marked]) in
        [(Scope::Cluster, ["spread", "mark"]), (Scope::Local, ["spread-local", "mark-local"])]
    {
        let mut rules: Vec<Rule> = Via::ALL.map(|via| spread(via, scope)).into();
        rules.push(rule("", [Expr::Verdict(Verdict::Drop)]));
        chains.push(chain(name, rules));
        chains.push(chain(marked, vec![layout.mark(name)]));
    }
    chains.extend(Place::ALL.map(|place| chain(place.overflow(), layout.rules.overflow(place))));
    chains.push(chain("nodeport", layout.policy(Via::NodePort)));
    chains.push(chain("services", layout.services()));
    chains.push(chain("guard", layout.guard(Via::Address)));
    chains.push(chain("guard-nodeport", layout.guard(Via::NodePort)));
    chains.push(chain("guards", layout.guards()));
    chains.extend(layout.bases());
    chains
}

/// The elements of sets and maps that depend on the Node at most.
pub(crate) fn elements(node: &Node, family: Family) -> Vec<(&'static str, Vec<Element>)> {
    let pods = match &node.detection {
        LocalDetection::Ranges(ranges) => &ranges[..],
        _ => &[],
    };
    let node_ports = match node.node_ports(family) {
        NodePorts::All { .. } => Vec::new(),
        NodePorts::Only(only) => only,
    };
    let mut all = vec![
        ("pod-ranges", ranges(pods, family)),
        ("node-pod-ranges", ranges(&node.pod_ranges, family)),
        ("nodeport-ips", ranges(&node_ports, family)),
        ("service-ranges", ranges(&node.service_ranges, family)),
        ("refusals", refusal_elements()),
    ];
    all.extend(Source::ALL.map(|source| (actions(source), action_elements(source))));
    all
}

/// Refuses what was not found in a map, by way of a map.
///
/// When a table is replaced, a packet that is on its way through the old one finds no element of a map any more from one moment on,
/// but still those of sets. So what refuses must be in a map as well: it is gone together with what was looked for.
fn refuse(how: Refusal) -> [Expr; 3] {
    let mark = Expr::Meta { key: MetaKey::Mark, dreg: NUMBER };
    [mark, bits(NUMBER, NUMBER, 0, how as u32), Expr::verdict_map("refusals", NUMBER)]
}

/// Chains with rules that depend on the Node.
pub(crate) struct Layout<'a> {
    pub(crate) node: &'a Node,
    pub(crate) rules: Rules,
    pub(crate) setup: Setup,
}

impl Layout<'_> {
    fn bases(&self) -> Vec<Chain> {
        let at = |kind, hook, priority| Base { kind, hook, priority };
        let base = |name: &'static str, base, rules| Chain { name: name.into(), base: Some(base), rules };
        let mut incoming = Vec::new();
        incoming.extend(self.loopback());
        incoming.push(self.first_incoming());
        vec![
            base("filter-prerouting", at(ChainType::Filter, Hook::Prerouting, BEFORE_NAT), incoming),
            base("filter-output", at(ChainType::Filter, Hook::Output, BEFORE_NAT), vec![first_packets("guards")]),
            base("nat-prerouting", at(ChainType::Nat, Hook::Prerouting, DSTNAT), vec![rule("", [go("services")])]),
            base("nat-output", at(ChainType::Nat, Hook::Output, DSTNAT), vec![rule("", [go("services")])]),
            base("nat-postrouting", at(ChainType::Nat, Hook::Postrouting, SRCNAT), self.masquerade()),
        ]
    }

    /// What a process of the Node sends to a portal comes in again by `lo`, translated by then: it was guarded on its way out.
    fn first_incoming(&self) -> Rule {
        if !self.setup.portals {
            return first_packets("guards");
        }
        let mut exprs = flag(CtKey::State, CT_NEW).to_vec();
        let translated = flag(CtKey::Status, CT_DNAT);
        let untranslated = Expr::Cmp { sreg: KEY, op: CmpOp::Equal, data: Key::new().number(0) };
        exprs.extend(translated.into_iter().take(2).chain([untranslated, go("guards")]));
        rule("", exprs)
    }

    /// Node ports on loopback addresses make the kernel route them: what comes from elsewhere must not profit.
    pub(crate) fn loopback(&self) -> Option<Rule> {
        let opened = match self.node.node_ports(self.rules.family) {
            NodePorts::All { loopback } => loopback,
            NodePorts::Only(only) => only.iter().any(|net| net.addr().is_loopback()),
        };
        let mut exprs = interface(CmpOp::NotEqual, "lo");
        exprs.extend(self.rules.is_loopback(CmpOp::Equal));
        exprs.push(Expr::Verdict(Verdict::Drop));
        opened.then(|| rule("loopback addresses serve only this Node itself", exprs))
    }

    fn guards(&self) -> Vec<Rule> {
        let mut rules = self.known(&self.serves_node_ports());
        if self.node.guard_cluster_ips {
            let known = self.rules.is_in(End::Destination, "cluster-ips").into_iter();
            rules.push(rule("ports that cluster IPs do not have", known.chain(refuse(Refusal::Reject))));
            rules.push(self.nobodys());
        }
        rules
    }

    /// What is for a Service goes on, or to what refuses some of it. Node ports are served where `served` goes on.
    pub(crate) fn known(&self, served: &[Expr]) -> Vec<Rule> {
        let found = |via: Via| self.rules.value(via, via.frontends());
        let unguarded = [
            bits(NUMBER, NUMBER, code::GUARDED, 0),
            Expr::Cmp { sreg: NUMBER, op: CmpOp::Equal, data: Key::new().number(0) },
            Expr::Verdict(Verdict::Accept),
        ];
        vec![
            rule("", [&found(Via::Address), &unguarded[..]].concat()),
            rule("", [found(Via::Address), vec![go("guard")]].concat()),
            rule("", [&found(Via::NodePort), served, &unguarded].concat()),
            rule("", [&found(Via::NodePort), served, &[go("guard-nodeport")]].concat()),
        ]
    }

    /// Drops what is for a cluster IP that no Service has.
    pub(crate) fn nobodys(&self) -> Rule {
        let mut unknown = self.rules.is_in(End::Destination, "service-ranges").to_vec();
        unknown.extend(self.rules.is_local(End::Destination, CmpOp::NotEqual));
        unknown.extend(refuse(Refusal::Drop));
        rule("cluster IPs nobody has", unknown)
    }

    /// Goes on only if node ports are served on the packet's destination.
    pub(crate) fn serves_node_ports(&self) -> Vec<Expr> {
        match self.node.node_ports(self.rules.family) {
            NodePorts::Only(_) => self.rules.is_in(End::Destination, "nodeport-ips").into(),
            NodePorts::All { loopback } => {
                let mut exprs = self.rules.is_local(End::Destination, CmpOp::Equal).to_vec();
                if !loopback {
                    exprs.extend(self.rules.is_loopback(CmpOp::NotEqual));
                }
                exprs
            }
        }
    }

    pub(crate) fn guard(&self, via: Via) -> Vec<Rule> {
        let mut rules = Vec::new();
        if via == Via::Address {
            let mut exprs = self.rules.value(via, via.guarded());
            exprs.push(bits(NUMBER, NUMBER, code::RESTRICTED, 0));
            exprs.push(Expr::Cmp { sreg: NUMBER, op: CmpOp::NotEqual, data: Key::new().number(0) });
            let behind = self.rules.load_key(via, &mut exprs);
            exprs.push(self.rules.load(End::Source, behind));
            exprs.push(Expr::Lookup { set: "allowed", sreg: KEY, found: Found::Continue, invert: true });
            exprs.push(Expr::Verdict(Verdict::Drop));
            rules.push(rule("loadBalancerSourceRanges", exprs));
        }
        rules.extend(self.sources().into_iter().map(|(mut exprs, source)| {
            exprs.extend(self.rules.value(via, via.guarded()));
            exprs.push(bits(NUMBER, NUMBER, code::refusal_mask(source), 0));
            exprs.push(Expr::verdict_map("refusals", NUMBER));
            rule(name(source), exprs)
        }));
        rules
    }

    fn services(&self) -> Vec<Rule> {
        let mut node_port = self.rules.value(Via::NodePort, "nodeports");
        node_port.extend(self.serves_node_ports());
        node_port.push(go("nodeport"));
        let mut rules = self.policy(Via::Address);
        rules.push(rule("", node_port));
        rules
    }

    fn policy(&self, via: Via) -> Vec<Rule> {
        let by_source = self.sources().into_iter().map(|(mut exprs, source)| {
            exprs.extend(self.rules.value(via, via.frontends()));
            exprs.push(bits(NUMBER, NUMBER, code::forward_mask(source), 0));
            exprs.push(Expr::verdict_map(actions(source), NUMBER));
            rule(name(source), exprs)
        });
        by_source.collect()
    }

    /// Which packets come from where: the first that matches counts, and the last always does.
    pub(crate) fn sources(&self) -> Vec<(Vec<Expr>, Source)> {
        let from_node = self.rules.is_local(End::Source, CmpOp::Equal).to_vec();
        let mut sources = self.pods();
        sources.extend([(from_node, Source::Node), (Vec::new(), Source::Outside)]);
        sources
    }

    fn pods(&self) -> Vec<(Vec<Expr>, Source)> {
        let of_family = |range: &IpNet| family_of(range.addr()) == self.rules.family;
        match &self.node.detection {
            LocalDetection::None => Vec::new(),
            LocalDetection::Bridge(bridge) => vec![(interface(CmpOp::Equal, bridge), Source::Pod)],
            LocalDetection::InterfacePrefix(prefix) => vec![(interface_prefix(prefix), Source::Pod)],
            LocalDetection::Ranges(ranges) if !ranges.iter().any(of_family) => Vec::new(),
            LocalDetection::Ranges(_) => {
                let pod = || self.rules.is_in(End::Source, "pod-ranges").to_vec();
                if !self.node.pod_ranges.iter().any(of_family) {
                    return vec![(pod(), Source::Pod)];
                }
                let ours = [pod(), self.rules.is_in(End::Source, "node-pod-ranges").into()].concat();
                let node = [pod(), self.rules.is_local(End::Source, CmpOp::Equal).into()].concat();
                vec![(ours, Source::Pod), (node, Source::Pod), (pod(), Source::OtherPod)]
            }
        }
    }

    /// Marks a packet for [`Layout::masquerade`], by one bit that is ours.
    fn mark(&self, then: &'static str) -> Rule {
        let mark = self.setup.masquerade_mark;
        let set = [
            Expr::Meta { key: MetaKey::Mark, dreg: KEY },
            bits(KEY, KEY, !mark, mark),
            Expr::MetaSet { key: MetaKey::Mark, sreg: KEY },
            go(then),
        ];
        rule("", set)
    }

    fn masquerade(&self) -> Vec<Rule> {
        let mark = self.setup.masquerade_mark;
        let marked = [
            Expr::Meta { key: MetaKey::Mark, dreg: KEY },
            bits(KEY, KEY, mark, 0),
            Expr::Cmp { sreg: KEY, op: CmpOp::NotEqual, data: Key::new().number(0) },
            Expr::Meta { key: MetaKey::Mark, dreg: KEY },
            bits(KEY, KEY, !mark, 0),
            Expr::MetaSet { key: MetaKey::Mark, sreg: KEY },
            Expr::Masquerade,
        ];
        let mut hairpin = flag(CtKey::Status, CT_DNAT).to_vec();
        let behind = if self.rules.family == Family::V4 { Reg(1) } else { Reg(4) };
        hairpin.extend([self.rules.load(End::Source, KEY), self.rules.load(End::Destination, behind)]);
        hairpin.push(Expr::Lookup { set: "hairpin", sreg: KEY, found: Found::Continue, invert: false });
        hairpin.push(Expr::Masquerade);
        vec![rule("", marked), rule("endpoints that would be their own clients", hairpin)]
    }
}

pub(crate) fn chain(name: &'static str, rules: Vec<Rule>) -> Chain {
    Chain { name: name.into(), base: None, rules }
}

pub(crate) fn reject() -> Vec<Rule> {
    let tcp = Expr::Cmp { sreg: KEY, op: CmpOp::Equal, data: Key::new().proto(6) };
    vec![
        rule("", [Expr::Meta { key: MetaKey::L4proto, dreg: KEY }, tcp, Expr::Reject(Reject::TcpReset)]),
        rule("", [Expr::Reject(Reject::PortUnreachable)]),
    ]
}

pub(crate) fn first_packets(chain: &'static str) -> Rule {
    rule("", flag(CtKey::State, CT_NEW).into_iter().chain([go(chain)]))
}

/// Goes on only if a bit of the connection is set.
fn flag(key: CtKey, bit: u32) -> [Expr; 3] {
    let cmp = Expr::Cmp { sreg: KEY, op: CmpOp::NotEqual, data: Key::new().number(0) };
    [Expr::Ct { key, dreg: KEY }, bits(KEY, KEY, bit, 0), cmp]
}

/// How many bytes the name of an interface has, the NUL at its end included.
const IFNAMSIZ: usize = 16;

/// Goes on only if the packet came in by that interface, or only if by another.
fn interface(op: CmpOp, name: &str) -> Vec<Expr> {
    let mut bytes = [0; IFNAMSIZ];
    let length = name.len().min(IFNAMSIZ);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    let data = Key::new().part(&bytes);
    vec![Expr::Meta { key: MetaKey::Iifname, dreg: KEY }, Expr::Cmp { sreg: KEY, op, data }]
}

fn interface_prefix(prefix: &str) -> Vec<Expr> {
    if prefix.is_empty() {
        // What the machine itself sends came in by none.
        return interface(CmpOp::NotEqual, "");
    }
    let data = Key::new().part(&prefix.as_bytes()[..prefix.len().min(IFNAMSIZ)]);
    vec![Expr::Meta { key: MetaKey::Iifname, dreg: KEY }, Expr::Cmp { sreg: KEY, op: CmpOp::Equal, data }]
}

/// The ranges of a family as elements that do not overlap.
pub(crate) fn ranges(ranges: &[IpNet], family: Family) -> Vec<Element> {
    let ours: Vec<IpNet> = ranges.iter().copied().filter(|range| family_of(range.addr()) == family).collect();
    let ends = |range: &IpNet| Element::range(Key::new().ip(range.network()), Key::new().ip(range.broadcast()));
    IpNet::aggregate(&ours).iter().map(ends).collect()
}

pub(crate) fn refusal_elements() -> Vec<Element> {
    let mut elements = vec![Element::verdict(Key::new().number(0), Verdict::Accept)];
    for source in Source::ALL {
        let key = |refusal: Refusal| Key::new().number(refusal.bits(source));
        elements.push(Element::verdict(key(Refusal::Reject), Verdict::Goto("reject".into())));
        elements.push(Element::verdict(key(Refusal::Drop), Verdict::Drop));
    }
    elements
}

/// The map from how packets of a source are forwarded to what that means.
pub(crate) fn actions(source: Source) -> &'static str {
    match source {
        Source::Pod => "actions-pod",
        Source::OtherPod => "actions-other-pod",
        Source::Node => "actions-node",
        Source::Outside => "actions-outside",
    }
}

pub(crate) fn name(source: Source) -> &'static str {
    match source {
        Source::Pod => "from a Pod",
        Source::OtherPod => "from a Pod of another Node",
        Source::Node => "from this Node",
        Source::Outside => "from outside",
    }
}

fn action_elements(source: Source) -> Vec<Element> {
    let verdict = |forward: Forward| match (forward.scope, forward.masquerade) {
        (Scope::Cluster, false) => Verdict::Goto("spread".into()),
        (Scope::Cluster, true) => Verdict::Goto("mark".into()),
        (Scope::Local, false) => Verdict::Goto("spread-local".into()),
        (Scope::Local, true) => Verdict::Goto("mark-local".into()),
    };
    Forward::ALL.map(|forward| Element::verdict(Key::new().number(forward.bits(source)), verdict(forward))).into()
}
