//! What happens when something is wrong: the API away, a Node excluded, a link down, an address somebody has.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{Lab, UNHURRIED, lab, lab_of, shell};

const V4: &str = "192.0.2.100";
const V6: &str = "fd00::64";

/// Three Nodes.
fn unhurried(test: &str, addresses: &[&'static str]) -> Option<Lab> {
    lab_of(3, UNHURRIED, test, addresses)
}

/// That an address is answered for by this Node and no other, for so long. On a busy machine an answer may not come in time.
#[track_caller]
fn stays(lab: &Lab, address: &str, owner: usize, time: Duration) {
    let start = Instant::now();
    let expected = BTreeSet::from([u8::try_from(owner).unwrap() + 1]);
    while start.elapsed() < time {
        let answers = (0..3).map(|_| lab.answers(address)).find(|answers| !answers.is_empty());
        assert_eq!(answers.as_ref(), Some(&expected), "after {:?}\n{}", start.elapsed(), lab.logs());
    }
}

#[test]
fn while_the_api_is_away_the_owner_goes_on_and_nobody_begins() {
    let test = "while_the_api_is_away_the_owner_goes_on_and_nobody_begins";
    let Some(mut lab) = unhurried(test, &[V4]) else { return };
    let owner = lab.owner(V4);
    lab.api.go_away();
    stays(&lab, V4, owner, UNHURRIED.limit * 2);
    // Its end is not seen by anybody.
    lab.nodes[owner].process.as_mut().unwrap().kill();
    std::thread::sleep(UNHURRIED.limit * 2);
    assert_eq!(lab.answers(V4), BTreeSet::new(), "{}", lab.logs());
    lab.api.come_back();
    assert_ne!(lab.owner(V4), owner);
    lab.start(owner);
    lab.wait_for_owner(V4, owner);
    // Back after a while, the API changes nothing.
    lab.api.go_away();
    std::thread::sleep(UNHURRIED.limit + UNHURRIED.interval);
    lab.api.come_back();
    stays(&lab, V4, owner, UNHURRIED.limit + UNHURRIED.interval);
}

#[test]
fn a_node_that_alone_lost_the_api_gives_way() {
    let Some(lab) = unhurried("a_node_that_alone_lost_the_api_gives_way", &[V4]) else { return };
    let owner = lab.owner(V4);
    let cut = "nft add table inet cut; nft add chain inet cut out '{ type filter hook output priority 0 ; }'; \
               nft add rule inet cut out tcp dport 8080 drop";
    shell(&lab.nodes[owner].machine, cut);
    lab.wait("another one has it", || lab.owner(V4) != owner);
    shell(&lab.nodes[owner].machine, "nft delete table inet cut");
    lab.wait_for_owner(V4, owner);
    stays(&lab, V4, owner, Duration::from_secs(1));
}

#[test]
fn an_excluded_node_hands_its_addresses_over() {
    let Some(lab) = lab("an_excluded_node_hands_its_addresses_over", &[V4, V6]) else { return };
    let (first, other) = (lab.owner(V4), lab.owner(V6));
    let label = |value: serde_json::Value| json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": value}}});
    let name = &lab.nodes[first].name;
    lab.api.patch_node(name, label("".into()));
    lab.wait("another one has it", || lab.owner(V4) != first);
    // What another Node had stays where it was.
    if other != first {
        assert_eq!(lab.owner(V6), other);
    }
    lab.api.patch_node(name, label(json!(null)));
    lab.wait_for_owner(V4, first);
}

#[test]
fn a_link_that_goes_down_takes_its_addresses_elsewhere() {
    let test = "a_link_that_goes_down_takes_its_addresses_elsewhere";
    let Some(lab) = unhurried(test, &[V4, V6]) else { return };
    let owner = lab.owner(V4);
    let port = format!("port{}", owner + 1);
    shell(&lab.switch, &format!("ip link set {port} down"));
    lab.wait("another one has it", || lab.owner(V4) != owner);
    shell(&lab.switch, &format!("ip link set {port} up"));
    lab.wait_for_owner(V4, owner);
    stays(&lab, V4, owner, Duration::from_secs(2));
}

#[test]
fn an_address_somebody_has_is_not_announced() {
    let Some(lab) = lab("an_address_somebody_has_is_not_announced", &["192.0.2.50", "fd00::50", V4]) else { return };
    // The client has it, and hears of nobody else.
    lab.owner(V4);
    lab.wait("an Event", || lab.api.events("AddressTaken").len() >= 2);
    let events = lab.api.events("AddressTaken");
    let by = "a machine with the hardware address 02:00:00:00:00:50 has it";
    assert!(events.contains(&format!("192.0.2.50 is not announced: {by}")), "{events:?}");
    assert!(events.contains(&format!("fd00::50 is not announced: {by}")), "{events:?}");
    for node in &lab.nodes {
        assert!(!shell(&node.machine, "ip route get 192.0.2.50").starts_with("local"));
    }
}

#[test]
fn this_machines_servers_are_not_at_the_address_and_flushed_rules_come_back() {
    let test = "this_machines_servers_are_not_at_the_address_and_flushed_rules_come_back";
    let Some(lab) = lab(test, &[V4]) else { return };
    let owner = lab.owner(V4);
    let machine = &lab.nodes[owner].machine;
    // Port 80 answers everywhere, 22 only at the machine's own address.
    let listener = machine.run(|| std::net::TcpListener::bind("0.0.0.0:22").unwrap()).unwrap();
    let try_it = |address: &str| {
        let to = format!("{address}:22").parse().unwrap();
        lab.client.run(|| std::net::TcpStream::connect_timeout(&to, Duration::from_secs(5)).is_ok()).unwrap()
    };
    assert!(try_it(&format!("192.0.2.{}", owner + 1)));
    assert!(!try_it(V4));
    shell(machine, "nft flush ruleset");
    lab.wait("the tables are there again", || shell(machine, "nft list tables").contains("arp fairlead-lb"));
    assert!(!try_it(V4));
    drop(listener);
}

/// A process that owns the table of the guard, so that no other process may change it; its end
/// takes the table away.
struct TableOwner(std::process::Child);

impl TableOwner {
    fn new(machine: &fairlead_kernel::netns::Namespace) -> TableOwner {
        let mut command = std::process::Command::new("nft");
        command.arg("-i").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        let mut child = machine.run(|| command.spawn()).unwrap().unwrap();
        let line = b"delete table inet fairlead-lb; add table inet fairlead-lb { flags owner; }\n";
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), line).unwrap();
        TableOwner(child)
    }
}

