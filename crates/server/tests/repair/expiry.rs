//! Events that are too old.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::house::House;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn an_event_goes_an_hour_after_it_was_last_written_and_nothing_else_does() {
    for house in House::each().await {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        let cases = [
            ("old", json!({"lastTimestamp": "2026-01-01T10:59:59Z"}), false),
            (
                "counted",
                json!({"firstTimestamp": "2026-01-01T01:00:00Z", "lastTimestamp": "2026-01-01T11:30:00Z"}),
                true,
            ),
            ("series", json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T11:00:01.000000Z"}}), true),
            ("exact", json!({"eventTime": "2026-01-01T11:00:00.000000Z"}), false),
            ("timeless", json!({}), true),
        ];
        for (name, mut event, _) in cases.clone() {
            event["kind"] = "Event".into();
            event["apiVersion"] = "v1".into();
            event["metadata"] = json!({"name": name, "namespace": "default"});
            house.put(&format!("/registry/events/default/{name}"), &event).await;
        }
        let (_, ip) = house.service("web", json!({"ports": [{"port": 80}]})).await;
        let next = house.server.expire_events(HOUR, now).await.expect("a scan");
        assert_eq!(next, Some("2026-01-01T12:00:01Z".parse().expect("a time")), "when the next is due");
        for (name, _, stays) in cases {
            assert_eq!(house.get(&format!("/registry/events/default/{name}")).await.is_some(), stays, "{name}");
        }
        assert!(house.get(&format!("/registry/ipaddresses/{ip}")).await.is_some(), "only Events go");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_lifetime_events_stay_for_ever() {
    let house = House::memory().await;
    // It returns: there is nothing it will ever do.
    house.server.clone().keep_expired(Duration::ZERO).await;
}
