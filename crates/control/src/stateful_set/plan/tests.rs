use std::sync::Arc;

use serde_json::{Value, json};

use super::*;

fn set(spec: Value) -> StatefulSet {
    let set = json!({"metadata": {"name": "web", "generation": 4}, "spec": spec});
    let mut set: StatefulSet = serde_json::from_value(set).expect("a StatefulSet");
    if set.spec.update_strategy.kind.is_empty() {
        set.spec.update_strategy.kind = "RollingUpdate".to_owned();
    }
    set
}

/// Pods by their texts, such as `0-new-ready`; further words are `going`, `failed`, `waiting` (it
/// failed too soon) and `bare` (no labels).
fn pods(texts: &[&str]) -> Vec<StatefulPod> {
    let pod = |text: &&str| {
        let words: Vec<&str> = text.split('-').collect();
        let ordinal: u32 = words[0].parse().expect("a number");
        let has = |word: &str| words.contains(&word);
        let mut pod = Pod::default();
        pod.metadata.name = format!("web-{ordinal}");
        pod.metadata.deletion_timestamp = has("going").then(|| "2024-01-01T00:00:00Z".to_owned());
        pod.status.phase = if has("failed") { "Failed" } else { "Running" }.to_owned();
        StatefulPod {
            pod: Arc::new(pod),
            ordinal,
            revision: if has("new") { "new" } else { "old" }.to_owned(),
            is_ready: has("ready"),
            is_available: has("ready"),
            backs_off: has("waiting"),
            is_labeled: !has("bare"),
        }
    };
    texts.iter().map(pod).collect()
}

/// The plan as `+NUMBER(TEMPLATE)`, `-POD` and `~POD`.
fn text(plan: &Plan) -> String {
    let created = plan.create.iter().map(|(ordinal, template)| match template {
        Template::Current => format!("+{ordinal}(old)"),
        Template::Update => format!("+{ordinal}"),
    });
    let deleted = plan.delete.iter().map(|pod| format!("-{}", pod.metadata.name));
    let labeled = plan.label.iter().map(|(pod, _)| format!("~{}", pod.metadata.name));
    created.chain(deleted).chain(labeled).collect::<Vec<_>>().join(" ")
}

fn check(spec: Value, texts: &[&str], expected: &str) {
    assert_eq!(text(&decide(&set(spec.clone()), &pods(texts), "new")), expected, "{spec} {texts:?}");
}

#[test]
fn pods_start_one_after_the_other() {
    let three = json!({"replicas": 3});
    check(three.clone(), &[], "+0");
    check(three.clone(), &["0-new"], "");
    check(three.clone(), &["0-new-ready"], "+1");
    check(three.clone(), &["0-new-ready", "2-new-ready"], "+1");
    check(three.clone(), &["0-new-ready-going", "1-new-ready"], "");
    check(three.clone(), &["0-new-failed"], "-web-0");
    check(three.clone(), &["0-new-failed-going"], "");
    check(three, &["0-new-ready", "1-new-ready-bare", "2-new-ready"], "~web-1");
    check(json!({"replicas": 2, "ordinals": {"start": 5}}), &["5-new-ready"], "+6");
}

#[test]
fn pods_stop_from_the_last_to_the_first() {
    let one = json!({"replicas": 1});
    check(one.clone(), &["0-new-ready", "1-new-ready", "2-new-ready"], "-web-2");
    check(one.clone(), &["0-new-ready", "1-new-ready", "2-new-ready-going"], "");
    // The Pods before must be available, unless the Pod itself is the one that is not.
    check(one.clone(), &["0-new", "1-new-ready"], "");
    check(one.clone(), &["0-new-ready", "1-new", "2-new"], "");
    check(one, &["0-new-ready", "1-new"], "-web-1");
    check(json!({"replicas": 1, "ordinals": {"start": 1}}), &["0-new-ready", "1-new-ready"], "-web-0");
}

#[test]
fn in_parallel_no_pod_waits() {
    let parallel = |replicas: i32| json!({"replicas": replicas, "podManagementPolicy": "Parallel"});
    check(parallel(3), &["1-new"], "+0 +2");
    check(parallel(1), &["0-new", "1-new", "2-new"], "-web-2 -web-1");
    check(parallel(2), &["0-new-failed", "1-old-ready"], "-web-0");
    // A number that no machine could run costs no more than the Pods of one action.
    let plan = decide(&set(parallel(i32::MAX)), &pods(&["1-new-ready"]), "new");
    assert_eq!((plan.create.len(), plan.create[BURST - 1].0), (BURST, u32::try_from(BURST).expect("small")));
}

#[test]
fn a_new_template_rolls_from_the_last_to_the_first() {
    let two = json!({"replicas": 2});
    check(two.clone(), &["0-old-ready", "1-old-ready"], "-web-1");
    check(two.clone(), &["0-old-ready", "1-new"], "");
    check(two.clone(), &["0-old-ready", "1-new-ready"], "-web-0");
    check(two, &["0-new-ready", "1-new-ready"], "");
    let partition = |number: i32| json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}});
    check(partition(2), &["0-old-ready", "1-old-ready", "2-old-ready"], "-web-2");
    check(partition(2), &["0-old-ready", "1-old-ready", "2-new-ready"], "");
    check(partition(2), &["0-old-ready", "2-new-ready"], "+1(old)");
    check(partition(9), &["0-old-ready", "1-old-ready", "2-old-ready"], "");
    let on_delete = json!({"replicas": 1, "updateStrategy": {"type": "OnDelete"}});
    check(on_delete, &["0-old-ready"], "");
}

#[test]
fn the_new_revision_is_current_when_all_pods_have_it() {
    let two = set(json!({"replicas": 2}));
    let status = count(&two, &pods(&["0-old-ready", "1-new"]), "old", "new");
    let numbers = |status: &StatefulSetStatus| {
        [status.replicas, status.ready_replicas, status.current_replicas, status.updated_replicas]
    };
    assert_eq!((numbers(&status), status.current_revision.as_str()), ([2, 1, 1, 1], "old"));
    let status = count(&two, &pods(&["0-new-ready", "1-new-ready"]), "old", "new");
    assert_eq!((numbers(&status), status.current_revision.as_str()), ([2, 2, 2, 2], "new"));
    assert_eq!((status.observed_generation, status.available_replicas), (4, 2));
}

#[test]
fn names_hold_ordinals() {
    let set = set(json!({}));
    let check = |name: &str, expected: Option<u32>| assert_eq!(set.ordinal(name), expected, "{name}");
    check("web-0", Some(0));
    check("web-12", Some(12));
    check("web-01", None);
    check("web-x", None);
    check("web", None);
    check("other-0", None);
    check("web-99999999999", None);
}

#[test]
fn a_pod_that_failed_too_soon_is_not_replaced_yet_and_holds_up_an_update() {
    check(json!({"replicas": 2}), &["0-new-failed"], "-web-0");
    check(json!({"replicas": 2}), &["0-new-failed-waiting"], "");
    let parallel = json!({"replicas": 3, "podManagementPolicy": "Parallel"});
    check(parallel, &["0-new-failed-waiting", "1-old-ready"], "+2");
}
