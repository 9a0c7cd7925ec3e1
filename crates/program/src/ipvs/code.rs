//! What numbers mean: marks that lead to virtual servers, and what a frontend leads to in the maps of nftables.
//!
//! ```text
//! a mark of ours   7 bits that say so | policy Local | 23 bits: the number of the port, with the bit that says
//!                  "masquerade" wherever it is set up to be
//! frontends        31 guarded | 15..0 for each source four bits, see `Way`
//! ```

use fairlead_plan::{Action, Frontend, FrontendKey, Node, Scope, Source};

use crate::nft::Key;
use crate::nft::code;

/// What the highest bits of our marks are, before room is made for the masquerade bit.
const SIGNATURE: u32 = 0x7b << 24;
const LOCAL: u32 = 1 << 23;
/// All bits of a number. No port has that one.
pub(crate) const MAX_PORT: u32 = LOCAL - 1;

/// How marks of packets are made. IPVS compares all of a mark, so the packets it is to send on by their mark have one of
/// ours alone. The bit that says "masquerade" keeps its place and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    masquerade: u32,
    /// Marks of other set-ups are ours, too.
    any: bool,
}

impl Marks {
    /// Marks of whatever set-up: for telling ours from others'.
    pub fn any() -> Marks {
        Marks { any: true, ..Marks::new(1 << 14) }
    }

    /// A mark of ours that no packet ever has.
    pub fn unused(self) -> u32 {
        self.mark(MAX_PORT, Scope::Local, false)
    }

    /// Marks with that masquerade bit.
    pub fn new(masquerade: u32) -> Marks {
        // One bit, whatever is said.
        Marks { masquerade: 1 << masquerade.trailing_zeros().min(31), any: false }
    }

    /// The mark for packets to a pool of a port with that number.
    pub(crate) fn mark(self, number: u32, scope: Scope, masquerade: bool) -> u32 {
        let local = if scope == Scope::Local { LOCAL } else { 0 };
        let rest = self.spread(SIGNATURE | local | number & MAX_PORT);
        rest | if masquerade { self.masquerade } else { 0 }
    }

    /// Whether a mark is one of ours.
    pub fn is_ours(self, mark: u32) -> bool {
        let fits = |marks: &Marks| mark & marks.signature_mask() == marks.signature();
        fits(&self) || self.any && (0..32).any(|bit| fits(&Marks::new(1 << bit)))
    }

    /// The number of the port a mark of ours is for.
    pub(crate) fn number(self, mark: u32) -> Option<u32> {
        let gathered = mark & (self.masquerade - 1) | mark >> 1 & !(self.masquerade - 1);
        self.is_ours(mark).then_some(gathered & MAX_PORT)
    }

    pub(crate) fn masquerade(self) -> u32 {
        self.masquerade
    }

    pub(crate) fn local(self) -> u32 {
        self.spread(LOCAL)
    }

    pub(crate) fn signature(self) -> u32 {
        self.spread(SIGNATURE)
    }

    pub(crate) fn signature_mask(self) -> u32 {
        self.spread(0x7f << 24)
    }

    /// Makes room for the masquerade bit in 31 others.
    fn spread(self, bits: u32) -> u32 {
        let below = self.masquerade - 1;
        bits & below | (bits & !below) << 1
    }
}

/// What is done to a packet so that IPVS sends it where it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Nothing: it is found by its address, or refused.
    AsItIs,
    /// It is found by its address, and masqueraded.
    Masquerade,
    /// It gets a mark of ours.
    Mark { by_address: bool, scope: Scope, masquerade: bool },
}

impl Way {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Way> {
        let flags = [false, true];
        let marks = flags.into_iter().flat_map(move |by_address| {
            let scopes = [Scope::Cluster, Scope::Local].into_iter();
            scopes.flat_map(move |scope| flags.map(|masquerade| Way::Mark { by_address, scope, masquerade }))
        });
        [Way::AsItIs, Way::Masquerade].into_iter().chain(marks)
    }

