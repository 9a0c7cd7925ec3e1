use crate::value::{Value, json};

use super::*;
use crate::decode::decode;
use crate::schema;

fn event(fields: Value) -> Value {
    let mut event = json!({
        "metadata": {"name": "e", "namespace": "ns"}, "reason": "R", "message": "m", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns"},
    });
    for (key, value) in fields.as_object().expect("fields") {
        event.set(key, value.clone());
    }
    decode(&schema::core::EVENT, event).expect("an event").value
}

#[test]
fn the_two_groups_tell_the_same_facts() {
    let core = event(json!({
        "source": {"component": "c"}, "count": 2, "firstTimestamp": "2024-01-01T00:00:00Z",
        "series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000001Z"},
    }));
    let newer = load(&core);
    assert_eq!(newer["apiVersion"], "events.k8s.io/v1");
    assert_eq!(newer["regarding"]["name"], "p");
    assert_eq!(newer["note"], "m");
    assert_eq!(newer["deprecatedCount"], 2);
    assert_eq!(newer.at("reportingController"), &Value::Null);
    let mut back = store(&newer);
    back.unset("kind");
    back.unset("apiVersion");
    assert_eq!(back, core);
}

/// The mistakes `events.k8s.io` tells when a field changes.
fn check_change(fields: Value, messages: &[&str]) {
    let errors: Vec<String> =
        validate::change(&event(fields), &event(json!({}))).iter().map(ToString::to_string).collect();
    assert_eq!(errors, messages);
}

#[test]
fn only_the_series_of_an_event_changes() {
    check_change(json!({"series": {"count": 2, "lastObservedTime": "2024-01-01T00:00:00.000001Z"}}), &[]);
    check_change(
        json!({"series": {"count": 1}}),
        &["series.count: Invalid value: \"\": should be at least 2", "series.lastObservedTime: Required value"],
    );
    check_change(json!({"message": "n"}), &["message: Invalid value: \"n\": field is immutable"]);
    check_change(
        json!({"source": {"component": "c"}}),
        &["source: Invalid value: {\"Component\":\"c\",\"Host\":\"\"}: field is immutable"],
    );
}

#[test]
fn events_about_nodes_live_in_the_default_namespace() {
    let lenient = |namespace: &str, fields: Value| {
        let mut event = event(fields);
        event.map_mut("metadata").insert("namespace", namespace.into());
        validate::lenient(&event, "reportingComponent").len()
    };
    let node = json!({"involvedObject": {"kind": "Node", "name": "n"}});
    assert_eq!(lenient("default", node.clone()), 0);
    assert_eq!(lenient("ns", node), 1);
}

fn check_row(fields: Value, cells: Value) {
    assert_eq!(Value::from(row(&event(fields), 1_704_067_260)), cells);
}

#[test]
fn cells_show_when_what_and_who() {
    check_row(
        json!({"source": {"component": "c", "host": "h"}, "firstTimestamp": "2024-01-01T00:00:00Z"}),
        json!(["60s", "Normal", "R", "pod/p", "", "c, h", "m", "60s", 1, "e"]),
    );
    check_row(
        json!({
            "eventTime": "2024-01-01T00:00:00.000000Z", "reportingComponent": "k", "message": " m\n",
            "series": {"count": 3, "lastObservedTime": "2024-01-01T00:00:30.000000Z"},
        }),
        json!(["30s", "Normal", "R", "pod/p", "", "k", "m", "60s", 3, "e"]),
    );
}
