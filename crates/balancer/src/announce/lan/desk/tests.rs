use std::collections::BTreeMap;
use std::net::IpAddr;

use super::super::Post;
use super::*;

/// Orders to hold one address, by whose last number they are known.
fn hold(last: u8, again: bool) -> Orders {
    let post = Post { links: Vec::new(), probe: false };
    Orders { posts: Some(BTreeMap::from([(IpAddr::from([192, 0, 2, last]), post)])), again, ..Orders::default() }
}

/// What is taken after these were put: the address, and whether to announce again.
fn check(put: &[(u8, bool)], expected: Option<(u8, bool)>) {
    let desk = Desk::default();
    put.iter().for_each(|(last, again)| desk.put(hold(*last, *again)));
    let taken = desk.take();
    let address = expected.map(|(last, _)| IpAddr::from([192, 0, 2, last]));
    let posts = taken.hold.as_ref().and_then(|orders| orders.posts.as_ref());
    assert_eq!(posts.map(|posts| posts.keys().copied().collect::<Vec<_>>()), address.map(|one| vec![one]), "{put:?}");
    assert_eq!(taken.hold.map(|orders| orders.again), expected.map(|(_, again)| again), "{put:?}");
    assert!(desk.take().hold.is_none(), "{put:?}: taken once");
}

#[test]
fn the_newest_orders_count_and_nothing_is_kept_of_earlier_ones_but_that_all_is_to_be_announced() {
    check(&[], None);
    check(&[(1, false)], Some((1, false)));
    check(&[(1, false), (2, false), (3, false)], Some((3, false)));
    check(&[(1, false), (2, true), (3, false)], Some((3, true)));
    check(&[(1, true), (2, false)], Some((2, true)));
}

#[test]
fn an_end_is_not_forgotten_whatever_is_ordered_behind_it() {
    let desk = Desk::default();
    desk.stop();
    desk.put(hold(1, false));
    assert!(desk.take().stop && desk.take().stop);
}
