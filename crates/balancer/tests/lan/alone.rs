//! A Node that is alone writes little, and is not taken for dead by the one that comes.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::lab::{Lab, UNHURRIED, lab_of};

const ADDRESSES: [&str; 6] = ["192.0.2.101", "192.0.2.102", "192.0.2.103", "192.0.2.104", "192.0.2.105", "192.0.2.106"];

/// How many times the Lease of a Node was renewed in so long.
fn beats(lab: &Lab, node: &str, time: Duration) -> usize {
    let (start, mut seen) = (Instant::now(), BTreeSet::new());
    while start.elapsed() < time {
        seen.extend(lab.api.beat(node).map(|(stamp, _)| stamp));
        sleep(Duration::from_millis(20));
    }
    seen.len() - 1
}

#[test]
fn a_node_that_is_alone_beats_slowly_and_another_may_come() {
    let test = "a_node_that_is_alone_beats_slowly_and_another_may_come";
    let Some(mut lab) = lab_of(1, UNHURRIED, test, &ADDRESSES) else { return };
    ADDRESSES.iter().for_each(|address| lab.wait_for_owner(address, 0));
    lab.wait("it says so", || lab.api.beat("n1").is_some_and(|(_, lasts)| lasts == Some(24)));
    // As usual it would be ten.
    lab.wait("it beats slowly", || beats(&lab, "n1", Duration::from_secs(4)) <= 1);
    // Somebody comes: the first beats as usual from then on.
    lab.add_node();
    lab.wait("it is awake", || lab.api.beat("n1").is_some_and(|(_, lasts)| lasts.is_none()));
    // Slow ones would take more than a minute.
    let mut often = 0;
    lab.wait("it beats as usual", || {
        often += beats(&lab, "n1", Duration::from_secs(1));
        often >= 4
    });
    lab.start(1);
    lab.wait("the new one beats", || lab.api.beat("n2").is_some());
    let owners: Vec<usize> = ADDRESSES.iter().map(|address| settled(&lab, address)).collect();
    // What stayed where it was nobody else ever thought to have.
    let log = lab.nodes[1].process.as_ref().unwrap().log();
    for (address, owner) in ADDRESSES.iter().zip(&owners) {
        let had = log.contains(&format!("{address}: Ownership {{ owner: Some(\"n2\")"));
        assert_eq!(had, *owner == 1, "{address} is n{}'s\n{}", owner + 1, lab.logs());
    }
    assert!(owners.contains(&0) && owners.contains(&1), "{owners:?} says nothing");
    // And the usual time is enough to see that one is gone.
    lab.nodes[0].process.as_mut().unwrap().kill();
    let (start, first) = (Instant::now(), ADDRESSES[owners.iter().position(|owner| *owner == 0).unwrap()]);
    lab.wait_for_owner(first, 1);
    assert!(start.elapsed() < Duration::from_secs(15), "after {:?}\n{}", start.elapsed(), lab.logs());
}

/// The owner of an address that is the same for a while.
fn settled(lab: &Lab, address: &str) -> usize {
    let mut owner = lab.owner(address);
    lab.wait("it is the same for a while", || {
        let before = std::mem::replace(&mut owner, lab.owner(address));
        sleep(Duration::from_millis(500));
        owner == before && lab.owner(address) == before
    });
    owner
}
