use std::sync::Arc;

use super::*;
use crate::scheduler::view::Pod;

/// A Pod by its text: `new` or `old`, then any of `ready`, `failed`, `succeeded`, `going`, `waits`.
fn pod(name: &str, text: &str) -> DaemonPod {
    let has = |word: &str| text.split('-').any(|part| part == word);
    let mut pod = Pod::default();
    pod.metadata.name = name.to_owned();
    pod.status.phase = match (has("failed"), has("succeeded")) {
        (true, _) => "Failed",
        (_, true) => "Succeeded",
        _ => "Running",
    }
    .to_owned();
    pod.metadata.deletion_timestamp = has("going").then(|| "2024-01-01T00:00:00Z".to_owned());
    DaemonPod {
        pod: Arc::new(pod),
        is_updated: has("new"),
        is_ready: has("ready"),
        is_available: has("ready"),
        backs_off: has("waits"),
    }
}

/// Nodes by their texts, such as `n1: old-ready new`. Nodes with a name beginning with `x` should
/// run no Pod, those with `d` may not keep one either.
fn nodes(texts: &[&str]) -> Vec<NodePods> {
    let node = |text: &&str| {
        let (name, pods) = text.split_once(':').expect("a name");
        let pods = pods.split_whitespace().enumerate();
        NodePods {
            name: name.to_owned(),
            placement: Placement { should_run: !name.starts_with(['x', 'd']), may_stay: !name.starts_with('d') },
            pods: pods.map(|(at, text)| pod(&format!("{name}-{at}-{text}"), text)).collect(),
        }
    };
    texts.iter().map(node).collect()
}

/// The plan as `+NODE` and `-POD`.
fn text(plan: &Plan) -> String {
    let created = plan.create.iter().map(|node| format!("+{node}"));
    let deleted = plan.delete.iter().map(|(pod, _)| format!("-{}", pod.metadata.name));
    created.chain(deleted).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_node_that_should_gets_one_pod() {
    let check = |texts: &[&str], surges: bool, expected: &str| {
        assert_eq!(text(&manage(&nodes(texts), surges)), expected, "{texts:?}");
    };
    check(&["n1:", "n2: new", "x1:", "d1:"], false, "+n1");
    check(&["x1: new", "d1: new", "d2: new-going"], false, "-d1-0-new");
    // The oldest stays.
    check(&["n1: old new", "n2: new new"], false, "-n1-1-new -n2-1-new");
    check(
        &["n1: old-failed", "n2: new-succeeded", "n3: old-failed-waits"],
        false,
        "-n1-0-old-failed -n2-0-new-succeeded",
    );
    // A Pod that is going keeps its place, but not when surging.
    check(&["n1: old-going"], false, "");
    check(&["n1: old-going"], true, "+n1");
    check(&["n1: old-ready new", "n2: old-ready new-ready", "n3: old new"], true, "-n2-0-old-ready -n3-0-old");
    check(&["n1: old-ready old new new"], true, "-n1-3-new -n1-1-old");
}

#[test]
fn a_rolling_update_keeps_its_limits() {
    let check = |texts: &[&str], (max_unavailable, max_surge): (usize, usize), expected: &str| {
        let plan = roll(&nodes(texts), Limits { max_unavailable, max_surge });
        assert_eq!(text(&plan), expected, "{texts:?}");
    };
    let three = ["n1: old-ready", "n2: old-ready", "n3: old-ready"];
    check(&three, (1, 0), "-n1-0-old-ready");
    check(&three, (2, 0), "-n1-0-old-ready -n2-0-old-ready");
    check(&three, (0, 1), "+n1");
    // Old Pods that are not available are replaced at once, and count.
    check(&["n1: old", "n2: old", "n3: old-ready"], (1, 0), "-n1-0-old -n2-0-old");
    check(&["n1: old", "n2: old-ready"], (0, 1), "+n1 +n2");
    // A new Pod that is not available, and a Node without Pods, count.
    check(&["n1: new", "n2: old-ready"], (1, 0), "");
    check(&["n1:", "n2: old-ready"], (1, 0), "");
    check(&["n1: new-ready", "n2: old-ready"], (1, 0), "-n2-0-old-ready");
    // Surging waits for the new Pod, then the old one goes.
    check(&["n1: old-ready new", "n2: old-ready"], (0, 1), "");
    check(&["n1: old-ready new-ready", "n2: old-ready"], (0, 1), "+n2 -n1-0-old-ready");
    check(&["n1: new-ready", "n2: new-ready"], (1, 0), "");
}

#[test]
fn nodes_are_counted_by_their_oldest_pods() {
    let status = count(&nodes(&["n1: new-ready old", "n2: old-ready", "n3:", "x1: old", "d1:", "n4: new"]));
    let expected = DaemonSetStatus {
        current_number_scheduled: 3,
        number_misscheduled: 1,
        desired_number_scheduled: 4,
        number_ready: 2,
        updated_number_scheduled: 2,
        number_available: 2,
        number_unavailable: 2,
        ..DaemonSetStatus::default()
    };
    assert_eq!(status, expected);
}
