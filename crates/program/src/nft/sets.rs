//! The sets and maps of the program, and how many elements each may hold.

use fairlead_plan::{Family, Source};

use super::key::DataType::{InetProto, InetService, Mark};
use super::layout::actions;
use super::model::{Set, ValueType};
use super::rules::{Place, Rules};

/// How many clients may be remembered.
const MAX_CLIENTS: u32 = 1 << 20;

/// Every set and map. Those whose elements come and go with Services have room for `sizes`.
pub(crate) fn sets(family: Family, sizes: &Sizes) -> Vec<Set> {
    let ip = Rules { family }.address();
    let endpoint = || vec![ip, InetService];
    let sized = |set: Set| Set { size: Some(sizes.of(set.name)), ..set };
    let counted = |set| Set { counter: true, ..sized(set) };
    let ranges = |name, comment| Set { interval: true, ..set(name, &[ip], comment) };
    let affinity = map("affinity", &[Mark, ip], vec![Mark], "port and client to member");
    let mut sets = vec![
        sized(map("frontends", &[ip, InetProto, InetService], vec![Mark], "to actions and number of the port")),
        sized(map("nodeports", &[InetProto, InetService], vec![Mark], "to actions and number of the port")),
        sized(map("guarded", &[ip, InetProto, InetService], vec![Mark], "to what is refused")),
        sized(map("guarded-nodeports", &[InetProto, InetService], vec![Mark], "to what is refused")),
        Set {
            interval: true,
            ..set("allowed", &[ip, InetProto, InetService, ip], "frontends and their source ranges")
        },
        sized(map("pools", &[Mark], vec![Mark], "to a size, or seconds of affinity")),
        sized(map("draws", &[Mark], vec![Mark], "to a size")),
        counted(map("endpoints", &[Mark, Mark], endpoint(), "pool and slot to endpoint")),
        sized(map("choices", &[Mark, Mark], vec![Mark], "pool and slot to member")),
        counted(map("members", &[Mark, Mark], endpoint(), "pool and member to endpoint")),
        Set { dynamic: true, size: Some(MAX_CLIENTS), ..affinity },
        sized(set("hairpin", &[ip, ip], "endpoints on this Node")),
        sized(set("cluster-ips", &[ip], "")),
        ranges("pod-ranges", ""),
        ranges("node-pod-ranges", "of Pods on this Node"),
        ranges("nodeport-ips", "where node ports are served"),
        ranges("service-ranges", "where cluster IPs come from"),
        verdicts("refusals"),
    ];
    sets.extend(Place::ALL.iter().flat_map(|place| [verdicts(place.spreads()), verdicts(place.draws())]));
    sets.extend(Source::ALL.map(|source| verdicts(actions(source))));
    sets
}

/// Whether keys of that set of ranges have several parts. The kernel takes such a range as one element with both its ends;
/// any other as two: where it begins, and where it is no more.
pub fn is_concatenation_of_ranges(set: &str) -> bool {
    set == "allowed"
}

fn set(name: &'static str, key: &[super::DataType], comment: &'static str) -> Set {
    let (key, value) = (key.to_vec(), ValueType::Nothing);
    Set { name, key, value, interval: false, dynamic: false, size: None, counter: false, comment }
}

fn map(name: &'static str, key: &[super::DataType], data: Vec<super::DataType>, comment: &'static str) -> Set {
    Set { value: ValueType::Data(data), ..set(name, key, comment) }
}

fn verdicts(name: &'static str) -> Set {
    Set { value: ValueType::Verdict, ..set(name, &[Mark], "") }
}

/// The sets with a size that follows from what is in them.
const SIZED: [&str; 11] = [
    "frontends",
    "nodeports",
    "guarded",
    "guarded-nodeports",
    "pools",
    "draws",
    "endpoints",
    "choices",
    "members",
    "hairpin",
    "cluster-ips",
];

/// How many elements the sets of a family have, or have room for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sizes(std::collections::HashMap<&'static str, i64>);

/// The least room a set has.
const SMALLEST: i64 = 1 << 10;

impl Sizes {
    /// Counts elements that come, or go.
    pub(crate) fn count(&mut self, set: &'static str, elements: i64) {
        if SIZED.contains(&set) {
            *self.0.entry(set).or_default() += elements;
        }
    }

    /// Room for at least twice as many as there are.
    pub(crate) fn with_room(&self) -> Sizes {
        let room = |count: &i64| (count.max(&0).cast_unsigned() * 2).next_power_of_two().cast_signed().max(SMALLEST);
        Sizes(self.0.iter().map(|(set, count)| (*set, room(count))).collect())
    }

    /// Whether that many fit.
    pub(crate) fn fits(&self, sizes: &Sizes) -> bool {
        sizes.0.iter().all(|(set, count)| *count <= i64::from(self.of(set)))
    }

    fn of(&self, set: &str) -> u32 {
        self.0.get(set).copied().unwrap_or(SMALLEST).try_into().unwrap_or(u32::MAX)
    }
}
