use std::sync::Arc;

use fairlead_api::view::ReplicaSet;
use fairlead_cluster::Key;
use serde_json::json;
use tokio::time::advance;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_delay_doubles_up_to_a_limit_and_starts_again_after_a_long_time() {
    let mut failures = Failures::default();
    assert!(!failures.is_too_soon("u", "a"), "the first failed Pod is replaced at once");
    for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
        failures.count("u", "a");
        assert_eq!(failures.next("u"), Some(Duration::from_secs(seconds)));
        assert!(!failures.is_too_soon("u", "b") && !failures.is_too_soon("v", "a"), "slots are apart");
        advance(Duration::from_secs(seconds - 1)).await;
        assert!(failures.is_too_soon("u", "a"));
        advance(Duration::from_secs(1)).await;
        assert!(!failures.is_too_soon("u", "a"));
    }
    advance(LAST_DELAY * 2).await;
    failures.count("u", "a");
    assert_eq!(failures.next("u"), Some(FIRST_DELAY));
}

#[tokio::test(start_paused = true)]
async fn another_template_is_tried_at_once() {
    let set = |uid: &str, image: &str| {
        let spec = json!({"template": {"spec": {"containers": [{"image": image}]}}});
        let set: ReplicaSet = serde_json::from_value(json!({"metadata": {"uid": uid}, "spec": spec})).expect("a set");
        Some(Arc::new(set))
    };
    for (new, stays) in [(set("u", "v1"), true), (set("u", "v2"), false), (set("w", "v1"), false), (None, false)] {
        let mut failures = Failures::default();
        failures.count("u", "");
        let change = Change { key: Key::new("default", "web"), old: set("u", "v1"), new };
        failures.update(&change, |set| &set.spec.template);
        assert_eq!(failures.is_too_soon("u", ""), stays, "{change:?}");
    }
}
