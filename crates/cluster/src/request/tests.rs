//! What requests look like.

use fairlead_api::kinds;

use super::*;

#[test]
fn paths_are_those_of_the_api() {
    let check = |kind: &Kind, namespace: &str, name: &str, part: Option<Subresource>, expected: &str| {
        assert_eq!(path(kind, namespace, name, part), expected);
    };
    check(&kinds::SERVICE, "default", "web", None, "/api/v1/namespaces/default/services/web");
    check(&kinds::SERVICE, "", "", None, "/api/v1/services");
    check(&kinds::NODE, "ignored", "n", Some(Subresource::Status), "/api/v1/nodes/n/status");
    check(&kinds::NAMESPACE, "", "a", Some(Subresource::Finalize), "/api/v1/namespaces/a/finalize");
    let slices = "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices";
    check(&kinds::ENDPOINT_SLICE, "a", "", None, slices);
    check(&kinds::SERVICE, "../a", "b?c", None, "/api/v1/namespaces/..%2Fa/services/b%3Fc");
}

#[test]
fn a_delete_says_only_what_was_asked_for() {
    let check = |how: Delete, expected: Value| {
        let mut body = how.body();
        assert_eq!((body.unset("kind"), body.unset("apiVersion")), (Some("DeleteOptions".into()), Some("v1".into())));
        assert_eq!(body, expected);
    };
    check(Delete::default(), json!({}));
    let version = Some("7".to_owned());
    check(
        Delete { uid: Some("u".into()), resource_version: version, ..Delete::default() },
        json!({"preconditions": {"uid": "u", "resourceVersion": "7"}}),
    );
    check(
        Delete { propagation: Some(Propagation::Foreground), grace_seconds: Some(0), ..Delete::default() },
        json!({"propagationPolicy": "Foreground", "gracePeriodSeconds": 0}),
    );
}

#[test]
fn waits_grow_to_a_bound() {
    let backoff = crate::Backoff::default();
    for (failed, most) in [(0, 100), (1, 200), (3, 800), (7, 10_000), (u32::MAX, 10_000)] {
        let wait = backoff.wait(failed).as_millis();
        assert!(wait <= most && wait >= most / 2, "after {failed}: {wait}");
    }
}
