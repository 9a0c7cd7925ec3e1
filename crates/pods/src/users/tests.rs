//! Users of Pods: no two Pods have the same, and a Pod has the same again.

use super::{UserPool, UserRange};

#[test]
fn a_range_has_no_accounts_in_it() {
    let check = |text: &str, fine: bool| assert_eq!(text.parse::<UserRange>().is_ok(), fine, "{text}");
    check("65536-65536", true);
    check("1900000000-1900065535", true);
    check("4294967294-4294967294", true);
    for wrong in ["", "1000-2000", "65535-70000", "70000-69999", "70000", "70000-", "-1", "70000-4294967295", "a-b"] {
        check(wrong, false);
    }
}

#[test]
fn no_two_pods_have_the_same_user_until_one_has_gone() {
    let range: UserRange = "70000-70099".parse().expect("a range");
    let mut pool = UserPool::default();
    pool.keep(70_050);
    let mut users: Vec<u32> = (0..99).map(|pod| pool.take(range, &pod.to_string()).expect("one is left")).collect();
    assert_eq!(pool.take(range, "more"), None);
    users.push(70_050);
    users.sort_unstable();
    assert_eq!(users, (70_000..70_100).collect::<Vec<_>>());
    pool.release(70_007);
    assert_eq!(pool.take(range, "more"), Some(70_007));
}

#[test]
fn a_pod_has_the_same_user_again_if_it_is_free() {
    let range = UserRange::default();
    let take = || UserPool::default().take(range, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    assert!(take().is_some_and(|user| range.contains(user.into())));
    assert_eq!(take(), take());
}
