use super::*;

fn net(text: &str) -> IpNet {
    text.parse().expect("a range")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Takes `takes` times; after each, what stands in `frees` at that place is given back.
fn check(ranges: &[&str], frees: &[&[&str]], expected: &[&[&str]]) {
    let ranges: Vec<IpNet> = ranges.iter().map(|range| net(range)).collect();
    let mut pool = Pool::default();
    for (turn, wanted) in expected.iter().enumerate() {
        let taken = pool.take(&ranges).map(|taken| taken.iter().map(IpAddr::to_string).collect::<Vec<_>>());
        assert_eq!(taken.unwrap_or_default(), *wanted, "turn {turn}");
        let free: Vec<IpAddr> = frees.get(turn).unwrap_or(&&[][..]).iter().map(|text| ip(text)).collect();
        pool.release(&free);
    }
}

#[test]
fn each_pod_gets_the_next_of_every_range() {
    let expected: &[&[&str]] = &[&["10.0.0.2", "fd00::2"], &["10.0.0.3", "fd00::3"]];
    check(&["10.0.0.0/24", "fd00::/64"], &[], expected);
}

#[test]
fn an_address_given_back_comes_last() {
    let frees: &[&[&str]] = &[&["10.0.0.2"]];
    check(
        &["10.0.0.0/29"],
        frees,
        &[&["10.0.0.2"], &["10.0.0.3"], &["10.0.0.4"], &["10.0.0.5"], &["10.0.0.6"], &["10.0.0.2"], &[]],
    );
}

#[test]
fn a_range_too_small_has_none() {
    check(&["10.0.0.0/31"], &[], &[&[]]);
    check(&["10.0.0.0/30"], &[], &[&["10.0.0.2"], &[]]);
}

#[test]
fn nothing_is_lost_when_one_of_two_ranges_is_full() {
    let ranges = [net("10.0.0.0/30"), net("fd00::/127")];
    let mut pool = Pool::default();
    assert_eq!(pool.take(&ranges), Err(Full(ranges[1])));
    assert_eq!(pool.take(&ranges[..1]), Ok(vec![ip("10.0.0.2")]));
}

#[test]
fn a_new_runner_goes_on_where_the_last_one_was() {
    let ranges = [net("10.0.0.0/24")];
    let mut pool = Pool::default();
    pool.go_on_after(&[ip("10.0.0.9")], &ranges);
    pool.keep(&[ip("10.0.0.10")]);
    assert_eq!(pool.take(&ranges), Ok(vec![ip("10.0.0.11")]));
}
