use std::sync::atomic::AtomicUsize;

use super::*;

/// A table of its own, and the number of slots that each client lost.
struct Fixture {
    table: SlotTable,
    lost: HashMap<IpAddr, Arc<AtomicUsize>>,
}

impl Fixture {
    fn new(total: u64, per_sender: u64, at_limit: AtLimit) -> Fixture {
        let table = SlotTable::new(Budget::new("test slots", Limits { total, per_sender }), at_limit);
        Fixture { table, lost: HashMap::new() }
    }

    fn admit(&mut self, address: &str) -> Result<Slot, Exceeded> {
        let address: IpAddr = address.parse().expect("an address");
        let lost = self.lost.entry(address).or_default().clone();
        self.table.admit(address, move || {
            lost.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn lost(&self, address: &str) -> usize {
        let address: IpAddr = address.parse().expect("an address");
        self.lost.get(&address).map_or(0, |lost| lost.load(Ordering::SeqCst))
    }
}

#[test]
fn the_largest_holder_makes_room_for_others() {
    for at_limit in [AtLimit::ReplaceIdlest, AtLimit::Refuse] {
        let mut fixture = Fixture::new(100, 100, at_limit);
        let _hoard: Vec<_> = (0..100).map(|_| fixture.admit("192.0.2.1").expect("room")).collect();
        let _others: Vec<_> = (0..40).map(|_| fixture.admit("192.0.2.2").expect("room is made")).collect();
        assert_eq!((fixture.lost("192.0.2.1"), fixture.lost("192.0.2.2")), (40, 0));
        assert_eq!(fixture.table.in_use(), 100);
    }
}

#[test]
fn a_client_at_its_limit_replaces_its_own_idlest_connection() {
    let mut fixture = Fixture::new(100, 3, AtLimit::ReplaceIdlest);
    let (first, other) = (fixture.admit("192.0.2.1"), fixture.admit("192.0.2.2"));
    let idle = fixture.admit("192.0.2.1").expect("room");
    let third = fixture.admit("192.0.2.1").expect("room");
    first.as_ref().expect("room").touch();
    let fourth = fixture.admit("192.0.2.1").expect("the idlest gives way");
    assert_eq!((fixture.lost("192.0.2.1"), fixture.lost("192.0.2.2")), (1, 0));
    // Dropping the slot that was taken back returns nothing twice.
    drop(idle);
    assert_eq!(fixture.table.in_use(), 4);
    drop((first, other, third, fourth));
    assert_eq!(fixture.table.in_use(), 0);
    assert!(fixture.table.shared.networks().entries.is_empty());
    assert!(fixture.table.shared.networks().by_size.is_empty());
}

#[test]
fn requests_above_a_clients_limit_are_refused() {
    let mut fixture = Fixture::new(100, 2, AtLimit::Refuse);
    let _held = (fixture.admit("192.0.2.1"), fixture.admit("192.0.2.1"));
    assert_eq!(fixture.admit("192.0.2.1").expect_err("two are in use"), Exceeded::Sender);
    // An address of IPv4 written as IPv6 is the same client.
    assert_eq!(fixture.admit("::ffff:192.0.2.1").expect_err("two are in use"), Exceeded::Sender);
    assert!(fixture.admit("192.0.2.2").is_ok());
    assert_eq!(fixture.table.shared.budget.report().refused_sender, 2);
}

#[test]
fn requests_of_equal_clients_are_refused_and_never_evicted() {
    let mut fixture = Fixture::new(10, 10, AtLimit::Refuse);
    let _one_each: Vec<_> = (1..=10).map(|last| fixture.admit(&format!("192.0.2.{last}")).expect("room")).collect();
    assert_eq!(fixture.admit("192.0.2.99").expect_err("all are in use"), Exceeded::Total);
    assert_eq!(fixture.table.shared.budget.report().evicted, 0);
}

#[test]
fn a_host_with_many_addresses_of_a_prefix_counts_once() {
    let mut fixture = Fixture::new(64, 64, AtLimit::ReplaceIdlest);
    let _spread: Vec<_> = (0..64).map(|last| fixture.admit(&format!("2001:db8::{last:x}")).expect("room")).collect();
    let _own: Vec<_> = (0..10).map(|_| fixture.admit("192.0.2.1").expect("room is made")).collect();
    // More addresses of the prefix take from their own, not from the other client.
    let _more: Vec<_> =
        (100..200).map(|last| fixture.admit(&format!("2001:db8::{last:x}")).expect("room is made")).collect();
    assert_eq!(fixture.lost("192.0.2.1"), 0);
}

#[test]
fn one_address_does_not_keep_out_others_of_its_prefix() {
    let mut fixture = Fixture::new(50, 50, AtLimit::Refuse);
    let _hoard: Vec<_> = (0..50).map(|_| fixture.admit("2001:db8::1").expect("room")).collect();
    let _others: Vec<_> =
        (2..20).map(|last| fixture.admit(&format!("2001:db8::{last:x}")).expect("room is made")).collect();
    assert_eq!(fixture.lost("2001:db8::1"), 18);
}

#[test]
fn a_table_without_slots_refuses() {
    for at_limit in [AtLimit::ReplaceIdlest, AtLimit::Refuse] {
        let mut fixture = Fixture::new(0, 10, at_limit);
        assert_eq!(fixture.admit("192.0.2.1").expect_err("there are none"), Exceeded::Total);
    }
}
