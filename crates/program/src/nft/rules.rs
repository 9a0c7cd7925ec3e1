//! How rules are put together. The number a frontend leads to passes through the packet's mark, because `nft` can print no
//! other way from one map to the next; within the same rule, and before anything in it can fail, the mark is put back.

use fairlead_plan::{Family, Scope};

use super::code;
use super::expr::{CmpOp, End, Expr, Found, LOCAL, MetaKey, PayloadBase, Reg};
use super::key::{DataType, Key};
use super::model::{Rule, Verdict};

/// Where the mark is kept within a rule.
const SAVED: Reg = Reg(15);
/// Where keys are put together and values arrive.
pub(crate) const KEY: Reg = Reg(0);
/// Where the number of a frontend, a port or a pool is.
pub(crate) const NUMBER: Reg = Reg(8);
/// Behind it.
const BESIDE_NUMBER: Reg = Reg(9);
/// The number of a pool and, behind it, of an endpoint in it.
const POOL: Reg = Reg(13);
const INDEX: Reg = Reg(14);

/// For how many seconds a client is remembered before the next rule says for how long.
const UNTIL_USED: u32 = 1;

/// From how many slots clients are served who cannot be remembered.
const OVERFLOW: [u32; 4] = [256, 16, 4, 1];

/// How a packet is addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// By an address of the Service.
    Address,
    /// By a node port.
    NodePort,
}

impl Via {
    pub(crate) const ALL: [Via; 2] = [Via::Address, Via::NodePort];

    /// The map with frontends.
    pub(crate) fn frontends(self) -> &'static str {
        match self {
            Via::Address => "frontends",
            Via::NodePort => "nodeports",
        }
    }

    /// The map with those that do not forward all.
    pub(crate) fn guarded(self) -> &'static str {
        match self {
            Via::Address => "guarded",
            Via::NodePort => "guarded-nodeports",
        }
    }
}

/// How a packet is addressed, and which endpoints it may reach. Chains that balance differ in this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) via: Via,
    pub(crate) scope: Scope,
}

impl Place {
    pub(crate) const ALL: [Place; 4] = [
        Place { via: Via::Address, scope: Scope::Cluster },
        Place { via: Via::Address, scope: Scope::Local },
        Place { via: Via::NodePort, scope: Scope::Cluster },
        Place { via: Via::NodePort, scope: Scope::Local },
    ];

    /// The map from what pools lead to, to chains.
    pub(crate) fn spreads(self) -> &'static str {
        match (self.via, self.scope) {
            (Via::Address, Scope::Cluster) => "balance",
            (Via::Address, Scope::Local) => "balance-local",
            (Via::NodePort, Scope::Cluster) => "balance-nodeport",
            (Via::NodePort, Scope::Local) => "balance-nodeport-local",
        }
    }

    /// The map from sizes to chains that draw for clients that stay.
    pub(crate) fn draws(self) -> &'static str {
        match (self.via, self.scope) {
            (Via::Address, Scope::Cluster) => "draw",
            (Via::Address, Scope::Local) => "draw-local",
            (Via::NodePort, Scope::Cluster) => "draw-nodeport",
            (Via::NodePort, Scope::Local) => "draw-nodeport-local",
        }
    }

    /// A chain of this place.
    pub(crate) fn chain(self, what: &str, number: u32) -> String {
        format!("{what}-{number}{}", self.draws().trim_start_matches("draw"))
    }

    /// The chain for clients who cannot be remembered.
    pub(crate) fn overflow(self) -> &'static str {
        match (self.via, self.scope) {
            (Via::Address, Scope::Cluster) => "overflow",
            (Via::Address, Scope::Local) => "overflow-local",
            (Via::NodePort, Scope::Cluster) => "overflow-nodeport",
            (Via::NodePort, Scope::Local) => "overflow-nodeport-local",
        }
    }
}

/// Rules of a family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) family: Family,
}

impl Rules {
    /// The type of addresses.
    pub(crate) fn address(self) -> DataType {
        match self.family {
            Family::V4 => DataType::Ipv4Addr,
            Family::V6 => DataType::Ipv6Addr,
        }
    }

    /// How many registers an address takes.
    fn width(self) -> u8 {
        match self.family {
            Family::V4 => 1,
            Family::V6 => 4,
        }
    }

