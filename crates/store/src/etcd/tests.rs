use std::collections::BTreeSet;

use futures_util::FutureExt;

use super::client::{Client, Repeat};
use super::{EtcdOptions, progress_works};

#[tokio::test]
async fn servers_begin_at_different_members() {
    let endpoints: Vec<String> = (1..=3).map(|port| format!("http://127.0.0.1:{port}")).collect();
    let options = EtcdOptions { endpoints, ..EtcdOptions::default() };
    let first = |_| Client::new(&options).expect("good endpoints").selected().member;
    assert_eq!((0..200).map(first).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
}

#[tokio::test]
async fn requests_are_lost_only_when_another_member_was_selected() {
    let endpoints: Vec<String> = (1..=2).map(|port| format!("http://127.0.0.1:{port}")).collect();
    let client = Client::new(&EtcdOptions { endpoints, ..EtcdOptions::default() }).expect("good endpoints");
    let sent = client.selected();
    client.select(sent.member);
    assert_eq!(client.lost(sent, Repeat::Always).now_or_never(), None);
    client.select(1 - sent.member);
    assert_eq!(client.lost(sent, Repeat::Always).now_or_never(), Some(()));
    // A member that was left because of a failure may still answer other requests.
    let sent = client.selected();
    client.leave(sent.member, &tonic::Status::unavailable("refused"));
    assert_eq!(client.lost(sent, Repeat::Always).now_or_never(), None);
}

#[test]
fn progress_is_asked_only_of_members_that_answer_in_order() {
    let check = |version, expect| assert_eq!(progress_works(version), expect, "{version}");
    check("3.4.23", false);
    check("3.4.31", true);
    check("3.5.12", false);
    check("3.5.13", true);
    check("3.6.0", true);
    check("3.6.0-rc.1", true);
    check("4.0.0", true);
    check("3.3.99", false);
    check("", false);
}
