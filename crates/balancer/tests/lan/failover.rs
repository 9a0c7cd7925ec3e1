//! One Node answers for an address; when it is gone another does.

use std::time::{Duration, Instant};

use crate::lab::{PATIENCE, lab, shell};

const V4: &str = "192.0.2.100";
const V6: &str = "fd00::64";

#[test]
fn one_node_answers_for_an_address_and_serves_it() {
    let Some(lab) = lab("one_node_answers_for_an_address_and_serves_it", &[V4, V6]) else { return };
    for address in [V4, V6] {
        let owner = lab.owner(address);
        let name = lab.nodes[owner].name.clone();
        assert_eq!(lab.connect(address, Duration::from_secs(5)), Some(name), "{}", lab.logs());
        for (number, node) in lab.nodes.iter().enumerate() {
            let local = shell(&node.machine, &format!("ip route get {address}")).starts_with("local");
            assert_eq!(local, number == owner, "{address} on {}", node.name);
        }
    }
    lab.wait("an Event", || !lab.api.events("nodeAssigned").is_empty());
    let (messages, name) = (lab.api.events("nodeAssigned"), &lab.nodes[lab.owner(V4)].name);
    let expected = format!("announcing {V4} from node \"{name}\" with protocol \"layer2\"");
    assert!(messages.contains(&expected), "{messages:?}");
}

#[test]
fn another_node_takes_over_when_one_is_killed() {
    let test = "another_node_takes_over_when_one_is_killed";
    let Some(mut lab) = lab(test, &[V4]) else { return };
    let rounds = if fairlead_testkit::full() { 20 } else { 5 };
    let mut took = Vec::new();
    for _ in 0..rounds {
        let owner = lab.owner(V4);
        lab.connect(V4, Duration::from_secs(5)).unwrap();
        // Somewhere between two heartbeats.
        std::thread::sleep(Duration::from_millis(fastrand::u64(..400)));
        lab.nodes[owner].process.as_mut().unwrap().kill();
        let start = Instant::now();
        let next = loop {
            if let Some(name) = lab.connect(V4, Duration::from_millis(20)) {
                break name;
            }
            assert!(start.elapsed() < PATIENCE, "nobody takes over\n{}", lab.logs());
        };
        took.push(start.elapsed());
        assert_ne!(next, lab.nodes[owner].name);
        assert_ne!(lab.owner(V4), owner);
        lab.start(owner);
        lab.wait_for_owner(V4, owner);
    }
    took.sort();
    println!("from kill -9 to the first answer: p50 {:?}, max {:?} of {rounds}", took[rounds / 2], took[rounds - 1]);
}

#[test]
fn a_node_that_ends_in_order_hands_over_at_once() {
    let test = "a_node_that_ends_in_order_hands_over_at_once";
    let Some(mut lab) = lab(test, &[V4, V6]) else { return };
    let owner = lab.owner(V4);
    lab.owner(V6);
    lab.connect(V4, Duration::from_secs(5)).unwrap();
    let mut node = lab.nodes[owner].process.take().unwrap();
    let name = lab.nodes[owner].name.clone();
    let ending = std::thread::spawn(move || {
        node.stop();
        node
    });
    println!("handed over: longest time without an answer {:?}", lab.longest_gap(V4, |now| *now != name));
    let node = ending.join().unwrap();
    // Nothing of it is left.
    assert!(!shell(&lab.nodes[owner].machine, &format!("ip route get {V4}")).starts_with("local"), "{}", node.log());
    assert_ne!(lab.owner(V4), owner);
    // It comes back, and takes what is its own.
    lab.start(owner);
    println!("taken back: longest time without an answer {:?}", lab.longest_gap(V4, |now| *now == name));
    lab.wait_for_owner(V4, owner);
}
