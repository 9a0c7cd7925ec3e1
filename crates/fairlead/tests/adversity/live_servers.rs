//! Does the Service `kubernetes` lead to every API server that is alive, and to no other?

use std::thread;
use std::time::{Duration, Instant};

use fairlead_api::{kinds, proto};
use fairlead_testkit::{Etcd, Server, need};
use serde_json::{Value, json};

use super::etcd_keys::{etcdctl, put};
use super::server;

const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
/// A lease ends after 15 s; the rest is for machines with other work to do.
const PATIENCE: Duration = Duration::from_secs(120);

fn get(server: &Server, path: &str) -> Value {
    let answer = server.client().get(path).expect("the server answers");
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("an object")
}

fn texts(list: &Value, text: impl Fn(&Value) -> &Value) -> Vec<String> {
    let mut found: Vec<String> =
        list.as_array().into_iter().flatten().map(|one| text(one).as_str().unwrap_or_default().to_owned()).collect();
    found.sort();
    found
}

/// The addresses in the Endpoints and in the EndpointSlice.
fn endpoints(server: &Server) -> [Vec<String>; 2] {
    let (endpoints, slice) = (get(server, ENDPOINTS), get(server, SLICE));
    [
        texts(&endpoints["subsets"][0]["addresses"], |address| &address["ip"]),
        texts(&slice["endpoints"], |endpoint| &endpoint["addresses"][0]),
    ]
}

#[track_caller]
fn wait_for(server: &Server, wanted: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = endpoints(server);
        if found.iter().all(|found| found == wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "{found:?} instead of {wanted:?}\n{}", server.log());
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_service_kubernetes_leads_to_all_servers_that_are_alive() {
    let test = "the_service_kubernetes_leads_to_all_servers_that_are_alive";
    if !need(test, "etcd") {
        return;
    }
    let etcd = Etcd::start();
    let advertise = |ip: &str| server(&["--etcd-servers", &etcd.url(), "--advertise-address", ip]);
    let (first, mut second, mut third) = (advertise("192.0.2.1"), advertise("192.0.2.2"), advertise("192.0.2.3"));
    wait_for(&first, &["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
    second.kill();
    wait_for(&first, &["192.0.2.1", "192.0.2.3"]);
    third.terminate();
    wait_for(&first, &["192.0.2.1"]);
    second.restart();
    wait_for(&second, &["192.0.2.1", "192.0.2.2"]);
}

#[test]
fn a_kube_apiserver_with_a_lease_is_an_endpoint_as_well() {
    let test = "a_kube_apiserver_with_a_lease_is_an_endpoint_as_well";
    if !(need(test, "etcd") && need(test, "etcdctl")) {
        return;
    }
    let etcd = Etcd::start();
    let ours = server(&["--etcd-servers", &etcd.url(), "--advertise-address", "192.0.2.1"]);
    wait_for(&ours, &["192.0.2.1"]);
    // As kube-apiserver writes it.
    let key = "/registry/masterleases/192.0.2.9";
    let lease = json!({"metadata": {"generation": 3}, "subsets": [{"addresses": [{"ip": "192.0.2.9"}]}]});
    put(&etcd, key, &proto::wrap("v1", "Endpoints", &proto::write(kinds::ENDPOINTS.schema, &lease.into())));
    wait_for(&ours, &["192.0.2.1", "192.0.2.9"]);
    // kube-apiserver reads ours, which ends by itself.
    let own = super::etcd_keys::value(&etcd, "/registry/masterleases/192.0.2.1");
    assert_eq!((&own["kind"], &own["subsets"][0]["addresses"][0]["ip"]), (&json!("Endpoints"), &json!("192.0.2.1")));
    let found = etcdctl(&etcd, &["get", "-w", "json", "/registry/masterleases/192.0.2.1"], b"");
    let found: Value = serde_json::from_slice(&found).expect("etcdctl writes JSON");
    assert!(found["kvs"][0]["lease"].is_number(), "{found}");
    // It stops, and takes its lease along.
    etcdctl(&etcd, &["del", key], b"");
    wait_for(&ours, &["192.0.2.1"]);
    // Endpoints that somebody emptied are filled again.
    let mut connection = ours.client().connect(super::PATIENCE).expect("the server listens");
    let empty = br#"{"subsets": null}"#;
    let emptied = connection.send("PATCH", ENDPOINTS, "application/merge-patch+json", empty);
    assert_eq!(emptied.expect("the server answers").status, 200);
    wait_for(&ours, &["192.0.2.1"]);
}
