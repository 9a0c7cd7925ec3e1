//! The names of a small cluster, written as people write zones.

use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::View;
use serde_json::{Value, json};

use super::{Change, Zone};
use crate::answer::Answer;
use crate::message::Record;
use crate::name::Name;
use crate::options::{Options, PodRecords};
use crate::question::Question;
use crate::rtype;

const TYPES: &[(&str, u16)] = &[
    ("A", rtype::A),
    ("AAAA", rtype::AAAA),
    ("SRV", rtype::SRV),
    ("PTR", rtype::PTR),
    ("NS", rtype::NS),
    ("SOA", rtype::SOA),
    ("TXT", rtype::TXT),
    ("CNAME", rtype::CNAME),
    ("AXFR", rtype::AXFR),
    ("HTTPS", 65),
];

/// A change that puts an object there.
pub(crate) fn put(object: &Value) -> Change {
    fn view<T: View>(object: &Value) -> Option<Arc<T>> {
        Some(Arc::new(serde_json::from_value(object.clone()).unwrap()))
    }
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let key = Key::new(text("namespace"), text("name"));
    match object["kind"].as_str().unwrap() {
        "Namespace" => Change::Namespace(key, view(object)),
        "Service" => Change::Service(key, view(object)),
        "EndpointSlice" => Change::EndpointSlice(key, view(object)),
        "Pod" => Change::Pod(key, view(object)),
        other => panic!("{other}"),
    }
}

