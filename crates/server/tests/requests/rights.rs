//! What a user may not do: addresses of the cluster, all namespaces at once, tokens that outlive
//! their Pods.

use fairlead_server::{Admission, Authorization, ExternalIps};
use serde_json::{Value, json};

use crate::world::{SERVICES, TestServer, admin, service, user};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

/// Makes a user `tenant` with all rights in the namespace `default`.
async fn let_tenant_in(server: &TestServer) {
    let binding = json!({
        "metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant"}],
    });
    server.make("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding).await;
    // Roles reach the server by its watch.
    let known = async {
        while server.send(user("tenant", &["system:authenticated"]), "GET", SERVICES, "").await.code != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), known).await.expect("the role is known");
}

async fn external(server: &TestServer, name: &str, ip: &str, by: &str) -> (u16, String) {
    let sender = if by == "admin" { admin() } else { user(by, &["system:authenticated"]) };
    let body = service(name, json!({"externalIPs": [ip]})).to_string();
    let answer = server.send(sender, "POST", &format!("{SERVICES}?dryRun=All"), body).await;
    (answer.code, answer.body["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn external_ips_are_for_administrators_and_never_addresses_of_the_cluster() {
    let pools = vec!["203.0.113.10".parse().unwrap()..="203.0.113.20".parse().unwrap()];
    for external_ips in [ExternalIps::Privileged, ExternalIps::Anyone] {
        let admission = Admission { external_ips, load_balancer_pools: pools.clone(), ..Admission::default() };
        let server = TestServer::new(admission, Authorization::Rbac).await;
        let_tenant_in(&server).await;
        let node = server.make(NODES, json!({"metadata": {"name": "n"}})).await;
        let mut node = node;
        node["status"] = json!({"addresses": [{"type": "InternalIP", "address": "192.0.2.7"}]});
        let answer = server.send(admin(), "PUT", "/api/v1/nodes/n/status", node.to_string()).await;
        assert_eq!(answer.code, 200, "{}", answer.body);
        let mut balanced = server.make(SERVICES, service("lb", json!({"type": "LoadBalancer"}))).await;
        balanced["status"] = json!({"loadBalancer": {"ingress": [{"ip": "203.0.113.99", "ipMode": "VIP"}]}});
        let path = format!("{SERVICES}/lb/status");
        assert_eq!(server.send(admin(), "PUT", &path, balanced.to_string()).await.code, 200);

        let tenant = if external_ips == ExternalIps::Anyone { 201 } else { 403 };
        assert_eq!(external(&server, "a", "198.51.100.1", "tenant").await.0, tenant);
        assert_eq!(external(&server, "a", "198.51.100.1", "admin").await.0, 201);
        for (ip, why) in [
            ("192.0.2.1", "external IP 192.0.2.1 is an address of a Node, of the API server or of a load balancer"),
            ("192.0.2.7", "external IP 192.0.2.7 is an address of a Node, of the API server or of a load balancer"),
            (
                "203.0.113.99",
                "external IP 203.0.113.99 is an address of a Node, of the API server or of a load balancer",
            ),
            ("10.0.0.10", "external IP 10.0.0.10 is in the range of cluster IPs"),
            ("203.0.113.15", "external IP 203.0.113.15 is in a pool of load balancer addresses"),
        ] {
            for by in ["tenant", "admin"] {
                let (code, message) = external(&server, "a", ip, by).await;
                assert_eq!(code, 403, "{ip} {by}: {message}");
                if by == "admin" {
                    assert_eq!(message, format!("services \"a\" is forbidden: {why}"));
                }
            }
        }
        for ip in ["127.0.0.1", "169.254.1.1", "::1", "fe80::1", "224.0.0.1", "0.0.0.0"] {
            assert_eq!(external(&server, "a", ip, "admin").await.0, 422, "{ip}");
        }
    }
}

#[tokio::test]
async fn external_ips_that_are_there_do_not_keep_a_tenant_from_other_changes() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let_tenant_in(&server).await;
    server.make(SERVICES, service("web", json!({"externalIPs": ["198.51.100.1"]}))).await;
    let tenant = || user("tenant", &["system:authenticated"]);
    let patch = |patch: Value| {
        let path = format!("{SERVICES}/web");
        let server = &server;
        async move { server.send_as(tenant(), "PATCH", &path, "application/merge-patch+json", patch.to_string()).await.code }
    };
    assert_eq!(patch(json!({"metadata": {"labels": {"a": "b"}}})).await, 200);
    assert_eq!(patch(json!({"spec": {"externalIPs": ["198.51.100.1", "198.51.100.2"]}})).await, 403);
    assert_eq!(patch(json!({"spec": {"externalIPs": null}})).await, 200);
}

#[tokio::test]
async fn without_roles_external_ips_are_free() {
    let server = TestServer::new(Admission::default(), Authorization::AlwaysAllow).await;
    assert_eq!(external(&server, "a", "10.0.0.1", "tenant").await.0, 201);
}

#[tokio::test]
async fn no_request_deletes_the_objects_of_all_namespaces() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    server.make(SERVICES, service("web", json!({}))).await;
    let mut asked = 0;
    for path in [
        "/api/v1",
        "/apis/apps/v1",
        "/apis/discovery.k8s.io/v1",
        "/apis/networking.k8s.io/v1",
        "/apis/coordination.k8s.io/v1",
        "/apis/events.k8s.io/v1",
        "/apis/rbac.authorization.k8s.io/v1",
    ] {
        let found = server.send(admin(), "GET", path, "").await.body;
        for resource in found["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().expect("a name");
            let listed = resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list")));
            if resource["namespaced"] != json!(true) || !listed {
                continue;
            }
            let answer = server.send(admin(), "DELETE", &format!("{path}/{name}"), "").await;
            assert_eq!((answer.code, &answer.body["reason"]), (405, &json!("MethodNotAllowed")), "{path}/{name}");
            assert_eq!(answer.allow, "GET", "{path}/{name}");
            asked += 1;
        }
    }
    assert!(asked >= 10, "{asked}");
    assert_eq!(server.send(admin(), "GET", &format!("{SERVICES}/web"), "").await.code, 200);
}

