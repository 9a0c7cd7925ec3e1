use std::collections::BTreeSet;

use super::client::Client;
use super::{EtcdOptions, progress_works};

#[tokio::test]
async fn servers_begin_at_different_members() {
    let endpoints: Vec<String> = (1..=3).map(|port| format!("http://127.0.0.1:{port}")).collect();
    let options = EtcdOptions { endpoints, ..EtcdOptions::default() };
    let first = |_| Client::new(&options).expect("good endpoints").selected().member;
    assert_eq!((0..200).map(first).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2]));
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
