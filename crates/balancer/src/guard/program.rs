//! A guard as elements of the sets that [`super::layout`] reads, and what changes them from one guard to the next. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairlead_api::view::Protocol;
use fairlead_kernel::nft::{Batch, Element, Key, Table};
use ipnet::IpNet;

use super::layout::{self, SETS, sets};
use super::{Guard, Rule, Target};

/// `nft` prints no longer comments.
const COMMENT: usize = 128;

/// What is in each set, by its key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    sets: BTreeMap<&'static str, Elements>,
}

/// The elements of a set in the order in which the kernel is sent them.
pub(super) type Elements = BTreeMap<ElementKey, Element>;

/// The key of an element, its last key in a set of concatenations, and true unless it ends a range.
///
/// The end of a range sorts before the range that begins there: the kernel refuses an end behind a
/// beginning at one key as an overlap (net/netfilter/nft_set_rbtree.c, `__nft_rbtree_insert`), and
/// `nft` sends them in this order too.
pub(super) type ElementKey = (Vec<u8>, Option<Vec<u8>>, bool);

/// Returns the key of an element in [`Elements`].
pub(super) fn key_of(element: &Element) -> ElementKey {
    (element.key.clone(), element.key_end.clone(), !element.interval_end)
}

impl Program {
    /// What a guard is in sets.
    pub fn new(guard: &Guard) -> Program {
        let mut program = Program::default();
        for address in &guard.addresses {
            program.put(sets::ADDRESSES, *address, Element::new(Key::new().ip(*address)));
        }
        for one in &guard.listeners {
            program.put(sets::LISTENERS, one.address, Element::new(frontend(one.address, one.protocol, one.port)));
        }
        for range in layout::ranges(&guard.pods) {
            program.extend(sets::PODS, range.addr(), layout::interval(range));
        }
        let mut targets: BTreeMap<Target, Vec<&Rule>> = BTreeMap::new();
        for rule in &guard.rules {
            targets.entry(rule.to).or_default().push(rule);
        }
        for (target, rules) in targets {
            program.restrict(target, &rules);
        }
        program
    }

    /// The elements of a set.
    pub(super) fn elements(&self, set: &str) -> &Elements {
        static NONE: Elements = Elements::new();
        self.sets.get(set).unwrap_or(&NONE)
    }

    fn restrict(&mut self, target: Target, rules: &[&Rule]) {
        let remark = comment(rules);
        let from: Vec<IpNet> = rules.iter().flat_map(|rule| &rule.from).copied().collect();
        let (guarded, allowed) = match target {
            Target::Frontend(_) => (sets::GUARDED, sets::ALLOWED),
            Target::NodePort(..) => (sets::GUARDED_PORTS, sets::ALLOWED_PORTS),
            Target::TooLong(_) => (sets::GUARDED_LONG, sets::ALLOWED_LONG),
        };
        // A port is of both families, an address of its own.
        let like = match target {
            Target::Frontend(one) => one.address,
            _ => IpAddr::from([0; 4]),
        };
        self.put(guarded, like, Element::new(suffix(Key::new(), target)).comment(remark));
        for range in layout::ranges(&from) {
            let concerned = match target {
                Target::Frontend(one) => one.address.is_ipv4() == range.addr().is_ipv4(),
                Target::NodePort(..) => true,
                // IPv6 has other words for it, which are always believed.
                Target::TooLong(_) => range.addr().is_ipv4(),
            };
            if !concerned {
                continue;
            }
            let [first, last] = [range.network(), range.broadcast()].map(|ip| suffix(Key::new().ip(ip), target));
            self.put(allowed, range.addr(), Element::range(first, last));
        }
    }

    fn extend(&mut self, set: [&'static str; 2], like: IpAddr, elements: impl IntoIterator<Item = Element>) {
        let set = self.sets.entry(set[usize::from(like.is_ipv6())]).or_default();
        for element in elements {
            set.insert(key_of(&element), element);
        }
    }

    fn put(&mut self, set: [&'static str; 2], like: IpAddr, element: Element) {
        self.extend(set, like, [element]);
    }

    /// Adds to a batch what makes this program of another one.
    pub(super) fn change(&self, from: &Program, table: &Table, batch: &mut Batch) {
        for set in SETS.iter().filter(|set| set.family == table.family) {
            let (old, new) = (from.elements(set.name), self.elements(set.name));
            if old == new {
                continue;
            }
            // The ends of ranges belong together: such a set is made anew, which costs nothing as it is small.
            if set.interval && set.key.len() == 1 {
                batch.flush_set(table, set.name);
                batch.add_elements(table, set.name, new.values());
                continue;
            }
            let differs = |(key, element): &(&_, &Element), there: &Elements| there.get(*key) != Some(*element);
            let gone = old.iter().filter(|one| differs(one, new)).map(|(_, element)| element);
            batch.delete_elements(table, set.name, gone);
            let come = new.iter().filter(|one| differs(one, old)).map(|(_, element)| element);
            batch.add_elements(table, set.name, come);
        }
    }
}

fn suffix(key: Key, target: Target) -> Key {
    match target {
        Target::Frontend(one) => key.ip(one.address).proto(number(one.protocol)).port(one.port),
        Target::NodePort(protocol, port) => key.proto(number(protocol)).port(port),
        Target::TooLong(port) => key.port(port),
    }
}

fn frontend(address: IpAddr, protocol: Protocol, port: u16) -> Key {
    Key::new().ip(address).proto(number(protocol)).port(port)
}

/// The number of a protocol on the wire.
pub(super) fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

fn comment(rules: &[&Rule]) -> String {
    let mut words: Vec<&str> = rules.iter().map(|rule| rule.description.as_str()).collect();
    words.dedup();
    let mut text = words.join(", ");
    while text.len() >= COMMENT {
        text.pop();
    }
    text
}