#[tokio::test]
async fn a_collection_is_deleted_only_where_preconditions_hold() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let path = "/api/v1/namespaces/default/configmaps";
    let first = server.make(path, json!({"metadata": {"name": "a"}})).await;
    for precondition in [json!({"uid": "00000000-0000-0000-0000-000000000000"}), json!({"resourceVersion": "1"})] {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": precondition});
        let answer = server.send(admin(), "DELETE", path, options.to_string()).await;
        assert_eq!((answer.code, &answer.body["reason"]), (409, &json!("Conflict")), "{precondition}");
        assert_eq!(server.send(admin(), "GET", &format!("{path}/a"), "").await.code, 200);
    }
    let options = json!({"preconditions": {"uid": first["metadata"]["uid"]}});
    assert_eq!(
        server
            .send(admin(), "DELETE", &format!("{path}?fieldSelector=metadata.name%3Da"), options.to_string())
            .await
            .code,
        200
    );
    assert_eq!(server.send(admin(), "GET", &format!("{path}/a"), "").await.code, 404);
}

#[tokio::test]
async fn a_node_gets_only_tokens_that_end_with_a_pod_of_it() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    for node in ["a", "b"] {
        server.make(NODES, json!({"metadata": {"name": node}})).await;
    }
    for name in ["robot", "default", "other"] {
        server.make("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": name}})).await;
    }
    let audience =
        json!([{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}]);
    let mut uids = std::collections::HashMap::new();
    for (name, node, account, volumes) in
        [("mine", "a", "robot", audience), ("plain", "a", "", json!([])), ("theirs", "b", "robot", json!([]))]
    {
        let container = json!({"name": "c", "image": "x"});
        let spec =
            json!({"nodeName": node, "serviceAccountName": account, "containers": [container], "volumes": volumes});
        let pod = server.make(PODS, json!({"metadata": {"name": name}, "spec": spec})).await;
        uids.insert(name, pod["metadata"]["uid"].clone());
    }
    let ask = |account: &str, bound: Value, audiences: Value| {
        let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
        let request = json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "spec": {"boundObjectRef": bound, "audiences": audiences},
        });
        let server = &server;
        async move { server.send(user("system:node:a", &["system:nodes"]), "POST", &path, request.to_string()).await }
    };
    let pod = |name: &str, uid: &Value| json!({"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid});
    let table = [
        ("robot", pod("mine", &uids["mine"]), json!([]), 201),
        ("robot", pod("mine", &uids["mine"]), json!(["vault"]), 201),
        ("robot", pod("mine", &uids["mine"]), json!(["https://issuer.example"]), 403),
        ("default", pod("plain", &uids["plain"]), json!([]), 201),
        ("robot", Value::Null, json!([]), 403),
        ("default", Value::Null, json!([]), 403),
        ("robot", pod("mine", &Value::Null), json!([]), 403),
        ("robot", pod("mine", &json!("another")), json!([]), 403),
        ("robot", pod("theirs", &uids["theirs"]), json!([]), 403),
        ("robot", pod("plain", &uids["plain"]), json!([]), 403),
        ("other", pod("mine", &uids["mine"]), json!([]), 403),
        ("robot", json!({"kind": "Node", "apiVersion": "v1", "name": "a"}), json!([]), 403),
        ("robot", json!({"kind": "Secret", "apiVersion": "v1", "name": "s", "uid": "x"}), json!([]), 403),
        ("robot", pod("gone", &json!("x")), json!([]), 404),
    ];
    for (account, bound, audiences, code) in table {
        let answer = ask(account, bound.clone(), audiences).await;
        assert_eq!(answer.code, code, "{account} {bound}: {}", answer.body);
    }
}

/// Makes a user `editor` with the role `edit` in the namespace `default`: Pods and Deployments, but no
/// privileges of the host.
async fn let_editor_in(server: &TestServer) {
    let binding = json!({
        "metadata": {"name": "editor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "editor"}],
    });
    server.make("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding).await;
    let known = async {
        while server.send(user("editor", &["system:authenticated"]), "GET", PODS, "").await.code != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), known).await.expect("the role is known");
}

const APPS: &str = "/apis/apps/v1/namespaces/default";
const GRANT: &str = "fairlead.dev/host-privileges";

/// A Deployment or ReplicaSet whose Pods use the network of their Node.
fn privileged(name: &str, owner: Option<(&str, &Value)>) -> Value {
    let resources = json!({"limits": {"memory": "32Mi"}});
    let container = json!({
        "name": "c", "image": "host", "command": ["id"], "ports": [{"containerPort": 8080}], "resources": resources,
    });
    let spec = json!({"hostNetwork": true, "containers": [container]});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
    let mut object = json!({
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    if let Some((kind, owner)) = owner {
        object["metadata"]["ownerReferences"] = json!([owner_reference(kind, owner)]);
    }
    object
}

fn owner_reference(kind: &str, owner: &Value) -> Value {
    let (name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
    json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true})
}

fn is_granted(object: &Value) -> bool {
    object["metadata"]["annotations"][GRANT] == "granted"
}

/// Makes a ReplicaSet of a Deployment and a Pod of that, as controllers do, which may do everything.
/// Returns whether they were granted host privileges.
async fn of_controllers(server: &TestServer, name: &str, deployment: &Value) -> (bool, bool) {
    let mut set = privileged(name, Some(("Deployment", deployment)));
    set["spec"]["template"] = deployment["spec"]["template"].clone();
    let set = server.make(&format!("{APPS}/replicasets"), set).await;
    let mut pod = set["spec"]["template"].clone();
    pod["metadata"] = json!({"name": name, "ownerReferences": [owner_reference("ReplicaSet", &set)]});
    pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    let pod = server.make(PODS, pod).await;
    (is_granted(&set), is_granted(&pod))
}

#[tokio::test]
async fn a_deployment_gives_its_pods_no_privileges_that_its_author_may_not_give() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let_editor_in(&server).await;
    let editor = || user("editor", &["system:authenticated"]);
    let deployments = format!("{APPS}/deployments");
    let made = server.send(editor(), "POST", &deployments, privileged("theirs", None).to_string()).await;
    assert_eq!(made.code, 201, "{}", made.body);
    assert!(!is_granted(&made.body));
    assert_eq!(of_controllers(&server, "theirs", &made.body).await, (false, false));

    let made = server.make(&deployments, privileged("ours", None)).await;
    assert!(is_granted(&made));
    assert_eq!(of_controllers(&server, "ours", &made).await, (true, true));
    // A Pod with another command is none of this ReplicaSet's template.
    let set = server.send(admin(), "GET", &format!("{APPS}/replicasets/ours"), "").await.body;
    let mut other = set["spec"]["template"].clone();
    other["metadata"] = json!({"name": "other", "ownerReferences": [owner_reference("ReplicaSet", &set)]});
    other["spec"]["containers"][0]["command"] = json!(["sh"]);
    assert!(!is_granted(&server.make(PODS, other.clone()).await));
    // Nor has a Pod the grant of an owner that its author names.
    other["metadata"]["name"] = json!("named");
    other["spec"] = set["spec"]["template"]["spec"].clone();
    let named = server.send(editor(), "POST", PODS, other.to_string()).await;
    assert!(named.code == 201 && !is_granted(&named.body), "{}", named.body);

    let path = format!("{deployments}/ours");
    let patch =
        |body: Value| server.send_as(editor(), "PATCH", &path, "application/merge-patch+json", body.to_string());
    let scaled = patch(json!({"spec": {"replicas": 3}})).await;
    assert!(scaled.code == 200 && is_granted(&scaled.body), "{}", scaled.body);
    let label = patch(json!({"spec": {"template": {"metadata": {"labels": {"new": "label"}}}}})).await;
    assert!(label.code == 200 && !is_granted(&label.body), "{}", label.body);
    let own = patch(json!({"metadata": {"annotations": {GRANT: "granted"}}})).await;
    assert_eq!(own.code, 403, "{}", own.body);
    // Nor does an administrator grant what another user wrote by restarting it.
    let restart = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}).to_string();
    for name in ["theirs", "ours"] {
        let path = format!("{deployments}/{name}");
        let again = server.send_as(admin(), "PATCH", &path, "application/merge-patch+json", restart.clone()).await;
        assert!(again.code == 200 && !is_granted(&again.body), "{}", again.body);
    }
}

