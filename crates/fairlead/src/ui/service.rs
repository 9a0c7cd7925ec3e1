//! One Service: what it is, where it is reached, where its connections go and how many, what is wrong with it, what was said of it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::source::Key;
use fairlead_api::view::{Endpoint, EndpointSlice, Family, Service, ServicePort};
use fairlead_api::weights::{self, SliceWeights};
use fairlead_api::{Failure, Look, kinds};
use fairlead_cluster::Selection;
use fairlead_plan::FrontendKey;
use fairlead_server::pages::nothing;
use serde_json::{Value, json};

use super::Ui;
use super::board::Shared;
use super::traffic::{Counted, merged};

#[cfg(test)]
mod tests;

/// How long a Service that was just made may take to be known here.
const PATIENCE: Duration = Duration::from_secs(2);
/// At most so many Events are told, the newest.
const EVENTS: usize = 100;

/// Everything about a Service.
pub(super) async fn answer(ui: &Ui, namespace: &str, name: &str) -> Result<Value, Failure> {
    if namespace.is_empty() || name.is_empty() {
        return Err(nothing(&format!("services/{namespace}/{name}")));
    }
    let mut object = ui.cluster.get(&kinds::SERVICE, namespace, name).await?;
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let key = Arc::new(Key::new(namespace, name));
    let board = ui.board.open().await?;
    let row = row(board, &key).await?;
    let (counted, events) = tokio::join!(Counted::ask(&ui.here), events(ui, namespace, name));
    let objects = board.objects();
    let service = objects.service(&key).cloned().ok_or_else(not_yet)?;
    let endpoints: Vec<Value> = objects.slices_of(&key).flat_map(|slice| endpoints(slice, &key, &counted)).collect();
    let row: Value = serde_json::from_slice(&row).unwrap_or_default();
    Ok(json!({
        "row": row,
        "object": object,
        "endpoints": endpoints,
        "frontends": frontends(&service, &counted),
        "findings": fairlead_explain::check(&key, &objects).to_json(),
        "events": events?,
    }))
}

/// Its row, which may be on its way.
async fn row(board: &Shared, key: &Key) -> Result<Bytes, Failure> {
    let mut moved = board.moved();
    let found = async {
        loop {
            if let Some(row) = board.rows().get(key) {
                return Some(row.clone());
            }
            moved.changed().await.ok()?;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.ok().flatten().ok_or_else(not_yet)
}

fn not_yet() -> Failure {
    Failure::new(503, "ServiceUnavailable", "this Service is not known here yet: try again in a moment")
}

/// The endpoints of a slice, each with each port.
fn endpoints(slice: &EndpointSlice, service: &Arc<Key>, counted: &Counted) -> Vec<Value> {
    let weights = slice.metadata.annotations.get(weights::WEIGHT).map(|text| SliceWeights::read(text, |_| ()));
    let weights = weights.unwrap_or_default();
    let one = |endpoint: &Endpoint| {
        let address = endpoint.addresses.first().map_or("", String::as_str);
        let ip: Option<IpAddr> = address.parse().ok();
        let ready = endpoint.conditions.ready.unwrap_or(true);
        let about = json!({
            "address": address,
            "ready": ready,
            "serving": endpoint.conditions.serving.unwrap_or(ready),
            "terminating": endpoint.conditions.terminating.unwrap_or(false),
            "node": endpoint.node_name,
            "target": endpoint.target_ref.as_ref().map(|target| format!("{}/{}", target.kind.to_lowercase(), target.name)),
            "zone": endpoint.zone,
            "weight": ip.map_or(weights::DEFAULT, |ip| weights.of(ip)),
        });
        let ports = slice.ports.iter().map(move |port| {
            let number = port.port.and_then(|number| u16::try_from(number).ok());
            let name = port.name.as_deref().unwrap_or_default();
            let at = ip.zip(number).map(|(ip, number)| SocketAddr::new(ip, number));
            let place =
                json!({"port": number, "portName": name, "protocol": port.protocol.unwrap_or_default().as_str()});
            merged(merged(about.clone(), place), counted.endpoint(service, name, at))
        });
        ports.collect::<Vec<Value>>()
    };
    slice.endpoints.iter().flat_map(one).collect()
}

/// Where a Service is reached.
fn frontends(service: &Service, counted: &Counted) -> Vec<Value> {
    let spec = &service.spec;
    let balanced = service.status.load_balancer.ingress.iter().map(|ingress| ingress.ip.as_str());
    let cluster = spec.cluster_ips.iter().map(String::as_str);
    let external = spec.external_ips.iter().map(String::as_str);
    let addresses = cluster.map(|ip| (ip, "clusterIP")).chain(external.map(|ip| (ip, "externalIP")));
    let addresses: Vec<(&str, &str)> = addresses.chain(balanced.map(|ip| (ip, "loadBalancerIP"))).collect();
    let mut found = Vec::new();
    for port in &spec.ports {
        let places = addresses.iter().filter_map(|(ip, kind)| Some((ip.parse().ok()?, *kind)));
        found.extend(places.map(|(ip, kind)| address(ip, kind, port, counted)));
        found.extend((port.node_port > 0).then(|| node_port(port, counted)));
    }
    found
}

fn address(ip: IpAddr, kind: &str, port: &ServicePort, counted: &Counted) -> Value {
    let number = u16::try_from(port.port).unwrap_or_default();
    let key = FrontendKey::Address { ip, protocol: port.protocol, port: number };
    let about = json!({"address": ip.to_string(), "port": number, "protocol": port.protocol.as_str(), "kind": kind});
    merged(about, counted.frontend(&[key]))
}

/// Any address of any Node.
fn node_port(port: &ServicePort, counted: &Counted) -> Value {
    let number = u16::try_from(port.node_port).unwrap_or_default();
    let key = |family| FrontendKey::NodePort { family, protocol: port.protocol, port: number };
    let about = json!({"address": "*", "port": number, "protocol": port.protocol.as_str(), "kind": "nodePort"});
    merged(about, counted.frontend(&[key(Family::V4), key(Family::V6)]))
}

/// What was said of it, the newest first.
async fn events(ui: &Ui, namespace: &str, name: &str) -> Result<Vec<Value>, Failure> {
    let about = format!("involvedObject.kind=Service,involvedObject.name={name}");
    let selection = Selection::all(&kinds::EVENT).in_namespace(namespace).with_fields(about);
    let list = ui.cluster.list(&selection).await?;
    let read = list.objects.iter().filter_map(|object| serde_json::from_slice::<Value>(&object.json).ok());
    let mut events: Vec<Value> = read.map(|event| said(&event)).collect();
    events.sort_by(|a, b| b.text("last").cmp(a.text("last")));
    events.truncate(EVENTS);
    Ok(events)
}

fn said(event: &Value) -> Value {
    let times = ["lastTimestamp", "eventTime", "firstTimestamp"].into_iter().map(|field| event.text(field));
    let last = times.chain([event.at("metadata").text("creationTimestamp")]).find(|time| !time.is_empty());
    json!({
        "type": event.text("type"), "reason": event.text("reason"), "message": event.text("message"),
        "count": event.int("count").max(1), "last": last,
    })
}
