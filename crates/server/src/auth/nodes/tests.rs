//! What may the Node `a` do, and write?

use fairlead_api::value::{Value, json};
use fairlead_api::{Kind, kinds};

use super::*;

fn node() -> User {
    User { name: "system:node:a".to_owned(), groups: vec![GROUP.to_owned()], ..User::default() }
}

/// `verb group/resource[/subresource] namespace/name`
#[track_caller]
fn check(request: &str, want: Right) {
    let words: Vec<&str> = request.split(' ').collect();
    let what: Vec<&str> = words[1].split('/').collect();
    let (namespace, name) = words[2].split_once('/').unwrap();
    let subresource = what.get(2).copied().unwrap_or_default();
    let target = Target::Resource { group: what[0], resource: what[1], subresource, namespace, name };
    assert_eq!(right("a", &Attributes { verb: words[0], target }), want, "{request}");
}

#[test]
fn only_who_is_in_the_group_is_a_node() {
    assert_eq!(node_of(&node()), Some("a"));
    assert_eq!(node_of(&User { groups: Vec::new(), ..node() }), None);
    assert_eq!(node_of(&User { name: "system:node:".to_owned(), ..node() }), None);
    assert_eq!(node_of(&User { name: "a".to_owned(), ..node() }), None);
}

#[test]
fn a_node_reads_what_it_serves() {
    check("list /services /", Right::Yes);
    check("watch discovery.k8s.io/endpointslices /", Right::Yes);
    check("watch /pods /", Right::Yes);
    check("get /nodes /b", Right::Yes);
    check("list /secrets /", Right::No);
    check("list /secrets default/", Right::No);
    check("get /secrets default/s", Right::NamedByPod);
    check("get /configmaps default/kube-root-ca.crt", Right::Yes);
    check("get /configmaps default/c", Right::NamedByPod);
    check("create /serviceaccounts/token default/x", Right::NamedByPod);
    check("list rbac.authorization.k8s.io/clusterroles /", Right::No);
    check("get /pods/log default/p", Right::No);
    check("create /pods/exec default/p", Right::No);
}

#[test]
fn a_node_writes_about_itself_alone() {
    check("patch /nodes /a", Right::Yes);
    check("patch /nodes/status /a", Right::Yes);
    check("patch /nodes/status /b", Right::No);
    check("delete /nodes /a", Right::No);
    check("update coordination.k8s.io/leases kube-node-lease/a", Right::Yes);
    check("update coordination.k8s.io/leases kube-node-lease/b", Right::No);
    check("update coordination.k8s.io/leases kube-system/a", Right::No);
    check("patch coordination.k8s.io/leases kube-node-lease/fairlead-announcer-a", Right::Yes);
    check("patch coordination.k8s.io/leases kube-node-lease/fairlead-announcer-b", Right::No);
    check("watch coordination.k8s.io/leases kube-node-lease/", Right::Yes);
    check("watch coordination.k8s.io/leases kube-system/", Right::Yes);
    check("watch coordination.k8s.io/leases default/", Right::No);
    check("create coordination.k8s.io/leases kube-system/", Right::Yes);
    check("create coordination.k8s.io/leases default/", Right::No);
    check("patch coordination.k8s.io/leases kube-system/fairlead-proxy-a", Right::Yes);
    check("patch coordination.k8s.io/leases kube-system/fairlead-proxy-b", Right::Yes);
    check("patch coordination.k8s.io/leases kube-system/fairlead-control", Right::No);
    check("delete coordination.k8s.io/leases kube-system/fairlead-proxy-b", Right::No);
    check("patch /pods/status default/p", Right::OwnPod);
    check("delete /pods default/p", Right::OwnPod);
    check("patch /pods default/p", Right::No);
    check("create /pods default/", Right::No);
    check("create /pods/binding default/p", Right::No);
    check("create /events default/", Right::Yes);
    check("create /services default/", Right::No);
    assert_eq!(right("a", &Attributes { verb: "get", target: Target::Path("/metrics") }), Right::No);
}

#[test]
fn a_pod_names_what_it_mounts_and_reads() {
    let pod = json!({"spec": {
        "serviceAccountName": "robot",
        "volumes": [
            {"name": "v1", "secret": {"secretName": "mounted"}},
            {"name": "v2", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "file"}}]}},
        ],
        "containers": [{"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}],
                        "envFrom": [{"configMapRef": {"name": "all"}}]}],
        "imagePullSecrets": [{"name": "pull"}],
    }});
    let check = |resource: &str, name: &str, want: bool| {
        assert_eq!(names(&pod, resource, name), want, "{resource} {name}");
    };
    for name in ["mounted", "projected", "key", "pull"] {
        check("secrets", name, true);
    }
    for name in ["file", "all", "v1", "A", "k", "other"] {
        check("secrets", name, false);
    }
    for name in ["file", "all"] {
        check("configmaps", name, true);
    }
    for name in ["mounted", "other"] {
        check("configmaps", name, false);
    }
    check("serviceaccounts", "robot", true);
    check("serviceaccounts", "default", false);
    assert!(names(&json!({"spec": {}}), "serviceaccounts", "default"));
}

