//! Is etcd used as kube-apiserver uses it? Keys and values are looked at with etcdctl, and written by another hand.

use std::io::Write;
use std::process::{Command, Stdio};

use fairlead_api::{kinds, proto};
use fairlead_testkit::need::program;
use fairlead_testkit::{Etcd, need};
use serde_json::{Value, json};

use super::mirror::Mirror;
use super::{PATIENCE, accounts, server};

/// The key of the node-port map.
pub(crate) const NODE_PORTS: &str = "/registry/ranges/servicenodeports";

/// An object in etcd, in either of its forms.
pub(crate) fn value(etcd: &Etcd, key: &str) -> Value {
    let mut bytes = etcdctl(etcd, &["get", "--print-value-only", key], b"");
    if bytes.starts_with(b"k8s\0") {
        // The line break is etcdctl's.
        bytes.pop();
        bytes = fairlead_server::read_foreign(key, &bytes).expect("an object").json.to_vec();
    }
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{key}: {error}: {}", String::from_utf8_lossy(&bytes)))
}

pub(crate) fn put(etcd: &Etcd, key: &str, value: &[u8]) {
    etcdctl(etcd, &["put", key], value);
}

fn keys(etcd: &Etcd) -> Vec<String> {
    let bytes = etcdctl(etcd, &["get", "--keys-only", "--prefix", "/"], b"");
    let text = String::from_utf8(bytes).expect("keys are text");
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn etcdctl(etcd: &Etcd, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program("etcdctl").expect("the test asked for etcdctl"))
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &etcd.url()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("etcdctl is there");
    child.stdin.take().expect("asked for").write_all(input).expect("etcdctl reads");
    let output = child.wait_with_output().expect("it is ours");
    assert!(output.status.success(), "{arguments:?}");
    output.stdout
}

#[test]
fn keys_and_values_are_those_of_kubernetes() {
    let test = "keys_and_values_are_those_of_kubernetes";
    if !(need(test, "etcd") && need(test, "etcdctl")) {
        return;
    }
    let etcd = Etcd::start();
    let server = server(&["--etcd-servers", &etcd.url()]);
    let mut connection = server.client().connect(PATIENCE).expect("the server listens");
    let create = |connection: &mut fairlead_testkit::https::connection::Connection, path: &str, object: Value| {
        let answer = connection.send("POST", path, "application/json", object.to_string().as_bytes());
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
        answer.json()
    };
    let meta = |name: &str| json!({"metadata": {"name": name}});
    let ns = "/api/v1/namespaces/default";
    let spec = json!({"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let service = create(&mut connection, &format!("{ns}/services"), spec);
    create(&mut connection, &format!("{ns}/endpoints"), meta("web"));
    create(&mut connection, &format!("{ns}/configmaps"), meta("settings"));
    let slice = json!({"metadata": {"name": "web-1"}, "addressType": "IPv4", "endpoints": []});
    create(&mut connection, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice);
    create(&mut connection, "/apis/coordination.k8s.io/v1/namespaces/default/leases", meta("lock"));
    let ip = service["spec"]["clusterIP"].as_str().expect("an address");
    let expected = [
        "/registry/services/specs/default/web",
        "/registry/services/specs/default/kubernetes",
        "/registry/services/endpoints/default/web",
        "/registry/configmaps/default/settings",
        "/registry/endpointslices/default/web-1",
        "/registry/leases/default/lock",
        "/registry/namespaces/default",
        "/registry/servicecidrs/kubernetes",
        &format!("/registry/ipaddresses/{ip}"),
        NODE_PORTS,
    ];
    let found = keys(&etcd);
    for key in expected {
        assert!(found.iter().any(|other| other == key), "{key} is not among {found:?}");
        let stored = value(&etcd, key);
        assert_eq!(stored["metadata"]["resourceVersion"], Value::Null, "{key}");
        assert!(stored["kind"].is_string() && stored["apiVersion"].is_string(), "{key}: {stored}");
    }
    let mut stored = value(&etcd, "/registry/services/specs/default/web");
    stored["metadata"]["resourceVersion"] = service["metadata"]["resourceVersion"].clone();
    assert_eq!(stored, service, "what is stored, and what was answered");
    accounts::balance(&server.client(), &value(&etcd, NODE_PORTS));
}

#[test]
fn a_service_stored_as_protobuf_by_another_is_listed_watched_and_patched() {
    let test = "a_service_stored_as_protobuf_by_another_is_listed_watched_and_patched";
    if !(need(test, "etcd") && need(test, "etcdctl")) {
        return;
    }
    let etcd = Etcd::start();
    let server = server(&["--etcd-servers", &etcd.url()]);
    let client = server.client();
    let mut mirror = Mirror::new(client.clone());
    let foreign = json!({
        "metadata": {
            "name": "foreign", "namespace": "default", "uid": "6bd2bd2a-0000-4000-8000-000000000001",
            "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"from": "elsewhere"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
            "ports": [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": "http"}],
            "selector": {"app": "web"},
        },
        "status": {"loadBalancer": {}},
    });
    let key = "/registry/services/specs/default/foreign";
    put(&etcd, key, &proto::wrap("v1", "Service", &proto::write(kinds::SERVICE.schema, &foreign.clone().into())));
    mirror.until("default/foreign");
    let seen = &mirror.objects["default/foreign"];
    assert_eq!(seen["spec"], foreign["spec"]);
    assert_eq!(accounts::list(&client, "/api/v1/services?labelSelector=from=elsewhere").0["default/foreign"], *seen);

    let mut connection = client.connect(PATIENCE).expect("the server listens");
    let path = "/api/v1/namespaces/default/services/foreign";
    let patch = br#"{"spec": {"selector": {"app": null, "tier": "front"}}}"#;
    let patched = connection.send("PATCH", path, "application/merge-patch+json", patch).expect("the server answers");
    assert_eq!(patched.status, 200, "{}", String::from_utf8_lossy(&patched.body));
    assert_eq!(patched.json()["spec"]["selector"], json!({"tier": "front"}));
    assert_eq!(value(&etcd, key)["metadata"]["uid"], foreign["metadata"]["uid"]);
    assert!(mirror.catch_up(accounts::revision(&patched.json())));
    assert_eq!(mirror.objects["default/foreign"], accounts::plain(&patched.json()));
}

#[test]
fn what_cannot_be_read_in_etcd_hides_nothing_else() {
    let test = "what_cannot_be_read_in_etcd_hides_nothing_else";
    if !(need(test, "etcd") && need(test, "etcdctl")) {
        return;
    }
    let etcd = Etcd::start();
    let server = server(&["--etcd-servers", &etcd.url()]);
    let client = server.client();
    put(&etcd, "/registry/configmaps/default/broken", b"k8s\0\xff\xff\xff");
    put(&etcd, "/registry/services/specs/default/broken", b"{\"kind\":");
    for path in ["/api/v1/namespaces/default/services/broken", "/api/v1/services", "/api/v1/configmaps"] {
        let answer = client.get(path).expect("the server answers");
        assert_eq!(answer.status, 500, "{path}: {}", answer.body);
        assert!(answer.body.contains("\"kind\":\"Status\""), "{path}: {}", answer.body);
    }
    assert_eq!(client.get("/api/v1/namespaces").expect("the server answers").status, 200);
    etcdctl(&etcd, &["del", "/registry/services/specs/default/broken"], b"");
    assert_eq!(client.get("/api/v1/services").expect("the server answers").status, 200);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
