//! Which Node a Pod goes to, and why not to the others. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::view::{Node, NodeSelector, Pod, PodSpec, Requirement, Taint, Term, Toleration};

/// Why a Pod cannot go to a Node; said as kube-scheduler says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refusal {
    Selector,
    Taint,
    NotReady,
    Unschedulable,
    Full,
    /// The Pod requests more of a resource than the Node has. What other Pods request is not
    /// counted.
    Insufficient(&'static str),
}

impl Refusal {
    fn text(self) -> String {
        let text = match self {
            Refusal::Selector => "node(s) didn't match Pod's node affinity/selector",
            Refusal::Taint => "node(s) had untolerated taint(s)",
            Refusal::NotReady => "node(s) were not ready",
            Refusal::Unschedulable => "node(s) were unschedulable",
            Refusal::Full => "Too many pods",
            Refusal::Insufficient(resource) => return format!("Insufficient {resource}"),
        };
        text.to_owned()
    }
}

/// What a Node's own conditions and fields say already; the taints that repeat them are not asked.
const REPEATED: [&str; 3] =
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable"];

/// The first of the Nodes that takes the Pod; they come with the number of their Pods, those with the fewest first. If none
/// does: why, Node by Node.
pub(crate) fn choose<'a>(
    pod: &Pod,
    nodes: impl Iterator<Item = (usize, &'a Node)>,
) -> Result<&'a Node, Vec<(&'a str, Refusal)>> {
    let mut refused = Vec::new();
    for (pods, node) in nodes {
        match refusal(pod, node, pods) {
            None => return Ok(node),
            Some(why) => refused.push((node.metadata.name.as_str(), why)),
        }
    }
    Err(refused)
}

/// Why this Node does not take the Pod.
fn refusal(pod: &Pod, node: &Node, pods: usize) -> Option<Refusal> {
    let tolerates = |taint: &Taint| tolerates_taint(&pod.spec, taint);
    let repeated =
        |key: &str| tolerates(&Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
    if node.spec.unschedulable && !repeated(REPEATED[2]) {
        return Some(Refusal::Unschedulable);
    }
    if !node.is_ready() && !repeated(REPEATED[0]) {
        return Some(Refusal::NotReady);
    }
    let keeps_away = |taint: &&Taint| taint.effect != "PreferNoSchedule" && !repeats_condition(taint);
    if node.spec.taints.iter().filter(keeps_away).any(|taint| !tolerates(taint)) {
        return Some(Refusal::Taint);
    }
    if !wants(&pod.spec, node) {
        return Some(Refusal::Selector);
    }
    if node.room().is_some_and(|room| pods >= room) {
        return Some(Refusal::Full);
    }
    let greater =
        |resource: &&str| node.capacity(resource).is_some_and(|capacity| pod.spec.requested(resource) > capacity);
    // The Node would reject the Pod, and the Pod would have failed.
    RESOURCES.into_iter().find(greater).map(Refusal::Insufficient)
}

/// Resources of which a Pod may not request more than its Node has.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    if !toleration.effect.is_empty() && toleration.effect != taint.effect {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != taint.key {
        return false;
    }
    let numbers = || Some((taint.value.parse::<i64>().ok()?, toleration.value.parse::<i64>().ok()?));
    match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        "Lt" => numbers().is_some_and(|(taint, bound)| taint < bound),
        "Gt" => numbers().is_some_and(|(taint, bound)| taint > bound),
        _ => false,
    }
}

/// True for a taint that repeats what the Node's own conditions and fields say.
pub(crate) fn repeats_condition(taint: &Taint) -> bool {
    REPEATED.contains(&taint.key.as_str())
}

/// True if one of the tolerations of a Pod covers the taint.
pub(crate) fn tolerates_taint(spec: &PodSpec, taint: &Taint) -> bool {
    spec.tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

/// True if the Node has the name and the labels that the Pod requires.
pub(crate) fn wants(spec: &PodSpec, node: &Node) -> bool {
    let labels = &node.metadata.labels;
    let selected = spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    let required = spec.affinity.node_affinity.required.as_ref();
    selected && required.is_none_or(|required| matches(required, node))
}

fn matches(selector: &NodeSelector, node: &Node) -> bool {
    let holds = |term: &Term| {
        let empty = term.match_expressions.is_empty() && term.match_fields.is_empty();
        let label = |wanted: &Requirement| satisfied(wanted, node.metadata.labels.get(&wanted.key).map(String::as_str));
        let name = Some(node.metadata.name.as_str());
        let field = |wanted: &Requirement| satisfied(wanted, name.filter(|_| wanted.key == "metadata.name"));
        !empty && term.match_expressions.iter().all(label) && term.match_fields.iter().all(field)
    };
    selector.node_selector_terms.iter().any(holds)
}

fn satisfied(wanted: &Requirement, value: Option<&str>) -> bool {
    let among = |value: &str| wanted.values.iter().any(|known| known == value);
    let number = |text: &str| text.parse::<i64>().ok();
    let numbers = || Some((number(value?)?, number(wanted.values.first()?)?));
    match wanted.operator.as_str() {
        "In" => value.is_some_and(among),
        "NotIn" => !value.is_some_and(among),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// So many Nodes are named with a reason; the others are counted.
const NAMED: usize = 3;

/// Why no Node takes a Pod, in a sentence.
pub(crate) fn explain(refused: &[(&str, Refusal)]) -> String {
    if refused.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: BTreeMap<Refusal, Vec<&str>> = BTreeMap::new();
    refused.iter().for_each(|(name, why)| reasons.entry(*why).or_default().push(name));
    let mut told = Vec::new();
    for (why, mut names) in reasons {
        names.sort_unstable();
        let mut text = format!("{} {} ({}", names.len(), why.text(), names[..names.len().min(NAMED)].join(", "));
        if names.len() > NAMED {
            let _ = write!(text, " and {} more", names.len() - NAMED);
        }
        told.push(text + ")");
    }
    format!("0/{} nodes are available: {}.", refused.len(), told.join(", "))
}

#[cfg(test)]
mod tests;
