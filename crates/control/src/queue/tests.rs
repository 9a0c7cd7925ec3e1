use fairlead_monitor::Format;

use super::*;
use crate::Metrics;

fn meter() -> QueueMeter {
    Metrics::new().queue("test")
}

fn all(queue: &mut Queue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.take()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_key_is_in_the_queue_once() {
    let mut queue = Queue::new(meter());
    ["a", "b", "a"].into_iter().for_each(|key| queue.add(key));
    assert_eq!(all(&mut queue), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_it_is_worked_on_is_worked_on_again_but_not_at_the_same_time() {
    let mut queue = Queue::new(meter());
    queue.add("a");
    assert_eq!(queue.take(), Some("a"));
    queue.add("a");
    assert_eq!(queue.take(), None);
    queue.done("a");
    assert_eq!(all(&mut queue), ["a"]);
    queue.done("a");
    assert!(queue.items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_failed_comes_back_later_and_later_until_it_goes_well() {
    let mut queue = Queue::new(meter());
    queue.add("a");
    let mut waits = Vec::new();
    for _ in 0..20 {
        assert_eq!(queue.take(), Some("a"));
        queue.failed("a");
        assert_eq!(queue.take(), None);
        let due = queue.due().expect("it is due some time");
        waits.push(due - Instant::now());
        tokio::time::sleep_until(due).await;
    }
    assert!(waits[0] <= Duration::from_millis(10) && waits[19] >= Duration::from_secs(30), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= Duration::from_secs(60)), "{waits:?}");
    assert_eq!(queue.take(), Some("a"));
    queue.done("a");
    queue.add("a");
    assert_eq!(queue.take(), Some("a"));
    queue.failed("a");
    assert!(queue.due().expect("due") - Instant::now() <= Duration::from_millis(10), "it begins anew");
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_a_failure_to_be_over() {
    let mut queue = Queue::new(meter());
    queue.add_at("a", Instant::now() + Duration::from_secs(9));
    queue.add_at("a", Instant::now() + Duration::from_secs(5));
    queue.add_at("a", Instant::now() + Duration::from_secs(7));
    assert_eq!(queue.due(), Some(Instant::now() + Duration::from_secs(5)));
    queue.add("a");
    assert_eq!(all(&mut queue), ["a"]);
    assert_eq!(queue.due(), None);
}

#[tokio::test(start_paused = true)]
async fn a_queue_counts_what_waits_what_was_tried_again_and_how_long_it_took() {
    let metrics = Metrics::new();
    let mut queue = Queue::new(metrics.queue("test"));
    let check = |what: &str, want: &[&str]| {
        let text = metrics.text(Format::Prometheus);
        for want in want {
            let line = want.replacen(' ', "{name=\"test\"} ", 1);
            assert!(text.lines().any(|found| found == line), "{what}: no {line} in\n{text}");
        }
    };
    let pass = async |seconds| tokio::time::advance(Duration::from_secs(seconds)).await;
    check("at first", &["workqueue_depth 0", "workqueue_adds_total 0", "workqueue_retries_total 0"]);
    ["a", "a", "b"].into_iter().for_each(|key| queue.add(key));
    check("two wait", &["workqueue_depth 2", "workqueue_adds_total 2"]);
    pass(3).await;
    assert_eq!(queue.take(), Some("a"));
    check("one is worked on", &["workqueue_depth 1", "workqueue_queue_duration_seconds_sum 3.0"]);
    queue.add("a");
    pass(5).await;
    check("it wants to be looked at again, later", &["workqueue_depth 1", "workqueue_adds_total 2"]);
    queue.done("a");
    check(
        "it waits again",
        &["workqueue_depth 2", "workqueue_adds_total 3", "workqueue_work_duration_seconds_sum 5.0"],
    );
    assert_eq!(queue.take(), Some("b"));
    queue.failed("b");
    check("one failed", &["workqueue_depth 1", "workqueue_retries_total 1", "workqueue_adds_total 3"]);
    pass(1).await;
    assert_eq!(all(&mut queue), ["a", "b"]);
    check(
        "it was tried again",
        &["workqueue_depth 0", "workqueue_adds_total 4", "workqueue_queue_duration_seconds_count 4"],
    );
    ["c", "d"].into_iter().for_each(|key| queue.add(key));
    drop(queue);
    check("nobody leads any more", &["workqueue_depth 0"]);
}
