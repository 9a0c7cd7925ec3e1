//! The quality of service a Pod gets, from what its containers request and are limited to.

use std::collections::BTreeMap;

use crate::value::Value;

use crate::look::Look;
use crate::quantity::Quantity;

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(super) fn class(spec: &Value) -> &'static str {
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut guaranteed = true;
    // Resources of the whole Pod, where given, take the place of those of its containers.
    let whole = spec.at("resources");
    let all: Vec<&Value> = if whole.is_null() {
        let containers = spec.list("containers").iter().chain(spec.list("initContainers"));
        containers.map(|container| container.at("resources")).collect()
    } else {
        vec![whole]
    };
    for resources in all {
        add(&mut requests, resources.at("requests"));
        let limited = add(&mut limits, resources.at("limits"));
        guaranteed &= limited == COUNTED.len();
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

type Amounts = BTreeMap<String, Quantity>;

/// The resources that count.
const COUNTED: [&str; 2] = ["cpu", "memory"];

/// Adds amounts above zero; says how many.
fn add(sums: &mut Amounts, amounts: &Value) -> usize {
    let mut added = 0;
    for name in COUNTED {
        let Ok(amount) = Quantity::parse(amounts.text(name)) else { continue };
        if amount.sign().is_gt() {
            added += 1;
            let sum = sums.get(name).map_or_else(|| amount.clone(), |sum| sum.plus(&amount));
            sums.insert(name.to_owned(), sum);
        }
    }
    added
}
