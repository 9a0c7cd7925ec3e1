use crate::options::{Options, PodRecords};
use crate::question::Question;
use crate::rtype;
use crate::zone::tests::{cluster, options};

fn why(options: Options, name: &str, rtype: u16) -> String {
    let why = cluster(options).why(&Question::new(&name.parse().unwrap(), rtype));
    why.map_or_else(|| "it has".to_owned(), |why| why.to_string())
}

#[test]
fn what_is_missing_first_is_the_reason() {
    let check = |name: &str, rtype, expect: &str| assert_eq!(why(options(), name, rtype), expect, "{name}");
    let svc = |name: &str| format!("{name}.default.svc.cluster.local");
    check(&svc("web"), rtype::A, "it has");
    check(&svc("far"), rtype::A, "it has");
    check(&svc("empty"), rtype::AAAA, "empty.default.svc.cluster.local. exists and has no records of this type");
    check(&svc("nosuch"), rtype::A, "there is no Service default/nosuch, or it is not served");
    check("web.shop.svc.cluster.local", rtype::A, "there is no namespace shop, or it is not served");
    check("shop.svc.cluster.local", rtype::A, "there is no namespace shop, or it is not served");
    check(&svc("idle"), rtype::A, "headless Service default/idle has no ready endpoint");
    check(&svc("number"), rtype::A, "Service default/number stands for what is no name");
    check(&svc("db-1.db"), rtype::A, "Service default/db has no ready endpoint of name db-1");
    check(&svc("_grpc._tcp.web"), rtype::SRV, "Service default/web has no port _grpc._tcp");
    check(&svc("a.b.c.web"), rtype::A, "what stands before Service default/web is no form of name");
    check("1-2-3-4.default.pod.cluster.local", rtype::A, "names of Pods are not served");
    check("3.0.1.10.in-addr.arpa", rtype::PTR, "no Service and no ready endpoint has the address 10.1.0.3");
    check("web.cluster.local", rtype::A, "web.cluster.local. is no form of name that the cluster has");
    check("www.example.com", rtype::A, "no zone that is served holds the name");
    check("cluster.local", rtype::AXFR, "zones are not handed out whole");
}

#[test]
fn settings_are_reasons_too() {
    let pods = |pods| Options { pods, ..options() };
    let check = |options, name: &str, expect: &str| assert_eq!(why(options, name, rtype::A), expect, "{name}");
    check(
        pods(PodRecords::Verified),
        "1-2-3-4.default.pod.cluster.local",
        "no Pod of the namespace has the address 1.2.3.4",
    );
    check(pods(PodRecords::Insecure), "ten.default.pod.cluster.local", "ten is no address with dashes");
    let hidden = Options { ignore_empty_service: true, ..options() };
    let reason = "Service default/empty has no ready endpoint, and such Services are hidden";
    check(hidden, "empty.default.svc.cluster.local", reason);
}
