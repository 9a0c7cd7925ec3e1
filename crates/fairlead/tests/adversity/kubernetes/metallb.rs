//! Can `fairlead balancer` take MetalLB's place on a real Kubernetes? It must find the pools where MetalLB's users keep them, in
//! objects of kinds that only a real API server can learn, and follow their changes.

use std::process::Command;
use std::time::Instant;

use fairlead_kernel::netns::Namespace;
use fairlead_testkit::https::Client;
use fairlead_testkit::{Component, Etcd, need};
use serde_json::{Value, json};

use super::{KubeApiserver, SERVICES, send};
use crate::{PATIENCE, server};

const KINDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "/apis/metallb.io/v1beta1";
const POOLS: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools";
const ADVERTISEMENTS: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system/l2advertisements";

#[test]
fn load_balancers_of_a_kubernetes_get_addresses_of_metallbs_pools() {
    let test = "load_balancers_of_a_kubernetes_get_addresses_of_metallbs_pools";
    if !["root", "ip", "etcd", "kube-apiserver"].iter().all(|what| need(test, what)) {
        return;
    }
    // It guards its addresses in the kernel: that of a machine of its own.
    let machine = Namespace::unnamed().expect("root may make one");
    machine.run(give_addresses).expect("a thread there");
}

fn give_addresses() {
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip runs");
    assert!(up.success());
    let etcd = Etcd::start();
    let ours = server(&["--etcd-servers", &etcd.url()]);
    let theirs = KubeApiserver::start(&etcd, &ours);
    let client = &theirs.client;
    learn(client, "IPAddressPool", "ipaddresspools");
    learn(client, "L2Advertisement", "l2advertisements");
    send(client, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": "metallb-system"}}), 201);
    make_pool(client, "usual", "198.51.100.10-198.51.100.11", true);
    make_pool(client, "special", "203.0.113.8/30", false);
    let advertisement = json!({
        "apiVersion": "metallb.io/v1beta1", "kind": "L2Advertisement", "metadata": {"name": "all"},
        "spec": {"ipAddressPools": ["usual", "special"]},
    });
    send(client, "POST", ADVERTISEMENTS, &advertisement, 201);

    let kubeconfig = theirs.kubeconfig();
    let flags = ["balancer", "--node-name", "node-1", "--balancer-bind-address=", "--kubeconfig", &kubeconfig];
    let balancer = Component::start(env!("CARGO_BIN_EXE_fairlead"), &flags);
    let check = |name: &str, expected: &str| becomes(client, name, expected, &balancer);
    make(client, "first", &json!({}));
    check("first", "198.51.100.10");
    make(client, "chosen", &json!({"metallb.io/address-pool": "special"}));
    check("chosen", "203.0.113.8");
    make(client, "asking", &json!({"metallb.io/loadBalancerIPs": "203.0.113.10"}));
    check("asking", "203.0.113.10");
    make(client, "second", &json!({}));
    check("second", "198.51.100.11");
    make(client, "late", &json!({}));
    check("late", "");
    let more = json!({"spec": {"addresses": ["198.51.100.10-198.51.100.12"]}});
    send(client, "PATCH", &format!("{POOLS}/usual"), &more, 200);
    check("late", "198.51.100.12");
    send(client, "DELETE", &format!("{SERVICES}/first"), &Value::Null, 200);
    make(client, "next", &json!({}));
    check("next", "198.51.100.10");
}

/// Has the API server know a kind of MetalLB's, and waits until it serves it.
fn learn(client: &Client, kind: &str, plural: &str) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.metallb.io")},
        "spec": {
            "group": "metallb.io", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    send(client, "POST", KINDS, &definition, 201);
    let served = || client.get(GROUP).is_ok_and(|answer| answer.body.contains(&format!("{plural:?}")));
    let listed = || client.get(&format!("{GROUP}/{plural}")).is_ok_and(|answer| answer.status == 200);
    wait(|| served() && listed(), || format!("{kind} is not served"));
}

fn make_pool(client: &Client, name: &str, addresses: &str, automatic: bool) {
    let pool = json!({
        "apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "metadata": {"name": name},
        "spec": {"addresses": [addresses], "autoAssign": automatic},
    });
    send(client, "POST", POOLS, &pool, 201);
}

fn make(client: &Client, name: &str, annotations: &Value) {
    let service = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    send(client, "POST", SERVICES, &service, 201);
}

/// Waits until a Service has an address; if none is expected, until it is told that there is none.
#[track_caller]
fn becomes(client: &Client, name: &str, expected: &str, balancer: &Component) {
    let ingress = || {
        let service = send(client, "GET", &format!("{SERVICES}/{name}"), &Value::Null, 200);
        service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap_or_default().to_owned()
    };
    let told = || {
        let path = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}");
        client.get(&path).is_ok_and(|answer| answer.body.contains("SyncLoadBalancerFailed"))
    };
    let holds = || ingress() == expected && (!expected.is_empty() || told());
    wait(holds, || format!("{name} has {:?}, not {expected:?}\n{}", ingress(), balancer.log()));
}

#[track_caller]
fn wait(holds: impl Fn() -> bool, otherwise: impl Fn() -> String) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{}", otherwise());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
