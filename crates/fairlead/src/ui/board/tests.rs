use super::*;

#[tokio::test]
async fn who_has_little_patience_does_without_a_board_that_is_still_being_read() {
    let shared = Shared::new(Timestamp::now());
    assert!(!shared.listed(Duration::ZERO).await);
    shared.refresh(BTreeSet::new()).await;
    assert!(shared.listed(Duration::ZERO).await);
    // What Prometheus waits if it is not told otherwise.
    assert!(SHORT * 2 < Duration::from_secs(10));
}
