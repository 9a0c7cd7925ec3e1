//! The taints that repeat what a Node's conditions say, for schedulers that look at taints alone: there while it holds, gone
//! when it does not. A new Node comes with the first of them.

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Error, Patch};
use serde_json::{Value, json};

use super::view::Reported;

const EFFECT: &str = "NoSchedule";
/// Condition, status, and the taint that goes with it.
const TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", "node.kubernetes.io/not-ready"),
    ("Ready", "Unknown", "node.kubernetes.io/unreachable"),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
];
/// The taint of a Node that takes no new Pods.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The taints a Node should have, of those that are kept here, and whether it has others of them. `None`: nobody has said yet
/// how it does.
fn wanted(status: impl Fn(&str) -> Option<String>, unschedulable: bool) -> Option<Vec<&'static str>> {
    status("Ready")?;
    let holds = |(condition, when, _): &&(&str, &str, &str)| status(condition).as_deref() == Some(when);
    let conditions = TAINTS.iter().filter(holds).map(|(.., taint)| *taint);
    Some(conditions.chain(unschedulable.then_some(UNSCHEDULABLE)).collect())
}

fn is_kept(key: &str, effect: &str) -> bool {
    effect == EFFECT && (key == UNSCHEDULABLE || TAINTS.iter().any(|(.., taint)| *taint == key))
}

/// Whether a Node's taints say something else than its conditions.
pub(super) fn are_wrong(node: &Reported) -> bool {
    let Some(mut wanted) = wanted(|kind| node.status(kind).map(str::to_owned), node.unschedulable()) else {
        return false;
    };
    let mut present: Vec<&str> =
        node.taints().filter(|(key, effect)| is_kept(key, effect)).map(|(key, _)| key).collect();
    wanted.sort_unstable();
    present.sort_unstable();
    wanted != present
}

/// Puts them right.
pub(super) async fn put_right(cluster: &Cluster, name: &str) -> Result<(), Error> {
    let node = match cluster.get(&kinds::NODE, "", name).await {
        Err(Error::NotFound(_)) => return Ok(()),
        other => other?,
    };
    let Some(taints) = corrected(&node) else { return Ok(()) };
    let version = node.at("metadata").text("resourceVersion");
    let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}}));
    match cluster.patch(&kinds::NODE, "", name, &patch).await {
        // It is another by now, and will be seen.
        Err(Error::NotFound(_) | Error::Conflict(_)) => Ok(()),
        other => other.map(drop),
    }
}

/// The taints as they should be; others are left as they are.
fn corrected(node: &Value) -> Option<Vec<Value>> {
    let conditions = node.at("status").list("conditions");
    let status = |kind: &str| {
        let found = conditions.iter().find(|condition| condition.text("type") == kind);
        found.map(|condition| condition.text("status").to_owned())
    };
    let wanted = wanted(status, node.at("spec").flag("unschedulable"))?;
    let mut taints = node.at("spec").list("taints").to_vec();
    taints.retain(|taint| {
        let key = taint.text("key");
        !is_kept(key, taint.text("effect")) || wanted.contains(&key)
    });
    for key in wanted {
        if !taints.iter().any(|taint| taint.text("key") == key && taint.text("effect") == EFFECT) {
            taints.push(json!({"key": key, "effect": EFFECT}));
        }
    }
    Some(taints)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The taints of a Node with this Ready condition and these taints, as they should be.
    #[track_caller]
    fn check(ready: Option<&str>, unschedulable: bool, taints: &[(&str, &str)], want: Option<&[(&str, &str)]>) {
        let list = |taints: &[(&str, &str)]| -> Vec<Value> {
            taints.iter().map(|(key, effect)| json!({"key": key, "effect": effect})).collect()
        };
        let conditions: Vec<Value> = ready.iter().map(|status| json!({"type": "Ready", "status": status})).collect();
        let node = json!({
            "spec": {"unschedulable": unschedulable, "taints": list(taints)}, "status": {"conditions": conditions},
        });
        assert_eq!(corrected(&node), want.map(list));
        let view: Reported = serde_json::from_value(node).expect("a view");
        assert_eq!(are_wrong(&view), want.is_some_and(|want| want != taints));
    }

    const NOT_READY: (&str, &str) = ("node.kubernetes.io/not-ready", EFFECT);
    const UNREACHABLE: (&str, &str) = ("node.kubernetes.io/unreachable", EFFECT);
    const OWN: (&str, &str) = ("example.com/gpu", EFFECT);
    const EVICTS: (&str, &str) = ("node.kubernetes.io/not-ready", "NoExecute");

    #[test]
    fn taints_follow_the_conditions_and_others_are_left_alone() {
        check(Some("True"), false, &[NOT_READY, OWN, EVICTS], Some(&[OWN, EVICTS]));
        check(Some("True"), false, &[OWN], Some(&[OWN]));
        check(Some("False"), false, &[OWN], Some(&[OWN, NOT_READY]));
        check(Some("Unknown"), false, &[NOT_READY], Some(&[UNREACHABLE]));
        check(Some("True"), true, &[], Some(&[(UNSCHEDULABLE, EFFECT)]));
        check(Some("True"), false, &[(UNSCHEDULABLE, EFFECT)], Some(&[]));
        check(None, false, &[NOT_READY], None);
    }
}
