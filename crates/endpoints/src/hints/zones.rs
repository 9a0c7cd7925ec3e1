//! How much of the cluster is in each zone, measured by the CPU that Pods may use.

use std::collections::BTreeMap;

use fairlead_api::quantity::Quantity;
use fairlead_api::view::Node;

/// More than this must no endpoint get above its share.
const OVERLOAD: f64 = 0.2;

/// The share of each zone, or why it is not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Zones {
    shares: Result<BTreeMap<String, f64>, Unknown>,
}

/// Why the share of the zones is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unknown {
    /// A Node does not say its zone or its CPU.
    Node {
        /// Its name.
        name: String,
    },
    /// There are not two zones with Nodes that count.
    OneZone,
}

/// How many endpoints a zone should have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Allocation {
    pub(super) minimum: usize,
    pub(super) maximum: usize,
    pub(super) desired: f64,
}

impl Default for Zones {
    /// No Nodes.
    fn default() -> Zones {
        Zones { shares: Err(Unknown::OneZone) }
    }
}

impl Zones {
    /// Measures the zones. Nodes that are not ready or carry the control plane do not count; one that counts and does not say
    /// its zone and CPU spoils it all.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Zones {
        let mut by_zone = BTreeMap::<String, u64>::new();
        for node in nodes.into_iter().filter(|node| node.is_ready() && !is_control_plane(node)) {
            let (Some(zone), Some(cpu)) = (node.zone(), cpu(node)) else {
                return Zones { shares: Err(Unknown::Node { name: node.metadata.name.clone() }) };
            };
            let sum = by_zone.entry(zone.to_owned()).or_default();
            *sum = sum.saturating_add(cpu);
        }
        if by_zone.len() < 2 {
            return Zones::default();
        }
        let total = by_zone.values().fold(0u64, |sum, cpu| sum.saturating_add(*cpu)) as f64;
        Zones { shares: Ok(by_zone.into_iter().map(|(zone, cpu)| (zone, cpu as f64 / total)).collect()) }
    }

    /// The share of each zone, which together are 1.
    pub fn shares(&self) -> Result<&BTreeMap<String, f64>, &Unknown> {
        self.shares.as_ref()
    }

    /// How many of so many endpoints each zone should have; `None` when some zone would be overloaded whatever one does.
    pub(super) fn allocate(shares: &BTreeMap<String, f64>, endpoints: usize) -> Option<BTreeMap<&str, Allocation>> {
        let minimum = |share: f64| (share * endpoints as f64 * (1.0 / (1.0 + OVERLOAD))).ceil() as usize;
        let spare = endpoints.checked_sub(shares.values().map(|share| minimum(*share)).sum())?;
        let allocate = |share: f64| {
            let minimum = minimum(share);
            let desired = (share * endpoints as f64).max(minimum as f64);
            Allocation { minimum, maximum: minimum + spare, desired }
        };
        Some(shares.iter().map(|(zone, share)| (zone.as_str(), allocate(*share))).collect())
    }

    /// Whether a zone has too few of the endpoints given.
    pub(super) fn is_overloaded(&self, given: &BTreeMap<String, usize>) -> bool {
        if given.is_empty() {
            return false;
        }
        let Ok(shares) = &self.shares else {
            return true;
        };
        let total = given.values().sum::<usize>() as f64;
        shares.iter().any(|(zone, share)| {
            let minimum = (total * share * (1.0 / (1.0 + OVERLOAD))).ceil() as usize;
            given.get(zone).is_none_or(|endpoints| *endpoints < minimum)
        })
    }
}

fn is_control_plane(node: &Node) -> bool {
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
        .iter()
        .any(|label| node.metadata.labels.contains_key(*label))
}

/// The CPU that Pods may use, in thousandths; `None` for none.
fn cpu(node: &Node) -> Option<u64> {
    let quantity = Quantity::parse(node.status.allocatable.get("cpu")?).ok()?;
    u64::try_from(quantity.milli()).ok().filter(|cpu| *cpu > 0)
}
