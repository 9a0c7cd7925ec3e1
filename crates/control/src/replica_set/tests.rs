use super::*;

#[test]
fn failed_pods_are_replaced_with_growing_delays_and_others_at_once() {
    let mut backlog = FailedPods::default();
    let mut now = Instant::now();
    assert_eq!(backlog.allowed("u", 3, now), (3, None));
    for seconds in [0, 1, 2, 4] {
        backlog.add("u");
        if seconds > 0 {
            let delay = Duration::from_secs(seconds);
            assert_eq!(backlog.allowed("u", 1, now), (0, Some(delay)), "the replacement of a failed Pod waits");
            assert_eq!(backlog.allowed("u", 3, now), (2, Some(delay)), "two Pods are missing for another reason");
            now += delay;
        }
        assert_eq!(backlog.allowed("u", 1, now), (1, None));
    }
    assert_eq!(backlog.allowed("u", 3, now), (3, None), "no failed Pod is left to replace");
    backlog.add("u");
    assert_eq!(backlog.allowed("u", 0, now), (0, None), "the ReplicaSet became smaller");
    assert_eq!(backlog.allowed("u", 1, now), (1, None));
    assert!(backlog.pods.is_empty());
}
