use std::sync::Arc;

use fairlead_api::view::ReplicaSet;
use fairlead_cluster::Key;
use serde_json::json;

use super::*;

#[test]
fn the_delay_doubles_up_to_a_limit_and_starts_again_after_a_long_time() {
    let mut failures = Failures::default();
    let mut now = Instant::now();
    assert!(!failures.is_too_soon("u", "a", now), "the first failed Pod is replaced at once");
    for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
        failures.count("u", "a", now);
        assert_eq!(failures.next("u", now), Some(Duration::from_secs(seconds)));
        assert!(!failures.is_too_soon("u", "b", now) && !failures.is_too_soon("v", "a", now), "slots are apart");
        now += Duration::from_secs(seconds - 1);
        assert!(failures.is_too_soon("u", "a", now));
        now += Duration::from_secs(1);
        assert!(!failures.is_too_soon("u", "a", now));
    }
    now += LAST_DELAY * 2;
    failures.count("u", "a", now);
    assert_eq!(failures.next("u", now), Some(FIRST_DELAY));
}

#[test]
fn another_template_is_tried_at_once() {
    let set = |uid: &str, image: &str| {
        let spec = json!({"template": {"spec": {"containers": [{"image": image}]}}});
        let set: ReplicaSet = serde_json::from_value(json!({"metadata": {"uid": uid}, "spec": spec})).expect("a set");
        Some(Arc::new(set))
    };
    for (new, stays) in [(set("u", "v1"), true), (set("u", "v2"), false), (set("w", "v1"), false), (None, false)] {
        let mut failures = Failures::default();
        let now = Instant::now();
        failures.count("u", "", now);
        let change = Change { key: Key::new("default", "web"), old: set("u", "v1"), new };
        failures.update(&change, |set| &set.spec.template);
        assert_eq!(failures.is_too_soon("u", "", now), stays, "{change:?}");
    }
}
