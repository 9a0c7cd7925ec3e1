use serde_json::json;

use super::*;

#[test]
fn an_event_tells_when_it_was_last_seen_and_how_often() {
    let check = |event: Value, expected: &str| assert_eq!(interval(&event, 600), expected, "{event}");
    check(json!({"firstTimestamp": "1970-01-01T00:00:00Z", "count": 1}), "10m");
    check(
        json!({"firstTimestamp": "1970-01-01T00:00:00Z", "lastTimestamp": "1970-01-01T00:09:00Z", "count": 4}),
        "60s (x4 over 10m)",
    );
    let series = json!({"count": 7, "lastObservedTime": "1970-01-01T00:09:50.000000Z"});
    check(json!({"eventTime": "1970-01-01T00:05:00.000000Z", "series": series}), "10s (x7 over 5m)");
    check(json!({}), "<unknown>");
}

#[test]
fn a_description_ends_with_events() {
    let mut text = String::new();
    describe(&mut text, &[]);
    assert_eq!(text, "Events:\t<none>\n");
    text.clear();
    let event = json!({"type": "Normal", "reason": "Allocated", "message": " ok \n", "source": {"component": "fairlead"},
        "involvedObject": {"fieldPath": "spec.ports"}});
    describe(&mut text, &[event]);
    assert!(text.ends_with("  Normal\tAllocated\t<unknown>\tfairlead\tspec.ports: ok\n"), "{text}");
}