    /// Its bits in the value of a frontend.
    pub(crate) fn bits(self, source: Source) -> u32 {
        let number = match self {
            Way::AsItIs => 0,
            Way::Masquerade => 1,
            Way::Mark { by_address, scope, masquerade } => {
                8 | u32::from(by_address) << 2 | u32::from(scope == Scope::Local) << 1 | u32::from(masquerade)
            }
        };
        number << shift(source)
    }

    /// The way of packets from a source to a frontend.
    pub(crate) fn of(frontend: &Frontend, source: Source, node: &Node) -> Way {
        let Action::Forward { scope, masquerade } = frontend.actions[source] else { return Way::AsItIs };
        match scope_of_address(frontend, node) {
            Some(main) if main == scope && masquerade => Way::Masquerade,
            Some(main) if main == scope => Way::AsItIs,
            _ => Way::Mark { by_address: matches!(frontend.key, FrontendKey::Address { .. }), scope, masquerade },
        }
    }
}

/// The bits that say what is done to packets from there.
pub(crate) fn way_mask(source: Source) -> u32 {
    0xf << shift(source)
}

fn shift(source: Source) -> u32 {
    4 * source as u32
}

/// Whether the address of a frontend is to be on our link: it is neither a node port nor an address of the Node.
pub(crate) fn is_on_link(frontend: &Frontend, node: &Node) -> bool {
    matches!(frontend.key, FrontendKey::Address { ip, .. } if !node.has(ip))
}

/// Which pool the virtual server at the address of a frontend has: that of those outside, of whom there are most. What goes to
/// the other goes by mark. `None`: there is no such server, and everything goes by mark.
pub(crate) fn scope_of_address(frontend: &Frontend, node: &Node) -> Option<Scope> {
    let scope = match frontend.actions[Source::Outside] {
        Action::Forward { scope, .. } => scope,
        // Policy Local, and nobody is here.
        Action::Drop => Scope::Local,
        Action::Reject if frontend.actions.uses(Scope::Local) => Scope::Local,
        Action::Reject => Scope::Cluster,
    };
    is_on_link(frontend, node).then_some(scope)
}

/// What a frontend leads to.
pub(crate) fn frontend(frontend: &Frontend, node: &Node) -> Key {
    let ways = Source::ALL.map(|source| Way::of(frontend, source, node).bits(source));
    let guarded = if code::guard(frontend).is_some() { code::GUARDED } else { 0 };
    Key::new().number(ways.iter().sum::<u32>() | guarded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_from_others_wherever_the_masquerade_bit_is() {
        for bit in 0..32 {
            let marks = Marks::new(1 << bit);
            let mut seen = std::collections::BTreeSet::new();
            for number in [0, 1, 5, 0x4000, MAX_PORT] {
                for (scope, masquerade) in [(Scope::Cluster, false), (Scope::Cluster, true), (Scope::Local, false)] {
                    let mark = marks.mark(number, scope, masquerade);
                    assert!(seen.insert(mark) && marks.is_ours(mark), "{bit} {number}");
                    assert_eq!(marks.number(mark), Some(number), "{bit}");
                    assert_eq!(mark & 1 << bit != 0, masquerade, "{bit} {number}");
                }
            }
            for foreign in [0, 1, 0x4000, 0xffff_ffff, 0x0400_0000, 0x1ce] {
                assert!(!marks.is_ours(foreign), "{bit} {foreign:x}");
            }
        }
    }

    #[test]
    fn ways_have_bits_of_their_own() {
        let bits: std::collections::BTreeSet<u32> = Way::all().map(|way| way.bits(Source::Outside)).collect();
        assert_eq!(bits.len(), 10);
        assert!(bits.iter().all(|bits| bits & !way_mask(Source::Outside) == 0));
    }
}
