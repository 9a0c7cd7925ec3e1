use super::*;

fn network(text: &str) -> Sender {
    Sender::from_address(text.parse().unwrap())
}

#[test]
fn one_sender_cannot_use_what_others_need() {
    let budget = Budget::new("connections", Limits { total: 10, per_sender: 4 });
    let greedy = network("192.0.2.1");
    let held: Vec<Permit> = (0..4).map(|_| budget.acquire(&greedy, 1).unwrap()).collect();
    assert_eq!(budget.acquire(&greedy, 1).unwrap_err(), Exceeded::Sender);
    let other = budget.acquire(&network("192.0.2.2"), 4).unwrap();
    assert_eq!(budget.in_use(), 8);
    assert_eq!(budget.acquire(&network("192.0.2.3"), 3).unwrap_err(), Exceeded::Total);
    drop((held, other));
    assert_eq!(budget.report().in_use, 0);
    assert_eq!(budget.report().senders, 0);
    assert_eq!(budget.acquire(&greedy, 4).unwrap().amount(), 4);
}

#[test]
fn ipv6_addresses_of_one_64_are_one_sender_and_mapped_ipv4_is_ipv4() {
    assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
    assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
    assert_eq!(network("2001:db8::1").to_string(), "2001:db8::/64");
}

#[test]
fn a_permit_that_cannot_grow_keeps_its_amount() {
    let budget = Budget::new("bytes", Limits { total: 100, per_sender: 60 });
    let mut permit = budget.acquire(&network("192.0.2.1"), 50).unwrap();
    assert_eq!(permit.resize(61), Err(Exceeded::Sender));
    assert_eq!((permit.amount(), budget.in_use()), (50, 50));
    permit.resize(60).unwrap();
    permit.resize(10).unwrap();
    assert_eq!((permit.amount(), budget.in_use(), budget.held_by(&network("192.0.2.1"))), (10, 10, 10));
    drop(permit);
    assert_eq!(budget.in_use(), 0);
}

#[test]
fn an_amount_beyond_u64_is_refused() {
    let budget = Budget::new("bytes", Limits::total(u64::MAX));
    let _held = budget.acquire_unattributed(u64::MAX).unwrap();
    assert_eq!(budget.acquire_unattributed(1).unwrap_err(), Exceeded::Total);
    assert_eq!(budget.acquire(&network("192.0.2.1"), u64::MAX).unwrap_err(), Exceeded::Total);
}

#[test]
fn threads_never_hold_more_than_the_total_and_return_all() {
    let budget = Budget::new("bytes", Limits { total: 50, per_sender: 20 });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let budget = budget.clone();
            scope.spawn(move || {
                let sender = network(&format!("192.0.2.{}", thread % 2));
                for round in 0..2_000 {
                    let permit = budget.acquire(&sender, 1 + round % 20);
                    assert!(budget.in_use() <= 50);
                    drop(permit);
                }
            });
        }
    });
    assert_eq!(budget.report().in_use, 0);
    assert_eq!(budget.report().senders, 0);
}

#[test]
fn an_account_returns_the_same_budget_for_a_name_and_reports_refusals() {
    let account = Account::default();
    let budget = account.budget("watches", Limits { total: 2, per_sender: 1 });
    let same = account.clone().budget("watches", Limits::total(7));
    let user = Sender::User("alice".into());
    let _held = budget.acquire(&user, 1).unwrap();
    assert_eq!(same.acquire(&user, 1).unwrap_err(), Exceeded::Sender);
    let report = account.report();
    assert_eq!(report.len(), 1);
    assert_eq!((report[0].in_use, report[0].refused_sender, report[0].refused_total), (1, 1, 0));
    assert_eq!(report[0].largest, Some((user, 1)));
}

#[test]
fn refusals_are_logged_once_a_minute_with_their_number() {
    let log = RefusalLog::default();
    let start = Instant::now();
    assert_eq!(log.record(start), Some(1));
    assert_eq!(log.record(start + Duration::from_secs(59)), None);
    assert_eq!(log.record(start + Duration::from_secs(60)), Some(2));
}
