use crate::value::{Value, json};

use super::*;
use crate::kinds::KINDS;

/// The line of a resource, without its hash.
fn check(group: &str, name: &str, expect: &str) {
    let list = resources(KINDS, group, "v1").expect("a known version");
    let line = list["resources"].as_array().and_then(|all| all.iter().find(|r| r["name"] == name));
    let mut line = line.expect("a known resource").clone();
    line.as_object_mut().expect("an object").shift_remove("storageVersionHash");
    assert_eq!(line.to_string(), expect);
}

#[test]
fn resources_are_listed_as_the_reference_server_does() {
    let all = r#"["create","delete","deletecollection","get","list","patch","update","watch"]"#;
    check(
        "",
        "services",
        &format!(
            r#"{{"name":"services","singularName":"service","namespaced":true,"kind":"Service","verbs":{all},"shortNames":["svc"],"categories":["all"]}}"#
        ),
    );
    check(
        "",
        "services/proxy",
        r#"{"name":"services/proxy","singularName":"","namespaced":true,"kind":"ServiceProxyOptions","verbs":["create","delete","get","patch","update"]}"#,
    );
    check(
        "",
        "bindings",
        r#"{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]}"#,
    );
    check(
        "",
        "namespaces/finalize",
        r#"{"name":"namespaces/finalize","singularName":"","namespaced":false,"kind":"Namespace","verbs":["update"]}"#,
    );
    check(
        "",
        "serviceaccounts/token",
        r#"{"name":"serviceaccounts/token","singularName":"","namespaced":true,"group":"authentication.k8s.io","version":"v1","kind":"TokenRequest","verbs":["create"]}"#,
    );
    check(
        "",
        "pods/eviction",
        r#"{"name":"pods/eviction","singularName":"","namespaced":true,"group":"policy","version":"v1","kind":"Eviction","verbs":["create"]}"#,
    );
    check(
        "",
        "pods/proxy",
        r#"{"name":"pods/proxy","singularName":"","namespaced":true,"kind":"PodProxyOptions","verbs":["create","delete","get","patch","update"]}"#,
    );
    check(
        "apps",
        "deployments",
        &format!(
            r#"{{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":{all},"shortNames":["deploy"],"categories":["all"]}}"#
        ),
    );
    check(
        "apps",
        "deployments/scale",
        r#"{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}"#,
    );
    check(
        "authentication.k8s.io",
        "tokenreviews",
        r#"{"name":"tokenreviews","singularName":"tokenreview","namespaced":false,"kind":"TokenReview","verbs":["create"]}"#,
    );
}

#[test]
fn resources_are_sorted_by_name() {
    let list = resources(KINDS, "", "v1").expect("the core group");
    let names: Vec<&str> =
        list["resources"].as_array().expect("a list").iter().filter_map(|r| r["name"].as_str()).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert_eq!(names.first(), Some(&"bindings"));
}

#[test]
fn only_the_core_list_has_no_api_version() {
    let keys = |group| -> Vec<String> {
        let list = resources(KINDS, group, "v1").expect("a known version");
        list.as_object().expect("an object").keys().map(|name| name.to_string()).collect()
    };
    assert_eq!(keys(""), ["kind", "groupVersion", "resources"]);
    assert_eq!(keys("discovery.k8s.io"), ["kind", "apiVersion", "groupVersion", "resources"]);
}

#[test]
fn only_stored_kinds_have_a_storage_version_hash_of_eight_bytes() {
    for kind in KINDS {
        let list = resources(KINDS, kind.group, kind.version).expect("a known version");
        let line = list["resources"].as_array().expect("a list").iter().find(|r| r["name"] == kind.resource);
        let hash = line.expect("itself")["storageVersionHash"].as_str().map(str::len);
        assert_eq!(hash, (!kind.store_prefix.is_empty()).then_some(12), "{}", kind.resource);
    }
}

#[test]
fn groups_name_their_versions() {
    let expect = r#"{"kind":"APIGroup","apiVersion":"v1","name":"discovery.k8s.io","versions":[{"groupVersion":"discovery.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"discovery.k8s.io/v1","version":"v1"}}"#;
    assert_eq!(group(KINDS, "discovery.k8s.io").expect("a known group").to_string(), expect);
    assert_eq!(group(KINDS, "nosuch.example.com"), None);
    assert_eq!(group(KINDS, ""), None);
    assert_eq!(resources(KINDS, "discovery.k8s.io", "v2"), None);
    let all = groups(KINDS);
    assert_eq!(all["groups"][0]["name"], "apps");
    assert_eq!(all["groups"].as_array().map(Vec::len), Some(8));
}

#[test]
fn the_stable_version_is_preferred() {
    let mut order = ["v1alpha1", "v1beta2", "v2", "v1", "v1beta1", "v2beta1", "v10"];
    order.sort_by_key(|version| std::cmp::Reverse(maturity(version)));
    assert_eq!(order, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v1alpha1"]);
}

#[test]
fn the_core_group_says_where_the_server_is() {
    let expect = r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}"#;
    assert_eq!(core_versions(KINDS, "10.0.0.1:6443").to_string(), expect);
}

#[test]
fn the_aggregated_form_nests_subresources() {
    let document = aggregated_core(KINDS);
    assert_eq!(document["items"][0]["metadata"], json!({}));
    let version = &document["items"][0]["versions"][0];
    assert_eq!(version["freshness"], "Current");
    let namespace = version["resources"].as_array().expect("a list").iter().find(|r| r["resource"] == "namespaces");
    let expect = r#"{"resource":"namespaces","responseKind":{"group":"","version":"","kind":"Namespace"},"scope":"Cluster","singularResource":"namespace","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["ns"],"subresources":[{"subresource":"finalize","responseKind":{"group":"","version":"","kind":"Namespace"},"verbs":["update"]},{"subresource":"status","responseKind":{"group":"","version":"","kind":"Namespace"},"verbs":["get","patch","update"]}]}"#;
    assert_eq!(namespace.map(Value::to_string).as_deref(), Some(expect));
    let groups = aggregated_groups(KINDS);
    assert_eq!(groups["items"][0]["metadata"], json!({"name": "apps"}));
    assert_eq!(groups["metadata"], json!({}));
}

#[test]
fn the_version_is_that_of_the_api() {
    let build = Build { version: "0.1.0", commit: "abc", date: "2026-01-01T00:00:00Z", platform: "linux/amd64" };
    let document = version(&build);
    assert_eq!((&document["major"], &document["minor"]), (&json!("1"), &json!("36")));
    assert_eq!(document["gitVersion"], "v1.36.4+fairlead-0.1.0");
}
