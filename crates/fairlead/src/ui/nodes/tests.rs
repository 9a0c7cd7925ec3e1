use super::*;

#[track_caller]
fn check_why(conditions: Value, unschedulable: bool, ready: bool, expected: &str) {
    let node = json!({
        "metadata": {"name": "n"}, "spec": {"unschedulable": unschedulable, "podCIDRs": ["10.244.0.0/24"]},
        "status": {"conditions": conditions, "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    });
    let told = item(&serde_json::from_value(node).unwrap(), 3, None, vec!["192.0.2.65"]);
    assert_eq!((&told["ready"], &told["why"]), (&json!(ready), &json!(expected)));
    assert_eq!((&told["addresses"], &told["podRanges"]), (&json!(["192.0.2.1"]), &json!(["10.244.0.0/24"])));
}

#[test]
fn a_node_says_why_it_is_not_ready() {
    let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
    check_why(ready("True"), false, true, "");
    check_why(ready("True"), true, true, "gets no new Pods (cordoned)");
    check_why(ready("False"), false, false, "it says that it is not ready");
    check_why(ready("Unknown"), true, false, "it has not been heard of lately");
    check_why(json!([]), false, false, "nobody says whether it is ready");
}

#[test]
fn a_proxy_is_behind_by_what_it_has_seen_and_not_programmed() {
    let state =
        Programmed { seen: 12, revision: 10, last: Timestamp::from_second(0).ok(), error: Some("no".to_owned()) };
    let expected = json!({
        "mode": "nftables", "programmed": "10", "behind": 2, "last": "1970-01-01T00:00:00Z", "error": "no",
    });
    assert_eq!(state_of("nftables", &state), expected);
}
