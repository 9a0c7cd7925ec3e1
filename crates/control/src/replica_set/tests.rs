use super::*;

use tokio::time::advance;

#[tokio::test(start_paused = true)]
async fn failed_pods_are_replaced_with_growing_delays_and_others_at_once() {
    let mut backlog = FailedPods::default();
    assert_eq!(backlog.allowed("u", 3), (3, None));
    for seconds in [0, 1, 2, 4] {
        backlog.add("u");
        if seconds > 0 {
            let delay = Duration::from_secs(seconds);
            assert_eq!(backlog.allowed("u", 1), (0, Some(delay)), "the replacement of a failed Pod waits");
            assert_eq!(backlog.allowed("u", 3), (2, Some(delay)), "two Pods are missing for another reason");
            advance(delay).await;
        }
        assert_eq!(backlog.allowed("u", 1), (1, None));
    }
    assert_eq!(backlog.allowed("u", 3), (3, None), "no failed Pod is left to replace");
    backlog.add("u");
    assert_eq!(backlog.allowed("u", 0), (0, None), "the ReplicaSet became smaller");
    assert_eq!(backlog.allowed("u", 1), (1, None));
    assert!(backlog.pods.is_empty());
}
