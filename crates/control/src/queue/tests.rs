use super::*;

fn all(queue: &mut Queue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.take()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_key_is_in_the_queue_once() {
    let mut queue = Queue::new();
    ["a", "b", "a"].into_iter().for_each(|key| queue.add(key));
    assert_eq!(all(&mut queue), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_it_is_worked_on_is_worked_on_again_but_not_at_the_same_time() {
    let mut queue = Queue::new();
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
    let mut queue = Queue::new();
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
    let mut queue = Queue::new();
    queue.add_at("a", Instant::now() + Duration::from_secs(9));
    queue.add_at("a", Instant::now() + Duration::from_secs(5));
    queue.add_at("a", Instant::now() + Duration::from_secs(7));
    assert_eq!(queue.due(), Some(Instant::now() + Duration::from_secs(5)));
    queue.add("a");
    assert_eq!(all(&mut queue), ["a"]);
    assert_eq!(queue.due(), None);
}
