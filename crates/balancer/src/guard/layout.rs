//! The fixed part of the tables: chains and sets that are the same however many load balancers there are.
//!
//! ```text
//! inet  prerouting, after connections are known and before addresses are translated
//!         ICMP 3,4 of a connection to a guarded node port: dropped if its sender may not
//!         first packets: new4, new6
//!           to an address of ours: at a listener: sources4, sources6; ping: fine; anything else: refused
//!           to a guarded node port: dropped if the sender may not
//!       sources4, sources6: to a guarded listener: dropped if the sender may not
//! inet  output, before addresses are translated: the machine's own first packets
//!       local4, local6: to an address of ours, and at no listener: refused but for ping
//! arp   input: questions for an address of ours are not for the kernel
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairlead_kernel::nft::{
    Chain, CtKey, DataType, Direction, Element, Expr, Family, FibResult, Hook, Key, MetaKey, Reg, Reject, Rule, Set,
    Table, Verdict, addrtype, ct_state, fib,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The name of both tables.
pub(super) const NAME: &str = "fairlead-lb";
/// Behind what the node proxy refuses, before what it translates (-100).
const PRIORITY: i32 = -105;

/// The names of sets: of IPv4, and of IPv6.
pub(super) mod sets {
    pub(crate) const ADDRESSES: [&str; 2] = ["addresses4", "addresses6"];
    pub(crate) const LISTENERS: [&str; 2] = ["listeners4", "listeners6"];
    pub(crate) const PODS: [&str; 2] = ["pods4", "pods6"];
    pub(crate) const GUARDED: [&str; 2] = ["guarded4", "guarded6"];
    pub(crate) const ALLOWED: [&str; 2] = ["allowed4", "allowed6"];
    /// The same for both.
    pub(crate) const GUARDED_PORTS: [&str; 2] = ["guarded-ports", "guarded-ports"];
    pub(crate) const ALLOWED_PORTS: [&str; 2] = ["allowed-ports4", "allowed-ports6"];
    /// Ports whose connections may be told that packets are too long.
    pub(crate) const GUARDED_LONG: [&str; 2] = ["guarded-long", "guarded-long"];
    pub(crate) const ALLOWED_LONG: [&str; 2] = ["allowed-long4", "allowed-long6"];
    /// In the table of ARP.
    pub(crate) const SILENT: &str = "addresses4";
}

/// A set of the tables.
pub(super) struct Kept {
    pub(super) family: Family,
    pub(super) name: &'static str,
    pub(super) key: &'static [DataType],
    pub(super) interval: bool,
}

const V4: DataType = DataType::Ipv4Addr;
const V6: DataType = DataType::Ipv6Addr;
const PROTO: DataType = DataType::InetProto;
const PORT: DataType = DataType::InetService;

const fn plain(name: &'static str, key: &'static [DataType]) -> Kept {
    Kept { family: Family::Inet, name, key, interval: false }
}

const fn ranged(name: &'static str, key: &'static [DataType]) -> Kept {
    Kept { family: Family::Inet, name, key, interval: true }
}

/// All sets.
pub(super) const SETS: [Kept; 16] = [
    plain(sets::ADDRESSES[0], &[V4]),
    plain(sets::ADDRESSES[1], &[V6]),
    plain(sets::LISTENERS[0], &[V4, PROTO, PORT]),
    plain(sets::LISTENERS[1], &[V6, PROTO, PORT]),
    ranged(sets::PODS[0], &[V4]),
    ranged(sets::PODS[1], &[V6]),
    plain(sets::GUARDED[0], &[V4, PROTO, PORT]),
    plain(sets::GUARDED[1], &[V6, PROTO, PORT]),
    ranged(sets::ALLOWED[0], &[V4, V4, PROTO, PORT]),
    ranged(sets::ALLOWED[1], &[V6, V6, PROTO, PORT]),
    plain(sets::GUARDED_PORTS[0], &[PROTO, PORT]),
    ranged(sets::ALLOWED_PORTS[0], &[V4, PROTO, PORT]),
    ranged(sets::ALLOWED_PORTS[1], &[V6, PROTO, PORT]),
    plain(sets::GUARDED_LONG[0], &[PORT]),
    ranged(sets::ALLOWED_LONG[0], &[V4, PORT]),
    Kept { family: Family::Arp, name: sets::SILENT, key: &[V4], interval: false },
];

impl Kept {
    pub(super) fn set(&self) -> Set {
        let set = Set::new(self.name, self.key);
        if self.interval { set.interval() } else { set }
    }
}

/// The tables.
pub(super) fn tables() -> [Table; 2] {
    [Table::new(Family::Inet, NAME), Table::new(Family::Arp, NAME)]
}

/// The chains of a table with their rules, in an order in which each only names those before it.
pub(super) fn chains(family: Family) -> Vec<(Chain, Vec<Rule>)> {
    if family == Family::Arp {
        return vec![(Chain::filter("input", Hook::Input, 0), vec![silence()])];
    }
    let mut chains = vec![(Chain::regular("refuse"), refuse())];
    for side in [Side::V4, Side::V6] {
        chains.push((Chain::regular(side.name("sources")), side.sources()));
        chains.push((Chain::regular(side.name("new")), side.new_packets()));
        chains.push((Chain::regular(side.name("local")), side.local_packets()));
    }
    chains.push((Chain::filter("prerouting", Hook::Prerouting, PRIORITY), prerouting()));
    chains.push((Chain::filter("output", Hook::Output, PRIORITY), output()));
    chains
}

/// Questions only: an answer to what the kernel asked in the name of such an address is for the kernel.
fn silence() -> Rule {
    let request = [Expr::network(6, 2, Reg(0)), Expr::equal(Reg(0), [0, 1])];
    let ours = [Expr::network(24, 4, Reg(0)), Expr::is_in(sets::SILENT, Reg(0)), drop_it()];
    rule("input", "only a living announcer answers", request.into_iter().chain(ours))
}

fn prerouting() -> Vec<Rule> {
    let mut rules = vec![too_long()];
    for side in [Side::V4, Side::V6] {
        let exprs = is_family(side).into_iter().chain(state(ct_state::NEW));
        rules.push(rule("prerouting", "", exprs.chain([Expr::Verdict(Verdict::Goto(side.name("new")))])));
    }
    rules
}

/// A node proxy translates what the machine itself sends in this hook, so that a port which is not
/// served would be open to it. Packets of known connections leave by the first rule.
fn output() -> Vec<Rule> {
    let mask = ct_state::NEW.to_ne_bytes().to_vec();
    let known = [
        Expr::Ct { key: CtKey::State, direction: None, dreg: Reg(0) },
        Expr::Bitwise { sreg: Reg(0), dreg: Reg(0), mask, xor: vec![0; 4] },
        Expr::equal(Reg(0), [0; 4]),
        Expr::Verdict(Verdict::Accept),
    ];
    let mut rules = vec![rule("output", "", known)];
    for side in [Side::V4, Side::V6] {
        rules.push(rule(
            "output",
            "",
            is_family(side).into_iter().chain([Expr::Verdict(Verdict::Goto(side.name("local")))]),
        ));
    }
    rules
}

/// The packet that was too long went out by the connection's own way: its first packet was to the node port.
fn too_long() -> Rule {
    const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
    let icmp = [Expr::Meta { key: MetaKey::L4proto, dreg: Reg(0) }, Expr::equal(Reg(0), [1])];
    let kind = [Expr::transport(0, 2, Reg(0)), Expr::equal(Reg(0), FRAGMENTATION_NEEDED)];
    let port = Expr::Ct { key: CtKey::DestinationPort, direction: Some(Direction::Original), dreg: Reg(1) };
    let may_not = [
        Expr::network(12, 4, Reg(0)),
        port,
        Expr::is_in(sets::GUARDED_LONG[0], Reg(1)),
        Expr::is_not_in(sets::ALLOWED_LONG[0], Reg(0)),
        drop_it(),
    ];
    let exprs = is_family(Side::V4).into_iter().chain(state(ct_state::RELATED)).chain(icmp).chain(kind).chain(may_not);
    rule("prerouting", "packets too long, told by whom one may not believe", exprs)
}

fn refuse() -> Vec<Rule> {
    let tcp = [Expr::Meta { key: MetaKey::L4proto, dreg: Reg(0) }, Expr::equal(Reg(0), [6])];
    let reset = tcp.into_iter().chain([Expr::Reject(Reject::TcpReset)]);
    vec![rule("refuse", "", reset), rule("refuse", "", [Expr::Reject(Reject::Icmpx(1))])]
}

/// A family of addresses: where they are in a packet, and in which registers they are compared.
///
/// | | source | destination | protocol | port |
/// |---|---|---|---|---|
/// | IPv4 | 0 | 1 | 2 | 3 |
/// | IPv6 | 0-3 | 4-7 | 8 | 9 |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    V4,
    V6,
}

