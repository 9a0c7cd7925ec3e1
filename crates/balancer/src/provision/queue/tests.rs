use super::*;

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_again_and_again_waits_once() {
    let (mut queue, key) = (Queue::default(), Arc::new(Key::new("default", "web")));
    for _ in 0..2 {
        (0..1000).for_each(|_| queue.look_later(key.clone(), Duration::from_secs(30)));
        assert_eq!(queue.flights.len(), 1);
        assert!(queue.next().await.is_none());
        assert_eq!(queue.pop(|_| None), Some(key.clone()));
        assert_eq!(queue.pop(|_| None), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shorter_wait_takes_the_place_of_a_longer_one() {
    let seconds = Duration::from_secs;
    // Waits one after the other, and when it is looked at again.
    for (waits, expected) in [(&[30, 1][..], &[1][..]), (&[1, 30], &[1]), (&[30, 20, 10, 20], &[10]), (&[5], &[5])] {
        let (mut queue, key, begun) = (Queue::default(), Arc::new(Key::new("default", "web")), Instant::now());
        waits.iter().for_each(|wait| queue.look_later(key.clone(), seconds(*wait)));
        let mut looked = Vec::new();
        while !queue.flights.is_empty() {
            assert!(queue.next().await.is_none());
            looked.extend(queue.pop(|_| None).map(|_| begun.elapsed().as_secs()));
        }
        assert_eq!(looked, expected, "{waits:?}");
    }
}
