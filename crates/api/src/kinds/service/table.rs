//! A Service as a row of `kubectl get`.

use crate::value::Value;

use super::spec;
use crate::kinds::Column;
use crate::{Look, age};

const fn column(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", format: "", description, priority: 0 }
}

/// The columns.
pub(super) const COLUMNS: &[Column] = &[
    Column { format: "name", ..column("Name", "The name, unique in its namespace.") },
    column("Type", "How the Service is exposed: ClusterIP, NodePort, LoadBalancer or ExternalName."),
    column("Cluster-IP", "The address inside the cluster, None for a headless Service."),
    column("External-IP", "Addresses outside the cluster at which the Service can be reached."),
    column("Port(s)", "The ports of the Service, with their node ports."),
    column("Age", "How long ago the Service was created."),
    Column { priority: 1, ..column("Selector", "The labels of the Pods that traffic goes to.") },
];

/// The cells.
pub(super) fn row(service: &Value, now: i64) -> Vec<Value> {
    let (metadata, spec) = (service.at("metadata"), service.at("spec"));
    vec![
        metadata.text("name").into(),
        spec.text("type").into(),
        spec.texts("clusterIPs").first().copied().unwrap_or("<none>").into(),
        external_ips(service).into(),
        or_none(spec.list("ports").iter().map(port).collect()).into(),
        age::age(metadata.text("creationTimestamp"), now).into(),
        selector(spec).into(),
    ]
}

fn external_ips(service: &Value) -> String {
    let spec = service.at("spec");
    let external = spec.texts("externalIPs").into_iter().map(str::to_owned);
    match spec.text("type") {
        spec::CLUSTER_IP | spec::NODE_PORT => or_none(external.collect()),
        spec::LOAD_BALANCER => {
            let mut all = ingress(service);
            all.extend(external);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        spec::EXTERNAL_NAME => spec.text("externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// What the load balancer reported, sorted and without repetition.
fn ingress(service: &Value) -> Vec<String> {
    let entries = service.at("status").at("loadBalancer").list("ingress").iter();
    let texts = entries.map(|entry| match entry.text("ip") {
        "" => entry.text("hostname"),
        ip => ip,
    });
    let mut all: Vec<String> = texts.filter(|text| !text.is_empty()).map(str::to_owned).collect();
    all.sort();
    all.dedup();
    all
}

fn port(port: &Value) -> String {
    let (number, protocol) = (port.int("port"), port.text("protocol"));
    match port.int("nodePort") {
        node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn selector(spec: &Value) -> String {
    let pairs = spec.map("selector").into_iter().flatten();
    or_none(pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect())
}

fn or_none(texts: Vec<String>) -> String {
    if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") }
}
