use serde_json::json;

use super::*;

const NODE: &str =
    "# the Node's\nnameserver 192.0.2.53\n; old\nsearch example.com. lan .\noptions rotate ndots:2\noptions ndots:1\n";
const OURS: &str = "search shop.svc.cluster.local svc.cluster.local cluster.local example.com lan\nnameserver 10.96.0.10\noptions ndots:5\n";

fn settings() -> DnsSettings {
    DnsSettings {
        cluster_dns: vec!["10.96.0.10".parse().expect("an address")],
        host: Some(NODE.to_owned()),
        ..DnsSettings::default()
    }
}

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec})
}

#[track_caller]
fn check(spec: Value, expect: &str) {
    let made = of(&pod(spec), &settings());
    assert_eq!((render(&made).as_str(), &made.notes[..]), (expect, &[][..]));
}

#[test]
fn each_policy_asks_where_it_says() {
    let node = "search example.com lan\nnameserver 192.0.2.53\noptions rotate ndots:1\n";
    check(json!({}), OURS);
    check(json!({"dnsPolicy": "ClusterFirst"}), OURS);
    check(json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true}), node);
    check(json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}), OURS);
    check(json!({"dnsPolicy": "Default"}), node);
    check(json!({"dnsPolicy": "None"}), "");
}

#[test]
fn dns_config_adds_and_replaces() {
    let config = json!({
        "nameservers": ["192.0.2.1", "10.96.0.10"],
        "searches": ["ns1.example", "lan"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
    });
    check(
        json!({"dnsPolicy": "None", "dnsConfig": config}),
        "search ns1.example lan\nnameserver 192.0.2.1\nnameserver 10.96.0.10\noptions ndots:2 edns0\n",
    );
    let merged = "search shop.svc.cluster.local svc.cluster.local cluster.local example.com lan ns1.example\n\
        nameserver 10.96.0.10\nnameserver 192.0.2.1\noptions ndots:2 edns0\n";
    check(json!({"dnsConfig": config}), merged);
}

#[test]
fn the_options_of_the_cluster_are_the_administrators() {
    let settings = DnsSettings { options: vec!["ndots:2".to_owned()], ..settings() };
    assert_eq!(of(&pod(json!({})), &settings).options, ["ndots:2"]);
}

#[test]
fn without_a_cluster_dns_the_nodes_is_used_and_said() {
    let settings = DnsSettings { cluster_dns: Vec::new(), ..settings() };
    let made = of(&pod(json!({})), &settings);
    assert_eq!(made.nameservers, ["192.0.2.53"]);
    let [note] = &made.notes[..] else { panic!("{:?}", made.notes) };
    assert_eq!(note.reason(), "MissingClusterDNS");
    assert!(note.to_string().starts_with("pod: \"web_shop(u)\". kubelet does not have ClusterDNS IP configured"));
}

#[test]
fn a_node_without_a_file_asks_itself() {
    let settings = DnsSettings { host: None, ..settings() };
    let made = of(&pod(json!({"dnsPolicy": "Default"})), &settings);
    assert_eq!(render(&made), "search .\nnameserver 127.0.0.1\n");
}

#[test]
fn limits_cut_and_are_told() {
    let config = |field: &str, items: Vec<String>| pod(json!({"dnsPolicy": "None", "dnsConfig": {field: items}}));
    let servers = (1..=4).map(|at| format!("192.0.2.{at}")).collect();
    let made = of(&config("nameservers", servers), &settings());
    assert_eq!(
        made.notes[0].to_string(),
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: \
         192.0.2.1 192.0.2.2 192.0.2.3"
    );
    let count = |items: Vec<String>| {
        let made = of(&config("searches", items), &settings());
        let told = made.notes.iter().any(|note| note.to_string().starts_with("Search Line limits were exceeded, "));
        (made.searches.len(), told)
    };
    assert_eq!(count((0..32).map(|at| format!("d{at}")).collect()), (32, false));
    assert_eq!(count((0..33).map(|at| format!("d{at}")).collect()), (32, true));
    assert_eq!(count(vec!["a".repeat(254), "b".repeat(253)]), (1, true));
    // Ten of 204 and nine spaces are 2049 characters, one too many.
    let names = |length: usize| (0..10).map(|at| format!("{at:0length$}")).collect::<Vec<_>>();
    assert_eq!(count(names(204)), (9, true));
    assert_eq!(count(names(203)), (10, false));
}

#[test]
fn nonsense_in_the_nodes_file_is_passed_over() {
    let read = parse("nameserver\nsearch\noptions\nfoo bar\n\u{0}\nnameserver ::1 extra\n");
    assert_eq!(read, Resolv { nameservers: vec!["::1".to_owned()], ..Resolv::default() });
}