impl Side {
    fn index(self) -> usize {
        usize::from(self == Side::V6)
    }

    fn name(self, what: &str) -> String {
        format!("{what}{}", if self == Side::V4 { 4 } else { 6 })
    }

    fn source(self) -> Expr {
        if self == Side::V4 { Expr::network(12, 4, Reg(0)) } else { Expr::network(8, 16, Reg(0)) }
    }

    fn destination(self) -> Expr {
        if self == Side::V4 { Expr::network(16, 4, self.to()) } else { Expr::network(24, 16, self.to()) }
    }

    /// Where the destination begins.
    fn to(self) -> Reg {
        Reg(if self == Side::V4 { 1 } else { 4 })
    }

    /// The protocol and the port behind the register at `at`.
    fn service(self, at: u8) -> [Expr; 2] {
        [Expr::Meta { key: MetaKey::L4proto, dreg: Reg(at) }, Expr::transport(2, 2, Reg(at + 1))]
    }

    /// Loads destination, protocol and port.
    fn frontend(self) -> Vec<Expr> {
        let at = if self == Side::V4 { 2 } else { 8 };
        [self.destination()].into_iter().chain(self.service(at)).collect()
    }

    fn new_packets(self) -> Vec<Rule> {
        let chain = self.name("new");
        let mut rules = self.to_addresses(&chain, Verdict::Goto(self.name("sources")));
        rules.extend(self.exempt(&chain));
        rules.push(self.node_ports(&chain));
        rules
    }

