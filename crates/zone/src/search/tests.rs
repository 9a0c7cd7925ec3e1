use super::Searched;
use crate::name::Name;
use crate::options::{Options, PodRecords};
use crate::question::Question;
use crate::rtype;
use crate::zone::tests::{cluster, options, text};

fn search(name: &str, namespace: &str, rest: &[&str]) -> String {
    let zone = cluster(Options { pods: PodRecords::Verified, ..options() });
    let rest: Vec<Name> = rest.iter().map(|name| name.parse().unwrap()).collect();
    let question = Question::new(&name.parse().unwrap(), rtype::A);
    match zone.search(&question, namespace, &rest) {
        Searched::Answer(answer) => text(&answer, &question),
        Searched::Elsewhere(names) => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Searched::NotFirst => "not first".to_owned(),
    }
}

#[test]
fn the_path_is_walked_at_once() {
    let check = |name: &str, rest: &[&str], expect: &str| assert_eq!(search(name, "default", rest), expect, "{name}");
    check("web.default.svc.cluster.local", &[], "web.default.svc.cluster.local. A 10.0.0.1");
    check(
        "web.default.default.svc.cluster.local",
        &[],
        "web.default.default.svc.cluster.local. CNAME web.default.svc.cluster.local.\n\
         web.default.svc.cluster.local. A 10.0.0.1",
    );
    check(
        "web.default.svc.default.svc.cluster.local",
        &[],
        "web.default.svc.default.svc.cluster.local. CNAME web.default.svc.cluster.local.\n\
         web.default.svc.cluster.local. A 10.0.0.1",
    );
    check(
        "www.example.com.default.svc.cluster.local",
        &["corp.example", "."],
        "www.example.com.corp.example. www.example.com. www.example.com.",
    );
    // A name that exists without such records ends the search, as for a resolver.
    check("default.svc.default.svc.cluster.local", &[], "no data in cluster.local.");
}

#[test]
fn other_names_are_not_searched() {
    let check = |name: &str, namespace: &str| assert_eq!(search(name, namespace, &[]), "not first", "{name}");
    check("www.example.com.default.svc.cluster.local", "shop");
    check("www.example.com.svc.cluster.local", "default");
    check("default.svc.cluster.local", "default");
    check("www.example.com", "default");
    check("default.1.0.0.10.in-addr.arpa", "default");
}

#[test]
fn a_pod_is_known_by_its_address() {
    let zone = cluster(Options { pods: PodRecords::Verified, ..options() });
    assert_eq!(zone.namespace_of("10.1.0.9".parse().unwrap()), Some("default"));
    assert_eq!(zone.namespace_of("10.1.0.1".parse().unwrap()), None);
    assert_eq!(cluster(options()).namespace_of("10.1.0.9".parse().unwrap()), None);
}
