use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn member(name: &str, node: Value) -> Member {
    let networks = ["192.0.2.0/24", "fd00::/64"].map(|net| net.parse().unwrap()).to_vec();
    let attachments = vec![Attachment { link: "eth0".into(), hardware: [2, 0, 0, 0, 0, 1], networks }];
    let mut whole = json!({"metadata": {"name": name}});
    if let (Value::Object(whole), Value::Object(node)) = (&mut whole, node) {
        whole.extend(node);
    }
    let node = Some(Arc::new(serde_json::from_value(whole).unwrap()));
    Member { name: name.to_owned(), presence: Presence::Live, attachments, guarded: true, node }
}

fn plain(count: usize) -> Vec<Member> {
    (0..count).map(|number| member(&format!("n{number}"), json!({}))).collect()
}

fn wanted(address: &str) -> Wanted {
    Wanted::new(address.parse().unwrap())
}

/// The only Node is out, and this is why; beside one that is fine it is out, too.
#[track_caller]
fn check(wanted: &Wanted, bad: Member, why: Exclusion) {
    let alone = decide(wanted, std::slice::from_ref(&bad));
    assert_eq!((alone.owner, alone.others), (None, BTreeMap::from([(bad.name.clone(), why)])));
    let beside = decide(wanted, &[bad, member("good", json!({}))]);
    assert_eq!((beside.owner.as_deref(), beside.reach), (Some("good"), Reach::Announced(vec!["eth0".into()])));
}

/// The Node is taken only when there is no better one.
#[track_caller]
fn check_lesser(wanted: &Wanted, lesser: Member, why: Exclusion, reach: Reach) {
    let alone = decide(wanted, std::slice::from_ref(&lesser));
    assert_eq!((alone.owner.as_ref(), alone.reach), (Some(&lesser.name), reach));
    let beside = decide(wanted, &[lesser.clone(), member("good", json!({}))]);
    assert_eq!((beside.owner.as_deref(), beside.others), (Some("good"), BTreeMap::from([(lesser.name, why)])));
}

#[test]
fn nodes_that_may_not_are_left_out_with_a_reason() {
    let any = wanted("192.0.2.100");
    for (presence, why) in [
        (Presence::Silent, Exclusion::Silent),
        (Presence::Left, Exclusion::Left),
        (Presence::Unheard, Exclusion::Unheard),
    ] {
        check(&any, Member { presence, ..member("n", json!({})) }, why);
    }
    check(&any, Member { guarded: false, ..member("n", json!({})) }, Exclusion::Unguarded);
    check(&any, Member { node: None, ..member("n", json!({})) }, Exclusion::NoNode);
    let labelled = json!({"metadata": {"labels": {EXCLUDED: "false"}}});
    check(&any, member("n", labelled), Exclusion::Labelled);
    let tainted = json!({"spec": {"taints": [{"key": TO_BE_DELETED, "effect": "NoSchedule"}]}});
    check(&any, member("n", tainted), Exclusion::ToBeDeleted);
    let cut_off = json!({"status": {"conditions": [{"type": "NetworkUnavailable", "status": "True"}]}});
    check(&any, member("n", cut_off), Exclusion::NetworkUnavailable);
}

#[test]
fn what_an_address_asks_of_its_node() {
    let local = Wanted { local: Some(["good".to_owned()].into()), ..wanted("192.0.2.100") };
    check(&local, member("n", json!({})), Exclusion::NoLocalEndpoint);
    let nodes = vec![LabelSelector::parse("role=edge").unwrap(), LabelSelector::parse("!cheap").unwrap()];
    let advertisements = vec![Advertisement { nodes, interfaces: Vec::new() }];
    let selected = Wanted { advertisements, ..wanted("192.0.2.100") };
    check(
        &selected,
        member("n", json!({"metadata": {"labels": {"cheap": "", "role": "core"}}})),
        Exclusion::NotSelected,
    );
}

#[test]
fn nodes_that_are_not_ready_or_elsewhere_are_the_last_choice() {
    let any = wanted("192.0.2.100");
    let there = Reach::Announced(vec!["eth0".into()]);
    for status in ["False", "Unknown"] {
        let unready = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        check_lesser(&any, member("n", unready), Exclusion::NotReady, there.clone());
    }
    let elsewhere = Member { attachments: Vec::new(), ..member("n", json!({})) };
    check_lesser(&any, elsewhere, Exclusion::NoNetwork, Reach::Routed);
    // By an interface that may not be used it is as far.
    let advertisements = vec![Advertisement { nodes: Vec::new(), interfaces: vec!["eth0".into()] }];
    let narrow = Wanted { advertisements, ..any.clone() };
    let mut other = member("n", json!({}));
    other.attachments[0].link = "eth1".into();
    check_lesser(&narrow, other, Exclusion::NoNetwork, Reach::Routed);
    // A pool nobody advertises is held, and not announced.
    let silent = Wanted { advertisements: Vec::new(), ..any };
    assert_eq!(decide(&silent, &plain(1)).reach, Reach::Routed);
}

#[test]
fn services_that_share_an_address_need_a_node_that_is_fine_for_all() {
    let set = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<String>>());
    let with = |local| Wanted { local, ..wanted("192.0.2.100") };
    assert_eq!(with(set(&["a", "b"])).and(with(set(&["b", "c"]))).local, set(&["b"]));
    assert_eq!(with(None).and(with(set(&["b"]))).local, set(&["b"]));
    assert_eq!(with(None).and(with(None)).local, None);
}

#[test]
fn the_draw_never_changes() {
    let numbers = [("n1", "192.0.2.1"), ("n2", "192.0.2.1"), ("n1", "fd00::1")].map(|(node, address)| {
        let address: IpAddr = address.parse().unwrap();
        draw(node, address)
    });
    assert_eq!(numbers, [3_997_303_936_378_697_417, 17_940_945_240_925_706_647, 1_259_028_409_855_859_488]);
}

#[test]
fn addresses_are_spread_over_the_nodes() {
    let nodes = plain(4);
    let mut shares: BTreeMap<String, usize> = BTreeMap::new();
    for last in 0..=255 {
        let owner = decide(&wanted(&format!("192.0.2.{last}")), &nodes).owner.unwrap();
        *shares.entry(owner).or_default() += 1;
    }
    assert!(shares.len() == 4 && shares.values().all(|share| (40..=90).contains(share)), "{shares:?}");
}

fn owner(address: &[u8; 4], nodes: &[Member]) -> String {
    decide(&Wanted::new((*address).into()), nodes).owner.unwrap()
}

proptest! {
    #[test]
    fn only_the_addresses_of_a_node_that_goes_move(
        addresses in prop::collection::vec(any::<[u8; 4]>(), 1..50), count in 2usize..12, gone in any::<prop::sample::Index>()
    ) {
        let before = plain(count);
        let gone = gone.index(count);
        let mut after = before.clone();
        after.remove(gone);
        for address in &addresses {
            let had = owner(address, &before);
            if had != before[gone].name {
                prop_assert_eq!(owner(address, &after), had);
            }
        }
    }

    #[test]
    fn the_order_of_nodes_does_not_matter(address in any::<[u8; 4]>(), count in 1usize..12, first in any::<prop::sample::Index>()) {
        let nodes = plain(count);
        let mut other = nodes.clone();
        other.rotate_left(first.index(count));
        prop_assert_eq!(owner(&address, &nodes), owner(&address, &other));
    }
}
