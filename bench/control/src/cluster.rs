//! The cluster that is measured on: Nodes, Services, and five ready Pods for each.

use std::time::{Duration, Instant};

use anyhow::ensure;
use fairlead_bench_kit::http::{Client, Target};
use fairlead_bench_kit::load::{self, Limit};
use serde_json::{Value, json};

/// Pods of a Service.
pub(crate) const PODS: usize = 5;
pub(crate) const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";
const NODES: usize = 10;
/// Clients that fill the store.
const FILLERS: usize = 16;

/// Makes everything.
pub(crate) fn fill(target: &Target, services: usize) -> anyhow::Result<()> {
    let mut client = Client::connect(target)?;
    client.expect("POST", "/api/v1/namespaces", json!({"metadata": {"name": "bench"}}).to_string().as_bytes())?;
    for node in 0..NODES {
        let labels = json!({"topology.kubernetes.io/zone": format!("zone-{}", node % 3)});
        let node = json!({"metadata": {"name": format!("node-{node}"), "labels": labels}});
        client.expect("POST", "/api/v1/nodes", node.to_string().as_bytes())?;
    }
    let all = |count| Limit { time: Duration::MAX, count };
    load::run(target, FILLERS, all(services), |client, number| {
        let service = service(number).to_string();
        client.expect("POST", "/api/v1/namespaces/bench/services", service.as_bytes()).map(drop)
    })?;
    load::run(target, FILLERS, all(services * PODS), |client, number| {
        client.expect("POST", "/api/v1/namespaces/bench/pods", pod(number).to_string().as_bytes())?;
        set_ready(client, number, true)
    })?;
    Ok(())
}

/// Waits until every Service has all its endpoints.
pub(crate) fn wait(target: &Target, services: usize) -> anyhow::Result<()> {
    let (mut client, since) = (Client::connect(target)?, Instant::now());
    loop {
        let slices: Value = serde_json::from_slice(&client.expect("GET", SLICES, b"")?.body)?;
        let ready = slices["items"].as_array().into_iter().flatten().filter(|slice| {
            let ready = |endpoint: &&Value| endpoint["conditions"]["ready"] == true;
            slice["endpoints"].as_array().is_some_and(|endpoints| endpoints.iter().filter(ready).count() == PODS)
        });
        let count = ready.count();
        if count == services {
            return Ok(());
        }
        ensure!(since.elapsed() < Duration::from_secs(600), "{count} of {services} Services have their endpoints");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Changes whether a Pod is ready.
pub(crate) fn set_ready(client: &mut Client, pod: usize, ready: bool) -> anyhow::Result<()> {
    let ip = format!("10.{}.{}.{}", 128 + pod / 62_500, pod / 250 % 250, 1 + pod % 250);
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    let status = json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]});
    let path = format!("/api/v1/namespaces/bench/pods/{}/status", pod_name(pod));
    client.expect("PATCH", &path, json!({"status": status}).to_string().as_bytes()).map(drop)
}

pub(crate) fn pod_name(number: usize) -> String {
    format!("s-{}-{}", number / PODS, number % PODS)
}

fn service(number: usize) -> Value {
    let selector = json!({"app": format!("s-{number}")});
    let ports = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    json!({"metadata": {"name": format!("s-{number}")}, "spec": {"selector": selector, "ports": ports}})
}

fn pod(number: usize) -> Value {
    let labels = json!({"app": format!("s-{}", number / PODS), "tier": "web"});
    let containers = json!([{"name": "web", "image": "web", "ports": [{"name": "http", "containerPort": 8080}]}]);
    let spec = json!({"nodeName": format!("node-{}", number % NODES), "containers": containers});
    json!({"metadata": {"name": pod_name(number), "labels": labels}, "spec": spec})
}
