use super::*;

fn pools(ranges: &[&str], prefix_v4: u8, prefix_v6: u8) -> Vec<Pool> {
    let cluster = ranges.iter().map(|text| text.parse().expect("a range")).collect();
    Pool::all(&NodeRanges { cluster, prefix_v4, prefix_v6 })
}

/// What is drawn from a pool after some ranges were taken and others freed.
#[track_caller]
fn check(range: &str, prefix: u8, taken: &[&str], freed: &[&str], want: &[&str]) {
    let mut pool = pools(&[range], prefix, prefix).remove(0);
    taken.iter().for_each(|text| pool.take(&text.parse().expect("a range")));
    freed.iter().for_each(|text| pool.free(&text.parse().expect("a range")));
    let drawn: Vec<String> = want.iter().map_while(|_| pool.draw()).map(|range| range.to_string()).collect();
    assert_eq!(drawn, want, "{range} without {taken:?}");
}

#[test]
fn parts_come_in_order_and_none_twice() {
    check("10.244.0.0/16", 24, &[], &[], &["10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24"]);
    check("fd00:244::/48", 64, &[], &[], &["fd00:244::/64", "fd00:244:0:1::/64"]);
    check("10.244.0.0/16", 24, &["10.244.0.0/24", "10.244.1.128/25"], &[], &["10.244.2.0/24"]);
    check("10.244.0.0/16", 24, &["10.244.0.0/20"], &["10.244.0.0/24"], &["10.244.0.0/24", "10.244.16.0/24"]);
    check("10.244.0.0/16", 24, &["192.0.2.0/24", "fd00::/64"], &[], &["10.244.0.0/24"]);
    check("0.0.0.0/0", 0, &[], &[], &["0.0.0.0/0"]);
}

#[test]
fn a_pool_ends() {
    let mut pool = pools(&["192.0.2.0/30"], 31, 64).remove(0);
    let all: Vec<_> = std::iter::from_fn(|| pool.draw()).map(|range| range.to_string()).collect();
    assert_eq!(all, ["192.0.2.0/31", "192.0.2.2/31"]);
    let mut covered = pools(&["192.0.2.0/30"], 31, 64).remove(0);
    covered.take(&"192.0.0.0/8".parse().expect("a range"));
    assert_eq!(covered.draw(), None);
}

#[test]
fn a_part_that_was_just_freed_is_the_last_to_be_given_again() {
    let mut pool = pools(&["192.0.2.0/24"], 26, 64).remove(0);
    let first = pool.draw().expect("a part");
    pool.free(&first);
    let then: Vec<_> = std::iter::from_fn(|| pool.draw()).collect();
    assert_eq!((then.len(), then.last()), (4, Some(&first)));
}

#[test]
fn a_range_too_small_for_one_part_is_no_pool() {
    assert!(pools(&["192.0.2.0/28"], 24, 64).is_empty());
}