    /// Loads an address of the packet.
    pub(crate) fn load(self, end: End, dreg: Reg) -> Expr {
        let offset = match (self.family, end) {
            (Family::V4, End::Source) => 12,
            (Family::V4, End::Destination) => 16,
            (Family::V6, End::Source) => 8,
            (Family::V6, End::Destination) => 24,
        };
        let len = u32::from(self.width()) * 4;
        Expr::Payload { base: PayloadBase::Network, offset, len, dreg }
    }

    /// Loads the key of a frontend; returns the register behind it.
    pub(crate) fn load_key(self, via: Via, exprs: &mut Vec<Expr>) -> Reg {
        let mut next = 0;
        if via == Via::Address {
            exprs.push(self.load(End::Destination, KEY));
            next = self.width();
        }
        exprs.push(Expr::Meta { key: MetaKey::L4proto, dreg: Reg(next) });
        exprs.push(Expr::Payload { base: PayloadBase::Transport, offset: 2, len: 2, dreg: Reg(next + 1) });
        Reg(next + 2)
    }

    /// Loads what a frontend leads to in a map; goes on only if it is there.
    pub(crate) fn value(self, via: Via, map: &'static str) -> Vec<Expr> {
        let mut exprs = vec![Expr::Meta { key: MetaKey::Mark, dreg: SAVED }];
        self.load_key(via, &mut exprs);
        exprs.push(load_from(map, KEY, KEY));
        exprs.extend(through_mark(KEY, NUMBER));
        exprs
    }

    /// To the chain that spreads packets over the pool.
    pub(crate) fn spread(self, place: Place) -> Rule {
        rule("", self.size(place, "pools", place.spreads()))
    }

    /// Does what a map says about the size of the pool.
    fn size(self, place: Place, sizes: &'static str, verdicts: &'static str) -> Vec<Expr> {
        let mut exprs = self.value(place.via, place.via.frontends());
        exprs.push(bits(NUMBER, NUMBER, code::PORT, code::scope_bit(place.scope)));
        exprs.push(load_from(sizes, NUMBER, KEY));
        exprs.extend(through_mark(KEY, NUMBER));
        exprs.push(Expr::verdict_map(verdicts, NUMBER));
        exprs
    }

    /// To one of so many slots of the pool, if somebody has it.
    pub(crate) fn choose(self, place: Place, slots: u32) -> Rule {
        let mut exprs = self.value(place.via, place.via.frontends());
        exprs.push(bits(NUMBER, NUMBER, code::PORT, code::scope_bit(place.scope)));
        exprs.extend(through_mark(NUMBER, NUMBER));
        exprs.push(Expr::Numgen { modulus: slots, dreg: BESIDE_NUMBER });
        exprs.extend([load_from("endpoints", NUMBER, KEY), self.dnat()]);
        rule("", exprs)
    }

    /// The chain for clients that stay with their endpoint for so long.
    pub(crate) fn stick(self, place: Place, seconds: u32) -> Vec<Rule> {
        let known = self.remembered(place, seconds);
        // What is remembered may be an endpoint that is gone; it must make room for another.
        let forget = Expr::Forget { map: "affinity", key: NUMBER, data: NUMBER };
        let forget = self.client(place).into_iter().chain([forget]);
        let draw = rule("", self.size(place, "draws", place.draws()));
        vec![known.clone(), rule("the endpoint is gone", forget), draw, known, rule("", [go(place.overflow())])]
    }

    /// The chain that remembers one of so many slots for a client.
    pub(crate) fn draw(self, place: Place, size: u32) -> Vec<Rule> {
        let tries = code::tries(size).into_iter().map(|slots| {
            let mut exprs = self.member(place, slots);
            exprs.push(Expr::Update { map: "affinity", key: NUMBER, data: INDEX, timeout: UNTIL_USED });
            // To the rule that finds what is remembered now.
            exprs.push(Expr::Verdict(Verdict::Return));
            rule("", exprs)
        });
        tries.collect()
    }

    /// The chain for clients who cannot be remembered because too many are: not as even, but to somebody.
    pub(crate) fn overflow(self, place: Place) -> Vec<Rule> {
        let tries = OVERFLOW.map(|slots| {
            let mut exprs = self.member(place, slots);
            exprs.extend([load_from("members", POOL, KEY), self.dnat()]);
            rule("", exprs)
        });
        tries.into_iter().chain([rule("", [Expr::Verdict(Verdict::Drop)])]).collect()
    }