    fn local_packets(self) -> Vec<Rule> {
        self.to_addresses(&self.name("local"), Verdict::Accept)
    }

    /// Returns the rules for packets to addresses of load balancers: `served` is the verdict on
    /// those to a listener.
    fn to_addresses(self, chain: &str, served: Verdict) -> Vec<Rule> {
        let [addresses, listeners] = [sets::ADDRESSES, sets::LISTENERS].map(|set| set[self.index()]);
        let known = self.frontend().into_iter().chain([Expr::is_in(listeners, self.to()), Expr::Verdict(served)]);
        let ours = [self.destination(), Expr::is_in(addresses, self.to())];
        let ping = ours.clone().into_iter().chain(self.ping()).chain([Expr::Verdict(Verdict::Accept)]);
        let other = ours.into_iter().chain([Expr::Verdict(Verdict::Goto("refuse".into()))]);
        vec![
            self.rule(chain, "what is served", known),
            self.rule(chain, "", ping),
            self.rule(chain, "this machine's own servers are not there", other),
        ]
    }

    fn ping(self) -> Vec<Expr> {
        let (protocol, echo) = if self == Side::V4 { (1, 8) } else { (58, 128) };
        vec![
            Expr::Meta { key: MetaKey::L4proto, dreg: Reg(0) },
            Expr::equal(Reg(0), [protocol]),
            Expr::transport(0, 1, Reg(0)),
            Expr::equal(Reg(0), [echo]),
        ]
    }