fn service(name: &str, spec: Value) -> Value {
    json!({"kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn slice(service: &str, endpoints: Value) -> Value {
    json!({
        "kind": "EndpointSlice",
        "metadata": {
            "name": format!("{service}-x"), "namespace": "default", "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": "IPv4",
        "ports": [{"name": "sql", "protocol": "TCP", "port": 5432}],
        "endpoints": endpoints,
    })
}

/// A cluster with a Service of each form.
pub(crate) fn cluster(options: Options) -> Zone {
    let mut zone = Zone::new(options);
    let ports =
        json!([{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    zone.apply(
        [
            json!({"kind": "Namespace", "metadata": {"name": "default"}}),
            service("web", json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1", "fd00::1"], "ports": ports})),
            slice("web", json!([{"addresses": ["10.1.0.1"]}])),
            service("db", json!({"clusterIP": "None", "ports": []})),
            slice(
                "db",
                json!([
                    {"addresses": ["10.1.0.2"], "hostname": "db-0", "zone": "East"},
                    {"addresses": ["10.1.0.3"], "hostname": "db-1", "conditions": {"ready": false}},
                    {"addresses": ["10.1.0.4"], "conditions": {"ready": true}, "targetRef": {"name": "pod-4"}},
                ]),
            ),
            service("idle", json!({"clusterIP": "None"})),
            service("empty", json!({"clusterIP": "10.0.0.2"})),
            service("near", json!({"type": "ExternalName", "externalName": "web.default.svc.cluster.local"})),
            service("far", json!({"type": "ExternalName", "externalName": "www.example.com"})),
            service("round", json!({"type": "ExternalName", "externalName": "about.default.svc.cluster.local"})),
            service("about", json!({"type": "ExternalName", "externalName": "round.default.svc.cluster.local"})),
            service("number", json!({"type": "ExternalName", "externalName": "10.0.0.9"})),
            json!({
                "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "status": {"podIP": "10.1.0.9"},
            }),
        ]
        .iter()
        .map(put),
    );
    zone
}

pub(crate) fn options() -> Options {
    let zones = ["cluster.local", "in-addr.arpa", "ip6.arpa"].map(|zone| zone.parse().unwrap()).to_vec();
    Options { zones, ..Options::default() }
}

fn show(record: &Record) -> String {
    let (name, _) = TYPES.iter().find(|(_, number)| *number == record.rtype).unwrap();
    let data = &record.rdata;
    let text = match record.rtype {
        rtype::A => data.iter().map(ToString::to_string).collect::<Vec<_>>().join("."),
        rtype::AAAA => std::net::Ipv6Addr::from(<[u8; 16]>::try_from(&**data).unwrap()).to_string(),
        rtype::SRV => {
            let number = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
            format!("{} {} {} {}", number(0), number(2), number(4), Name::from_wire(&data[6..]).unwrap())
        }
        rtype::TXT => String::from_utf8_lossy(&data[1..]).into_owned(),
        _ => record.target().unwrap().to_string(),
    };
    format!("{} {name} {text}", record.name)
}

/// An answer as text: records one a line, additional ones after a `+`, or a word.
pub(crate) fn text(answer: &Answer<'_>, question: &Question) -> String {
    match answer {
        Answer::Records(records) => {
            let (answer, additional) = records.sections(&question.name(), question.rtype);
            let additional = additional.iter().map(|record| format!("+ {}", show(record)));
            answer.iter().map(show).chain(additional).collect::<Vec<_>>().join("\n")
        }
        Answer::Alias(alias) => {
            let records = alias.records(&question.name());
            records.iter().map(show).chain(["outside".to_owned()]).collect::<Vec<_>>().join("\n")
        }
        Answer::NoData(zone) => format!("no data in {zone}"),
        Answer::NxDomain(zone) => format!("no name in {zone}"),
        Answer::Refused => "refused".to_owned(),
        Answer::NotOurs => "not ours".to_owned(),
    }
}

/// Asks `NAME TYPE`; a name without a dot at its end is one of namespace default.
fn ask(zone: &Zone, question: &str) -> String {
    let (name, rtype) = question.split_once(' ').unwrap();
    let name = if name.ends_with('.') { name.to_owned() } else { format!("{name}.default.svc.cluster.local.") };
    let (_, rtype) = TYPES.iter().find(|(text, _)| *text == rtype).unwrap();
    let question = Question::new(&name.parse().unwrap(), *rtype);
    text(&zone.answer(&question), &question).replace(".default.svc.cluster.local.", "")
}

fn check(zone: &Zone, question: &str, expect: &[&str]) {
    assert_eq!(ask(zone, question), expect.join("\n"), "{question}");
}

const NO_DATA: &[&str] = &["no data in cluster.local."];
const NO_NAME: &[&str] = &["no name in cluster.local."];

#[test]
fn a_service_has_its_cluster_ips() {
    let zone = cluster(options());
    check(&zone, "web A", &["web A 10.0.0.1"]);
    check(&zone, "WEB AAAA", &["web AAAA fd00::1"]);
    check(&zone, "web HTTPS", NO_DATA);
    check(&zone, "empty A", &["empty A 10.0.0.2"]);
    check(&zone, "empty AAAA", NO_DATA);
    check(&zone, "nosuch A", NO_NAME);
    check(&zone, "web.nosuch.svc.cluster.local. A", NO_NAME);
    check(&zone, "web.default. A", &["not ours"]);
    check(&zone, "web AXFR", &["refused"]);
}

#[test]
fn a_port_has_srv_records_and_addresses() {
    let zone = cluster(options());
    let web = ["_http._tcp.web SRV 0 50 80 web", "+ web A 10.0.0.1", "+ web AAAA fd00::1"];
    check(&zone, "_http._tcp.web SRV", &web);
    check(&zone, "_http._udp.web SRV", NO_NAME);
    check(&zone, "dns.udp.web A", &["dns.udp.web A 10.0.0.1"]);
    check(
        &zone,
        "_sql._tcp.db SRV",
        &[
            "_sql._tcp.db SRV 0 50 5432 10-1-0-4.db",
            "_sql._tcp.db SRV 0 50 5432 db-0.db",
            "+ 10-1-0-4.db A 10.1.0.4",
            "+ db-0.db A 10.1.0.2",
        ],
    );
    // A Service without ports has an address and no SRV record.
    check(&zone, "empty SRV", NO_DATA);
}

#[test]
fn a_headless_service_has_its_ready_endpoints() {
    let zone = cluster(options());
    check(&zone, "db A", &["db A 10.1.0.2", "db A 10.1.0.4"]);
    check(&zone, "db-0.db A", &["db-0.db A 10.1.0.2"]);
    check(&zone, "db-1.db A", NO_NAME);
    check(&zone, "10-1-0-4.db A", &["10-1-0-4.db A 10.1.0.4"]);
    check(&zone, "idle A", NO_NAME);
    let named = cluster(Options { endpoint_pod_names: true, ..options() });
    check(&named, "pod-4.db A", &["pod-4.db A 10.1.0.4"]);
    check(&named, "10-1-0-4.db A", NO_NAME);
    let without = cluster(Options { noendpoints: true, ..options() });
    check(&without, "db A", NO_NAME);
    check(&without, "web A", &["web A 10.0.0.1"]);
}

#[test]
fn an_empty_service_can_be_hidden() {
    let zone = cluster(Options { ignore_empty_service: true, ..options() });
    check(&zone, "web A", &["web A 10.0.0.1"]);
    check(&zone, "empty A", NO_NAME);
}

#[test]
fn aliases_are_followed_within_the_zone() {
    let zone = cluster(options());
    check(&zone, "near A", &["near CNAME web", "web A 10.0.0.1"]);
    check(&zone, "near CNAME", &["near CNAME web"]);
    check(&zone, "far A", &["far CNAME www.example.com.", "outside"]);
    check(&zone, "far SRV", NO_DATA);
    check(&zone, "round A", NO_DATA);
    check(&zone, "number A", NO_NAME);
}

#[test]
fn zones_of_endpoints_have_names_if_wanted() {
    let zone = cluster(Options { zonal: true, ..options() });
    check(&zone, "east.pin._zone.db A", &["east.pin._zone.db A 10.1.0.2"]);
    check(&zone, "west.pin._zone.db A", NO_DATA);
    check(&zone, "west.prefer._zone.db A", &["west.prefer._zone.db A 10.1.0.2", "west.prefer._zone.db A 10.1.0.4"]);
    check(&zone, "east.any._zone.db A", NO_NAME);
    check(&zone, "east.pin._zone.web A", NO_NAME);
    check(&cluster(options()), "east.pin._zone.db A", NO_NAME);
}

#[test]
fn pods_have_names_as_far_as_wanted() {
    let check = |pods, name: &str, expect: &[&str]| {
        check(&cluster(Options { pods, ..options() }), &format!("{name}.default.pod.cluster.local. A"), expect);
    };
    let answer = |name: &str, address: &str| format!("{name}.default.pod.cluster.local. A {address}");
    check(PodRecords::Disabled, "10-1-0-9", NO_NAME);
    check(PodRecords::Insecure, "10-9-9-9", &[&answer("10-9-9-9", "10.9.9.9")]);
    check(PodRecords::Insecure, "ten", NO_NAME);
    check(PodRecords::Verified, "10-1-0-9", &[&answer("10-1-0-9", "10.1.0.9")]);
    check(PodRecords::Verified, "10-9-9-9", NO_NAME);
}

#[test]
fn addresses_have_names() {
    let zone = cluster(options());
    check(&zone, "1.0.0.10.in-addr.arpa. PTR", &["1.0.0.10.in-addr.arpa. PTR web"]);
    check(&zone, "1.0.1.10.in-addr.arpa. PTR", &["1.0.1.10.in-addr.arpa. PTR 10-1-0-1.web"]);
    check(&zone, "2.0.1.10.in-addr.arpa. PTR", &["2.0.1.10.in-addr.arpa. PTR db-0.db"]);
    check(&zone, "3.0.1.10.in-addr.arpa. PTR", &["no name in in-addr.arpa."]);
    check(&zone, "1.0.0.10.in-addr.arpa. A", &["no name in in-addr.arpa."]);
    check(&zone, "web PTR", NO_DATA);
}

#[test]
fn the_top_of_the_zone_says_who_serves_it() {
    let local = |address: &str| Options { local_addresses: vec![address.parse().unwrap()], ..options() };
    let zone = cluster(local("10.1.0.1"));
    let web = ["cluster.local. NS web", "+ web A 10.0.0.1", "+ web AAAA fd00::1"];
    check(&zone, "cluster.local. NS", &web);
    let zone = cluster(local("10.8.8.8"));
    let server = ["cluster.local. NS ns.dns.cluster.local.", "+ ns.dns.cluster.local. A 10.8.8.8"];
    check(&zone, "cluster.local. NS", &server);
    check(&zone, "ns.dns.cluster.local. A", &["ns.dns.cluster.local. A 10.8.8.8"]);
    check(&zone, "dns-version.cluster.local. TXT", &["dns-version.cluster.local. TXT 1.1.0"]);
    for name in ["cluster.local.", "svc.cluster.local.", "default.svc.cluster.local."] {
        check(&zone, &format!("{name} A"), NO_DATA);
    }
}

#[test]
fn what_is_gone_is_not_found() {
    let mut zone = cluster(options());
    let key = |name: &str| Key::new("default", name);
    zone.apply([Change::EndpointSlice(key("web-x"), None)]);
    check(&zone, "1.0.1.10.in-addr.arpa. PTR", &["no name in in-addr.arpa."]);
    check(&zone, "web A", &["web A 10.0.0.1"]);
    zone.apply([Change::Service(key("web"), None)]);
    check(&zone, "web A", NO_NAME);
    check(&zone, "1.0.0.10.in-addr.arpa. PTR", &["no name in in-addr.arpa."]);
    zone.apply([Change::Namespace(Key::new("", "default"), None)]);
    check(&zone, "db A", NO_NAME);
}
