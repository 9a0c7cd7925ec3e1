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