#[track_caller]
fn check_write(kind: &Kind, new: Value, old: Option<Value>, fine: bool) {
    let said = restrict(&node(), kind, &new, old.as_ref());
    assert_eq!(said.is_ok(), fine, "{said:?}: {new}");
    let other = User { name: "system:node:a".to_owned(), ..User::default() };
    assert_eq!(restrict(&other, kind, &new, old.as_ref()), Ok(()), "for those who are no Node this is no question");
}

#[test]
fn what_a_node_writes_is_its_own_and_says_nothing_it_must_not() {
    let lease = |namespace: &str, name: &str| json!({"metadata": {"namespace": namespace, "name": name}});
    check_write(&kinds::LEASE, lease("kube-node-lease", "a"), None, true);
    check_write(&kinds::LEASE, lease("kube-node-lease", "b"), None, false);
    check_write(&kinds::LEASE, lease("kube-system", "a"), None, false);

    let report = |node: &str, awaits: &str, programmed: &str, holder: &str| {
        json!({
            "metadata": {
                "namespace": "kube-system",
                "name": format!("fairlead-proxy-{node}"),
                "resourceVersion": awaits,
                "annotations": {"fairlead.dev/awaits-revision": awaits, "fairlead.dev/programmed-revision": programmed},
            },
            "spec": {"holderIdentity": holder},
        })
    };
    check_write(&kinds::LEASE, report("a", "7", "7", "a"), None, true);
    check_write(&kinds::LEASE, report("a", "7", "9", "a"), Some(report("a", "7", "7", "a")), true);
    let other = || Some(report("b", "7", "7", "b"));
    check_write(&kinds::LEASE, report("b", "7", "7", "b"), None, false);
    check_write(&kinds::LEASE, report("b", "8", "7", "b"), other(), true);
    check_write(&kinds::LEASE, report("b", "6", "7", "b"), other(), false);
    check_write(&kinds::LEASE, report("b", "many", "7", "b"), other(), false);
    check_write(&kinds::LEASE, report("b", "8", "8", "b"), other(), false);
    check_write(&kinds::LEASE, report("b", "8", "7", "a"), other(), false);
    let mut labelled = report("b", "8", "7", "b");
    labelled["metadata"]["labels"] = json!({"fairlead.dev/component": "other"});
    check_write(&kinds::LEASE, labelled, other(), false);

    let own = |labels: Value, spec: Value| json!({"metadata": {"name": "a", "labels": labels}, "spec": spec});
    let ranges = json!({"podCIDR": "10.244.1.0/24"});
    check_write(&kinds::NODE, own(json!({"x": "y"}), Value::Null), None, true);
    check_write(&kinds::NODE, json!({"metadata": {"name": "b"}}), None, false);
    check_write(&kinds::NODE, own(Value::Null, ranges.clone()), None, false);
    let old = own(Value::Null, ranges.clone());
    check_write(&kinds::NODE, own(json!({"x": "y"}), ranges.clone()), Some(old.clone()), true);
    check_write(&kinds::NODE, own(Value::Null, json!({"podCIDR": "10.244.0.0/16"})), Some(old.clone()), false);
    check_write(&kinds::NODE, own(json!({"node-role.kubernetes.io/x": ""}), ranges), Some(old), false);

    let pod = |node: &str, app: &str, phase: &str| json!({"metadata": {"name": "p", "labels": {"app": app}}, "spec": {"nodeName": node}, "status": {"phase": phase}});
    check_write(&kinds::POD, pod("a", "x", "Running"), Some(pod("a", "x", "Pending")), true);
    check_write(&kinds::POD, pod("a", "y", "Running"), Some(pod("a", "x", "Pending")), false);
    check_write(&kinds::POD, pod("a", "x", "Running"), Some(pod("b", "x", "Pending")), false);
    check_write(&kinds::POD, pod("a", "x", "Running"), None, false);
}

#[test]
fn a_load_balancer_shows_the_certificates_its_service_names() {
    let service = |names: &str| {
        json!({"metadata": {"namespace": "default", "annotations": {
            "service.beta.kubernetes.io/aws-load-balancer-ssl-cert": names,
        }}})
    };
    let check = |names: &str, shown: bool| assert_eq!(shows(&service(names), "web"), shown, "{names}");
    check("web", true);
    check("default/web", true);
    check("other, web", true);
    check("other/web", false);
    check("website", false);
    check("", false);
    assert!(!shows(&json!({"metadata": {"namespace": "default"}}), "web"));
    // Those it shows as long as what it names now makes no sense.
    let mut bad = service("other");
    let good = r#"{"service.beta.kubernetes.io/aws-load-balancer-ssl-cert": "web"}"#;
    bad["metadata"]["annotations"]["fairlead.dev/last-good"] = json!(good);
    assert!(shows(&bad, "web") && shows(&bad, "other") && !shows(&bad, "third"));
}
