//! ClusterRoles that collect the rules of others by label (`aggregationRule`). The collected rules are worked out here, at
//! the moment a role changes, so that they hold without a controller that writes them back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::Look;
use fairlead_api::value::{Map, Value};

use super::{ClusterRole, Policy, Rule};

/// `aggregationRule.clusterRoleSelectors` of a ClusterRole.
#[derive(Debug, Clone)]
pub(super) struct Aggregation {
    selectors: Vec<Value>,
}

impl Aggregation {
    pub(super) fn read(role: &Value) -> Option<Aggregation> {
        let selectors = role.at("aggregationRule").list("clusterRoleSelectors");
        (!selectors.is_empty()).then(|| Aggregation { selectors: selectors.to_vec() })
    }

    fn selects(&self, labels: &Map) -> bool {
        self.selectors.iter().any(|selector| selects(selector, labels))
    }
}

impl Policy {
    /// Works out what each aggregating ClusterRole allows.
    pub(super) fn aggregate(&mut self) {
        let aggregating: Vec<String> =
            self.cluster_roles.iter().filter(|(_, r)| r.aggregation.is_some()).map(|(n, _)| n.clone()).collect();
        for name in aggregating {
            let mut rules = Vec::new();
            collect(&self.cluster_roles, &name, &mut BTreeSet::new(), &mut rules);
            let rules: Arc<[Rule]> = rules.into();
            if let Some(role) = self.cluster_roles.get_mut(&name) {
                role.rules = rules;
            }
        }
    }
}

/// Collects rules, each once. A role may select one that collects itself (`admin` selects `edit`, which selects `view`);
/// `seen` keeps circles from turning.
fn collect<'a>(
    roles: &'a BTreeMap<String, ClusterRole>,
    name: &'a str,
    seen: &mut BTreeSet<&'a str>,
    rules: &mut Vec<Rule>,
) {
    let mut waiting = vec![name];
    while let Some(name) = waiting.pop() {
        let Some(role) = roles.get(name).filter(|_| seen.insert(name)) else { continue };
        match &role.aggregation {
            Some(aggregation) => {
                let chosen = roles.iter().filter(|(_, other)| aggregation.selects(&other.labels));
                waiting.extend(chosen.map(|(name, _)| name.as_str()).rev());
            }
            None => rules.extend(role.own.iter().filter(|rule| !rules.contains(rule)).cloned().collect::<Vec<_>>()),
        }
    }
}

/// Whether a `metav1.LabelSelector` matches. An operator we do not know selects nothing.
fn selects(selector: &Value, labels: &Map) -> bool {
    let value = |key: &str| labels.get(key).and_then(Value::as_str);
    let all = selector.map("matchLabels").into_iter().flatten();
    all.into_iter().all(|(key, wanted)| value(key) == wanted.as_str())
        && selector.list("matchExpressions").iter().all(|e| {
            let (found, values) = (value(e.text("key")), e.texts("values"));
            match e.text("operator") {
                "In" => found.is_some_and(|v| values.contains(&v)),
                "NotIn" => !found.is_some_and(|v| values.contains(&v)),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}