#[tokio::test]
async fn an_apply_that_creates_needs_the_right_to_create() {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}]);
    let role = json!({"metadata": {"name": "patcher"}, "rules": rules});
    server.make("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", role).await;
    let binding = json!({
        "metadata": {"name": "patcher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "patcher"}],
    });
    server.make("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let patcher = || user("patcher", &["system:authenticated"]);
    let known = async {
        while server.send(patcher(), "GET", &format!("{maps}/none"), "").await.code == 403 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), known).await.expect("the role is known");
    let path = format!("{maps}/m?fieldManager=test");
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}}).to_string();
    let apply = |by| server.send_as(by, "PATCH", &path, "application/apply-patch+yaml", map.clone());
    let refused = apply(patcher()).await;
    let why = refused.body["message"].as_str().unwrap_or_default();
    assert!(refused.code == 403 && why.contains("cannot create resource \"configmaps\""), "{}", refused.body);
    assert_eq!(apply(admin()).await.code, 201);
    assert_eq!(apply(patcher()).await.code, 200, "what is there needs no right to create");
}

#[tokio::test]
async fn a_deployment_with_an_image_is_granted_privileges_where_nodes_run_images() {
    for grants_for_images in [false, true] {
        let admission = Admission { grants_for_images, ..Admission::default() };
        let server = TestServer::new(admission, Authorization::Rbac).await;
        let_editor_in(&server).await;
        let deployments = format!("{APPS}/deployments");
        let mut deployment = privileged("theirs", None);
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("example.com/web:1");
        let editor = user("editor", &["system:authenticated"]);
        let made = server.send(editor, "POST", &deployments, deployment.to_string()).await;
        assert_eq!(made.code, 201, "{}", made.body);
        assert!(!is_granted(&made.body));
        assert_eq!(of_controllers(&server, "theirs", &made.body).await, (false, false));

        deployment["metadata"]["name"] = json!("ours");
        let made = server.make(&deployments, deployment).await;
        assert_eq!(is_granted(&made), grants_for_images);
        assert_eq!(of_controllers(&server, "ours", &made).await, (grants_for_images, grants_for_images));
    }
}
