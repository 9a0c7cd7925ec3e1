use fairlead_api::{Failure as ApiFailure, kinds};
use prometheus_client::registry::Registry;

use super::*;
use crate::controller::WorkQueueMetrics;

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(Settings::new("test"), QueueMetrics::none())
}

fn ready(queue: &mut WorkQueue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.next_ready()).collect()
}

fn unavailable() -> Outcome {
    Outcome::failed(Error::Unavailable { message: "away".to_owned(), retry_after: None })
}

fn written(versions: &[(&str, Option<u64>)]) -> Outcome {
    let version = |(name, revision): &(&str, Option<u64>)| pod(name, *revision);
    Outcome { written: versions.iter().map(version).collect(), ..Outcome::default() }
}

fn pod(name: &str, revision: Option<u64>) -> ObjectVersion {
    ObjectVersion { kind: &kinds::POD, key: Key::new("default", name), revision }
}

/// The time until the next delayed key is due.
fn delay(queue: &WorkQueue<&'static str>) -> Option<Duration> {
    queue.delayed.first().map(|(at, _)| *at - Instant::now())
}

#[tokio::test(start_paused = true)]
async fn a_key_is_in_the_queue_once() {
    let mut queue = queue();
    for key in ["a", "b", "a"] {
        queue.add(key);
    }
    assert_eq!(ready(&mut queue), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changes_while_in_progress_is_ready_again_when_the_action_has_ended() {
    let mut queue = queue();
    queue.add("a");
    assert_eq!(queue.next_ready(), Some("a"));
    queue.add("a");
    assert_eq!(queue.next_ready(), None);
    queue.finish("a", &Outcome::unchanged());
    assert_eq!(ready(&mut queue), ["a"]);
    queue.finish("a", &Outcome::unchanged());
    assert!(queue.items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_delays_until_a_success() {
    let mut queue = queue();
    queue.add("a");
    let mut delays = Vec::new();
    for _ in 0..20 {
        assert_eq!(queue.next_ready(), Some("a"));
        queue.finish("a", &unavailable());
        assert_eq!(queue.next_ready(), None);
        delays.push(delay(&queue).expect("a retry is planned"));
        assert!(queue.wait().await.is_none(), "the retry is due");
    }
    assert!(delays[0] <= Duration::from_millis(10) && delays[19] >= Duration::from_secs(30), "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(60)), "{delays:?}");
    assert_eq!(queue.next_ready(), Some("a"));
    queue.finish("a", &Outcome::unchanged());
    queue.add("a");
    assert_eq!(queue.next_ready(), Some("a"));
    queue.finish("a", &unavailable());
    assert!(delay(&queue).expect("a retry is planned") <= Duration::from_millis(10), "the delays begin anew");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_a_delay_gets_it() {
    let mut queue = queue();
    queue.add("a");
    queue.next_ready();
    let retry_after = Some(Duration::from_secs(7));
    queue.finish("a", &Outcome::failed(Error::Unavailable { message: "busy".to_owned(), retry_after }));
    assert_eq!(delay(&queue), Some(Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_being_deleted_ends_the_work() {
    let mut queue = queue();
    queue.add("a");
    queue.next_ready();
    let mut failure = ApiFailure::new(403, "Forbidden", "being terminated");
    let details = r#"{"causes": [{"reason": "NamespaceTerminating"}]}"#;
    failure.details = Some(serde_json::from_str(details).expect("JSON"));
    queue.finish("a", &Outcome::failed(Error::Forbidden(failure)));
    assert!(queue.items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_due_at_the_earliest_of_its_times_and_ready_with_a_change() {
    let mut queue = queue();
    for seconds in [9, 5, 7] {
        queue.add_at("a", Instant::now() + Duration::from_secs(seconds));
    }
    assert_eq!(delay(&queue), Some(Duration::from_secs(5)));
    queue.add("a");
    assert_eq!(ready(&mut queue), ["a"]);
    assert_eq!(delay(&queue), None);
    // A delay that is asked for while the key is in progress counts afterwards.
    queue.add_at("a", Instant::now() + Duration::from_secs(3));
    queue.finish("a", &Outcome { requeue: Requeue::At(Instant::now() + Duration::from_secs(4)), ..Outcome::default() });
    assert_eq!(delay(&queue), Some(Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_in_progress_until_the_cache_shows_all_its_writes() {
    let mut queue = queue();
    queue.add("a");
    queue.next_ready();
    queue.start("a", async { written(&[("one", Some(4)), ("two", Some(6)), ("three", None)]) });
    queue.add("a");
    assert!(queue.wait().await.is_some());
    let shows = |revision: u64, deleted: bool| {
        move |version: &ObjectVersion| version.revision.map_or(deleted, |written| written <= revision)
    };
    queue.confirm_writes(shows(5, true));
    assert_eq!(queue.next_ready(), None);
    queue.confirm_writes(shows(6, false));
    assert_eq!(queue.next_ready(), None);
    queue.confirm_writes(shows(6, true));
    assert_eq!(ready(&mut queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn own_writes_do_not_add_their_key_and_writes_of_others_do() {
    for (heard, again) in [
        (vec![("one", Some(4))], false),
        (vec![("one", Some(4)), ("gone", None)], false),
        // The action was decided before version 3 was known.
        (vec![("one", Some(3)), ("one", Some(4))], true),
        (vec![("one", Some(5))], true),
        (vec![("other", Some(4))], true),
        (vec![("gone", Some(4))], true),
    ] {
        for early in [true, false] {
            let mut queue = queue();
            queue.add("a");
            queue.next_ready();
            queue.start("a", async { written(&[("one", Some(4)), ("gone", None)]) });
            if !early {
                assert!(queue.wait().await.is_some());
            }
            for (name, revision) in &heard {
                queue.add_for_version("a", pod(name, *revision));
            }
            if early {
                assert!(queue.wait().await.is_some());
            }
            queue.confirm_writes(|_| true);
            assert_eq!(ready(&mut queue), if again { vec!["a"] } else { vec![] }, "{heard:?} early: {early}");
        }
    }
    let mut queue = queue();
    queue.add_for_version("a", pod("one", Some(4)));
    assert_eq!(ready(&mut queue), ["a"], "a key that is not in progress has written nothing");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_after_its_writes_are_visible() {
    let mut queue = queue();
    queue.add("a");
    queue.next_ready();
    queue.finish("a", &Outcome { written: vec![pod("one", Some(4))], ..unavailable() });
    assert_eq!(delay(&queue), None);
    queue.confirm_writes(|_| true);
    assert!(delay(&queue).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_never_becomes_visible_holds_its_key_for_five_minutes() {
    let mut queue = queue();
    queue.add("a");
    queue.next_ready();
    queue.finish("a", &written(&[("one", None)]));
    let start = Instant::now();
    assert!(queue.wait().await.is_none());
    assert_eq!((start.elapsed().as_secs(), ready(&mut queue)), (300, vec!["a"]));
}

#[tokio::test(start_paused = true)]
async fn no_more_actions_run_than_the_concurrency_allows() {
    let settings = Settings { concurrency: 2, ..Settings::new("test") };
    let mut queue = WorkQueue::new(settings, QueueMetrics::none());
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    queue.add_at("d", Instant::now());
    while let Some(key) = queue.next_ready() {
        queue.start(key, async { Outcome { requeue: Requeue::OnChange, ..Outcome::default() } });
    }
    assert_eq!(queue.actions.len(), 2);
    let (ended, _) = queue.wait().await.expect("an action ends before the delayed key is handed out");
    assert!(["a", "b"].contains(&ended));
    assert_eq!(queue.next_ready(), Some("c"));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_an_action_reaches_the_controller() {
    for spawn_actions in [false, true] {
        let settings = Settings { spawn_actions, ..Settings::new("test") };
        let waiting = tokio::spawn(async move {
            let mut queue = WorkQueue::new(settings, QueueMetrics::none());
            queue.add("a");
            let key = queue.next_ready().expect("ready");
            queue.start(key, async { panic!("as expected") });
            queue.wait().await
        });
        let error = waiting.await.expect_err("the action panics");
        assert!(error.is_panic(), "spawned: {spawn_actions}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_metrics_count_waiting_keys_retries_and_durations() {
    let mut registry = Registry::default();
    let metrics = WorkQueueMetrics::register(&mut registry);
    let mut queue = WorkQueue::new(Settings::new("test"), QueueMetrics::new(metrics.queue("test")));
    let check = |when: &str, lines: &[&str]| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for line in lines {
            let line = line.replacen(' ', "{name=\"test\"} ", 1);
            assert!(text.lines().any(|found| found == line), "{when}: no {line} in\n{text}");
        }
    };
    let pass = async |seconds| tokio::time::advance(Duration::from_secs(seconds)).await;
    check("empty", &["workqueue_depth 0", "workqueue_adds_total 0", "workqueue_retries_total 0"]);
    for key in ["a", "a", "b"] {
        queue.add(key);
    }
    check("two keys wait", &["workqueue_depth 2", "workqueue_adds_total 2"]);
    pass(3).await;
    assert_eq!(queue.next_ready(), Some("a"));
    check("one is in progress", &["workqueue_depth 1", "workqueue_queue_duration_seconds_sum 3.0"]);
    queue.add("a");
    pass(5).await;
    check("it has changed", &["workqueue_depth 1", "workqueue_adds_total 2"]);
    queue.finish("a", &Outcome::unchanged());
    let ended = ["workqueue_depth 2", "workqueue_adds_total 3", "workqueue_work_duration_seconds_sum 5.0"];
    check("it waits again", &ended);
    assert_eq!(queue.next_ready(), Some("b"));
    queue.finish("b", &unavailable());
    check("the other failed", &["workqueue_depth 1", "workqueue_retries_total 1", "workqueue_adds_total 3"]);
    pass(1).await;
    assert_eq!(ready(&mut queue), ["a", "b"]);
    check("both are in progress", &["workqueue_depth 0", "workqueue_adds_total 4"]);
    for key in ["c", "d"] {
        queue.add(key);
    }
    drop(queue);
    check("the controller has ended", &["workqueue_depth 0"]);
}