    fn node_ports(self, chain: &str) -> Rule {
        let local = Expr::Fib { result: FibResult::Addrtype, flags: fib::DADDR, dreg: Reg(0) };
        let at = if self == Side::V4 { 1 } else { 4 };
        let exprs = [local, Expr::equal(Reg(0), addrtype::LOCAL.to_ne_bytes()), self.source()]
            .into_iter()
            .chain(self.service(at))
            .chain([
                Expr::is_in(sets::GUARDED_PORTS[self.index()], Reg(at)),
                Expr::is_not_in(sets::ALLOWED_PORTS[self.index()], Reg(0)),
                drop_it(),
            ]);
        self.rule(chain, "node ports", exprs)
    }

    fn sources(self) -> Vec<Rule> {
        let chain = self.name("sources");
        let mut rules = self.exempt(&chain);
        let exprs = [self.source()].into_iter().chain(self.frontend()).chain([
            Expr::is_in(sets::GUARDED[self.index()], self.to()),
            Expr::is_not_in(sets::ALLOWED[self.index()], Reg(0)),
            drop_it(),
        ]);
        rules.push(self.rule(&chain, "", exprs));
        rules
    }

    /// A rule of a chain that only packets of this family come to: `nft` reads it better when it says so again.
    fn rule(self, chain: &str, comment: &str, exprs: impl IntoIterator<Item = Expr>) -> Rule {
        rule(chain, comment, is_family(self).into_iter().chain(exprs))
    }

    /// The machine itself and Pods may use everything.
    fn exempt(self, chain: &str) -> Vec<Rule> {
        let accept = Expr::Verdict(Verdict::Accept);
        let itself = [
            Expr::Meta { key: MetaKey::Iifname, dreg: Reg(0) },
            Expr::equal(Reg(0), Key::new().ifname("lo").into_bytes()),
            accept.clone(),
        ];
        let pods = [self.source(), Expr::is_in(sets::PODS[self.index()], Reg(0)), accept];
        vec![rule(chain, "", itself), self.rule(chain, "Pods", pods)]
    }
}

fn rule(chain: &str, comment: &str, exprs: impl IntoIterator<Item = Expr>) -> Rule {
    let rule = Rule::new(chain, exprs.into_iter().collect::<Vec<_>>());
    if comment.is_empty() { rule } else { rule.comment(comment) }
}

fn drop_it() -> Expr {
    Expr::Verdict(Verdict::Drop)
}

fn is_family(side: Side) -> [Expr; 2] {
    let number = if side == Side::V4 { 2 } else { 10 };
    [Expr::Meta { key: MetaKey::Nfproto, dreg: Reg(0) }, Expr::equal(Reg(0), [number])]
}

/// Goes on only if the connection is in this state.
fn state(bit: u32) -> [Expr; 3] {
    let mask = bit.to_ne_bytes().to_vec();
    [
        Expr::Ct { key: CtKey::State, direction: None, dreg: Reg(0) },
        Expr::Bitwise { sreg: Reg(0), dreg: Reg(0), mask, xor: vec![0; 4] },
        Expr::not_equal(Reg(0), [0; 4]),
    ]
}

/// Ranges of which none overlaps another.
pub(super) fn ranges(nets: &[IpNet]) -> Vec<IpNet> {
    let (mut v4, mut v6): (Vec<Ipv4Net>, Vec<Ipv6Net>) = (Vec::new(), Vec::new());
    for net in nets {
        match net {
            IpNet::V4(net) => v4.push(net.trunc()),
            IpNet::V6(net) => v6.push(net.trunc()),
        }
    }
    let v4 = Ipv4Net::aggregate(&v4).into_iter().map(IpNet::V4);
    v4.chain(Ipv6Net::aggregate(&v6).into_iter().map(IpNet::V6)).collect()
}

/// A range as elements: where it begins and, unless it ends with all addresses, what comes behind it.
pub(super) fn interval(range: IpNet) -> Vec<Element> {
    let end = match range.broadcast() {
        IpAddr::V4(last) => u32::from(last).checked_add(1).map(|next| IpAddr::V4(Ipv4Addr::from(next))),
        IpAddr::V6(last) => u128::from(last).checked_add(1).map(|next| IpAddr::V6(Ipv6Addr::from(next))),
    };
    let begin = Element::new(Key::new().ip(range.network()));
    [begin].into_iter().chain(end.map(|end| Element::end(Key::new().ip(end)))).collect()
}
