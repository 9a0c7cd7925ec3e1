use super::*;
use fairlead_api::kinds::KINDS;

#[track_caller]
fn check(path: &str, expected: Option<(&str, &str, &str, &str)>) {
    let found = match route(&percent_decode(path), KINDS) {
        Route::Resource(t) => Some((t.kind.resource, t.namespace.clone(), t.name.clone(), t.subresource.clone())),
        _ => None,
    };
    let found = found.as_ref().map(|(r, ns, n, s)| (*r, ns.as_str(), n.as_str(), s.as_str()));
    assert_eq!(found, expected, "{path}");
}

#[test]
fn paths_name_resources() {
    check("/api/v1/services", Some(("services", "", "", "")));
    check("/api/v1/namespaces", Some(("namespaces", "", "", "")));
    check("/api/v1/namespaces/x", Some(("namespaces", "", "x", "")));
    check("/api/v1/namespaces/x/status", Some(("namespaces", "", "x", "status")));
    check("/api/v1/namespaces/x/services", Some(("services", "x", "", "")));
    check("/api/v1/namespaces/x/services/s/status", Some(("services", "x", "s", "status")));
    check("/apis/discovery.k8s.io/v1/endpointslices", Some(("endpointslices", "", "", "")));
    check("/api/v1/watch/namespaces/x/services/s", Some(("services", "x", "s", "")));
}

#[test]
fn paths_that_name_nothing() {
    for path in ["/api/v2", "/api/v1/bogus", "/api/v1/namespaces/x/nodes", "/api/v1/services/s", "/apis/x.y/v1"] {
        check(path, None);
    }
    assert_eq!(route("/apis/bogus.example.com/v1", KINDS), Route::Path("/apis/bogus.example.com/v1".to_owned()));
    assert_eq!(route("/api/v1/bogus", KINDS), Route::UnknownResource);
}

#[test]
fn an_escaped_slash_in_a_name_makes_a_subresource() {
    check("/api/v1/namespaces/x/services/a%2Fb", Some(("services", "x", "a", "b")));
}

#[test]
fn what_follows_proxy_is_kept_as_written() {
    let rest = |path: &str| match route(path, KINDS) {
        Route::Resource(target) => target.rest,
        other => panic!("{other:?}"),
    };
    assert_eq!(rest("/api/v1/namespaces/proxy/services/proxy/proxy/a/proxy/"), "/a/proxy/");
    assert_eq!(rest("/api/v1/namespaces/x/services/s/proxy/"), "/");
    assert_eq!(rest("/api/v1/namespaces/x/services/s/proxy"), "");
    assert_eq!(rest("/api/v1/nodes/n/proxy/pods"), "/pods");
}