impl Drop for TableOwner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn an_address_that_cannot_be_guarded_is_given_up() {
    let test = "an_address_that_cannot_be_guarded_is_given_up";
    let Some(lab) = unhurried(test, &[V4]) else { return };
    let first = lab.owner(V4);
    let owned = TableOwner::new(&lab.nodes[first].machine);
    lab.wait("another one has it", || lab.owner(V4) != first);
    lab.wait("an Event", || !lab.api.events("AddressUnguarded").is_empty());
    let event = lab.api.events("AddressUnguarded").remove(0);
    let expected = format!("{V4} is not announced by node \"n{}\": its kernel does not take the rules", first + 1);
    assert!(event.starts_with(&expected), "{event}");
    // No Node can guard the address: none answers.
    let others: Vec<TableOwner> =
        (0..3).filter(|number| *number != first).map(|number| TableOwner::new(&lab.nodes[number].machine)).collect();
    lab.wait("no Node has it", || (0..3).all(|_| lab.answers(V4).is_empty()));
    drop(others);
    lab.wait("another one has it again", || lab.owner(V4) != first);
    drop(owned);
    lab.wait_for_owner(V4, first);
}

#[test]
fn a_flood_of_frames_costs_a_bounded_share_of_a_core_and_takes_no_address_away() {
    let test = "a_flood_of_frames_costs_a_bounded_share_of_a_core_and_takes_no_address_away";
    let Some(lab) = unhurried(test, &[V4]) else { return };
    let owner = lab.owner(V4);
    let worked = || lab.nodes[owner].process.as_ref().unwrap().worked();
    let time = Duration::from_secs(2);
    let before = worked();
    let sent = lab.flood(V4, time);
    let spent = worked() - before;
    assert!(sent > 20_000, "{sent} frames are no flood");
    assert!(spent < time / 5, "{spent:?} of processors for {sent} frames in {time:?}");
    // The owner is who it was, and each address has its one Event.
    lab.wait_for_owner(V4, owner);
    assert_eq!(lab.api.events("AddressContested").len(), 1);
    assert!(lab.api.events("AddressTaken").is_empty());
}

#[test]
fn nothing_is_written_as_long_as_there_is_no_address() {
    let Some(lab) = lab("nothing_is_written_as_long_as_there_is_no_address", &[]) else { return };
    let machines = || lab.nodes.iter().map(|node| &node.machine);
    lab.wait("all Nodes run", || machines().all(|machine| shell(machine, "nft list tables").contains("fairlead-lb")));
    std::thread::sleep(Duration::from_secs(1));
    assert!(lab.api.leases().is_empty(), "{:?}", lab.api.leases());
}

#[test]
fn what_a_killed_node_left_can_be_cleaned_up() {
    let Some(mut lab) = lab("what_a_killed_node_left_can_be_cleaned_up", &[V4]) else { return };
    let owner = lab.owner(V4);
    lab.nodes[owner].process.as_mut().unwrap().kill();
    let cleanup = || lab.nodes[owner].machine.run(fairlead_balancer::announce::cleanup).unwrap().unwrap();
    let tables = ["table inet fairlead-lb of nftables", "table arp fairlead-lb of nftables"];
    assert_eq!(cleanup(), [&[format!("local route {V4}").as_str()], &tables[..]].concat());
    assert!(cleanup().is_empty());
    assert_eq!(shell(&lab.nodes[owner].machine, "nft list ruleset"), "");
}