    /// Loads the number of the port and the client, which is the key of what is remembered, and the number of the pool.
    fn client(self, place: Place) -> Vec<Expr> {
        let mut exprs = self.value(place.via, place.via.frontends());
        exprs.push(bits(NUMBER, NUMBER, code::PORT, 0));
        exprs.extend(through_mark(NUMBER, NUMBER));
        exprs.push(bits(NUMBER, POOL, u32::MAX, code::scope_bit(place.scope)));
        exprs.extend(through_mark(POOL, POOL));
        exprs.push(self.load(End::Source, BESIDE_NUMBER));
        exprs
    }

    fn remembered(self, place: Place, timeout: u32) -> Rule {
        let mut exprs = self.client(place);
        exprs.push(load_from("affinity", NUMBER, KEY));
        exprs.extend(through_mark(KEY, INDEX));
        exprs.push(load_from("members", POOL, KEY));
        exprs.push(Expr::Update { map: "affinity", key: NUMBER, data: INDEX, timeout });
        exprs.push(self.dnat());
        rule("", exprs)
    }

    /// Loads the number of a member at random.
    fn member(self, place: Place, slots: u32) -> Vec<Expr> {
        let mut exprs = self.client(place);
        exprs.push(Expr::Numgen { modulus: slots, dreg: INDEX });
        exprs.push(load_from("choices", POOL, KEY));
        exprs.extend(through_mark(KEY, INDEX));
        exprs
    }

    fn dnat(self) -> Expr {
        Expr::Dnat { addr: KEY, port: Reg(self.width()) }
    }

    /// Goes on only if an address of the packet is one of the machine's, or only if it is not.
    pub(crate) fn is_local(self, of: End, op: CmpOp) -> [Expr; 2] {
        [Expr::Addrtype { of, dreg: KEY }, Expr::Cmp { sreg: KEY, op, data: Key::new().number(LOCAL) }]
    }

    /// Goes on only if an address of the packet is in a set.
    pub(crate) fn is_in(self, of: End, set: &'static str) -> [Expr; 2] {
        let lookup = Expr::Lookup { set, sreg: KEY, found: Found::Continue, invert: false };
        [self.load(of, KEY), lookup]
    }

    /// Goes on only if the packet is, or is not, for a loopback address.
    pub(crate) fn is_loopback(self, op: CmpOp) -> Vec<Expr> {
        let mut exprs = vec![self.load(End::Destination, KEY)];
        match self.family {
            Family::V4 => {
                let (mask, none) = (Key::new().part(&[255, 0, 0, 0]), Key::new().part(&[0; 4]));
                exprs.push(Expr::Bitwise { sreg: KEY, dreg: KEY, mask, xor: none });
                exprs.push(Expr::Cmp { sreg: KEY, op, data: Key::new().part(&[127, 0, 0, 0]) });
            }
            Family::V6 => {
                let data = Key::new().ip(std::net::Ipv6Addr::LOCALHOST.into());
                exprs.push(Expr::Cmp { sreg: KEY, op, data });
            }
        }
        exprs
    }
}

/// Puts a number into the mark and reads it back, and puts back the mark.
fn through_mark(sreg: Reg, dreg: Reg) -> [Expr; 3] {
    [
        Expr::MetaSet { key: MetaKey::Mark, sreg },
        Expr::Meta { key: MetaKey::Mark, dreg },
        Expr::MetaSet { key: MetaKey::Mark, sreg: SAVED },
    ]
}

fn load_from(set: &'static str, sreg: Reg, dreg: Reg) -> Expr {
    Expr::Lookup { set, sreg, found: Found::Load(dreg), invert: false }
}

/// `dreg = (sreg & mask) ^ xor`, for numbers.
pub(crate) fn bits(sreg: Reg, dreg: Reg, mask: u32, xor: u32) -> Expr {
    Expr::Bitwise { sreg, dreg, mask: Key::new().number(mask), xor: Key::new().number(xor) }
}

pub(crate) fn go(chain: &'static str) -> Expr {
    Expr::Verdict(Verdict::Goto(chain.into()))
}

/// A rule.
pub(crate) fn rule(comment: &'static str, exprs: impl IntoIterator<Item = Expr>) -> Rule {
    Rule { exprs: exprs.into_iter().collect(), comment }
}
