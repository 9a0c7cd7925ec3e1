//! What the node proxy of this machine counted: for each port of a Service, each endpoint and each address of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use fairlead_api::Failure;
use fairlead_api::source::Key;
use fairlead_api::view::Service;
use fairlead_proxy::{Tallies, Traffic};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Here, Ui, absent};

/// What was counted, if a proxy runs here that counts.
#[derive(Clone, Default)]
pub(super) struct Counted(Option<Arc<Tallies>>);

impl Counted {
    /// Asks the proxy; from now on packets and bytes are counted, too.
    pub(super) async fn ask(here: &Here) -> Counted {
        let view = here.proxy.clone();
        let asked = tokio::task::spawn_blocking(move || {
            if view.count_bytes() {
                tracing::info!(
                    "the kernel counts packets and bytes of connections from now on: somebody looks at the page"
                );
            }
            view.tallies()
        });
        Counted(asked.await.ok().flatten())
    }

    /// What an endpoint got: fields to be put beside others.
    pub(super) fn endpoint(&self, service: &Arc<Key>, port: &str, at: Option<SocketAddr>) -> Value {
        let Some(tallies) = &self.0 else { return unknown() };
        let found = at.and_then(|at| tallies.endpoints.get(&(service.clone(), Arc::from(port), at)));
        fields(found.copied().unwrap_or_default(), tallies.measured)
    }

    /// What was addressed to one of these.
    pub(super) fn frontend(&self, keys: &[fairlead_plan::FrontendKey]) -> Value {
        let Some(tallies) = &self.0 else { return unknown() };
        if !tallies.measured {
            return unknown();
        }
        let mut sum = Traffic::default();
        keys.iter().filter_map(|key| tallies.frontends.get(key)).for_each(|more| sum.add(more));
        fields(sum, true)
    }
}

fn unknown() -> Value {
    json!({
        "connections": null, "bytesIn": null, "bytesOut": null, "packetsIn": null, "packetsOut": null,
    })
}

fn fields(traffic: Traffic, measured: bool) -> Value {
    let back = traffic.back.filter(|_| measured);
    // Where directions are not told apart, all of it is what came in.
    let there = |all: u64, back: Option<u64>| measured.then(|| all.saturating_sub(back.unwrap_or_default()));
    json!({
        "connections": traffic.connections,
        "bytesIn": there(traffic.bytes, back.map(|back| back.bytes)),
        "bytesOut": back.map(|back| back.bytes),
        "packetsIn": there(traffic.packets, back.map(|back| back.packets)),
        "packetsOut": back.map(|back| back.packets),
    })
}

/// Everything that was counted on this Node.
pub(super) async fn answer(ui: &Ui) -> Result<Value, Failure> {
    let node = ui.here.proxy.node().ok_or_else(no_proxy)?;
    let Counted(Some(tallies)) = Counted::ask(&ui.here).await else { return Err(no_counters()) };
    let board = ui.board.open().await?;
    let objects = board.objects();
    let mut endpoints: BTreeMap<(&Key, &str), Vec<Value>> = BTreeMap::new();
    for ((service, port, at), traffic) in &tallies.endpoints {
        let place = json!({"address": at.ip().to_string(), "port": at.port()});
        endpoints.entry((service, port)).or_default().push(merged(place, fields(*traffic, tallies.measured)));
    }
    let services = tallies.services.iter().map(|((service, name), port)| {
        let label = objects.service(service).map_or_else(|| name.to_string(), |found| label(found, name));
        let mut value = json!({
            "namespace": &*service.namespace, "name": &*service.name, "port": label,
            "protocol": port.protocol.as_str(),
            "endpoints": endpoints.remove(&(&**service, &**name)).unwrap_or_default(),
        });
        value = merged(value, fields(port.traffic, tallies.measured));
        value
    });
    let services: Vec<Value> = services.collect();
    let mode = ui.here.proxy.mode().map(|mode| mode.as_str());
    let at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    Ok(json!({"at": at, "node": node, "mode": mode, "measured": tallies.measured, "services": services}))
}

/// A port as people name it: by its name, or by its number if it has none.
fn label(service: &Service, name: &str) -> String {
    let port = service.spec.ports.iter().find(|port| port.name == name);
    match port {
        Some(port) if name.is_empty() => port.port.to_string(),
        _ => name.to_owned(),
    }
}

/// The fields of both.
pub(super) fn merged(mut value: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (value.as_object_mut(), more) {
        fields.extend(more);
    }
    value
}

fn no_proxy() -> Failure {
    absent("no node proxy runs in this process, so nothing is counted here: `fairlead up` runs one, as root")
}

fn no_counters() -> Failure {
    Failure::new(503, "ServiceUnavailable", "the node proxy is busy or not ready yet: try again in a moment")
}
