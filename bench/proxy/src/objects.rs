//! The Services that are measured on, with ten endpoints each.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fairlead_bench_kit::http::Client;
use fairlead_bench_kit::load::{self, Limit};
use serde_json::{Value, json};

use crate::world::{NODE, PORT, World};

const SERVICES: &str = "/api/v1/namespaces/bench/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/bench/endpointslices";
/// Endpoints of a Service.
pub(crate) const ENDPOINTS: u32 = 10;
/// Clients that fill the store.
const FILLERS: usize = 8;

/// Makes everything.
pub(crate) fn fill(world: &World, services: usize) -> anyhow::Result<()> {
    let target = &world.server.target;
    let mut client = Client::connect(target)?;
    client.expect("POST", "/api/v1/namespaces", json!({"metadata": {"name": "bench"}}).to_string().as_bytes())?;
    client.expect("POST", "/api/v1/nodes", json!({"metadata": {"name": "n1"}}).to_string().as_bytes())?;
    let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": NODE}]}});
    client.expect("PATCH", "/api/v1/nodes/n1/status", status.to_string().as_bytes())?;
    let all = Limit { time: Duration::MAX, count: services };
    let base = world.take_endpoints(ENDPOINTS * u32::try_from(services)?);
    load::run(target, FILLERS, all, |client, number| {
        client.expect("POST", SERVICES, service(number).to_string().as_bytes())?;
        let first = base + ENDPOINTS * u32::try_from(number)?;
        client.expect("POST", SLICES, slice(number, first).to_string().as_bytes()).map(drop)
    })?;
    Ok(())
}

/// Gives a Service the endpoints from a number on.
pub(crate) fn replace(client: &mut Client, service: usize, first: u32) -> anyhow::Result<()> {
    let path = format!("{SLICES}/s-{service}");
    client.expect("PUT", &path, slice(service, first).to_string().as_bytes()).map(drop)
}

/// The address of an endpoint.
pub(crate) fn endpoint(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 16, 0, 1).to_bits() + number)
}

/// Where a Service is.
pub(crate) fn virtual_address(service: usize) -> SocketAddr {
    let offset = u32::try_from(service).unwrap_or(0) + 2048;
    SocketAddr::from((Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + offset), 80))
}

fn service(number: usize) -> Value {
    let ports = json!([{"name": "http", "port": 80, "targetPort": PORT}]);
    let ip = virtual_address(number).ip().to_string();
    json!({"metadata": {"name": format!("s-{number}")}, "spec": {"clusterIP": ip, "ports": ports}})
}

fn slice(service: usize, first: u32) -> Value {
    let labels = json!({"kubernetes.io/service-name": format!("s-{service}")});
    let conditions = json!({"ready": true, "serving": true, "terminating": false});
    let endpoint =
        |number| json!({"addresses": [endpoint(number).to_string()], "conditions": conditions, "nodeName": "n2"});
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("s-{service}"), "labels": labels},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": PORT, "protocol": "TCP"}],
        "endpoints": (first..first + ENDPOINTS).map(endpoint).collect::<Vec<_>>(),
    })
}
