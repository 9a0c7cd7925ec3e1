//! The endpoints of the Service `kubernetes`: every API server that is alive.
//!
//! Servers that share a store each keep a lease in it, under kube-apiserver's keys and with its
//! lifetime, and all write the endpoints that the leases name
//! (pkg/controlplane/reconcilers/lease.go, LeaseEndpointReconciler). So Fairlead and kube-apiserver
//! agree when they use the same etcd. Where the store cannot be shared, the endpoint is this
//! server.

use std::collections::BTreeSet;
use std::time::Duration;

use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Look, kinds};
use fairlead_store::{Range, SharedStore, Txn, Watch, Write};

use crate::read::unavailable;
use crate::{Inner, Server, bootstrap, object};

/// The prefix of the leases; the address of a server follows.
const LEASES: &str = "/registry/masterleases/";
/// Lifetime of a lease after its last renewal, as kube-apiserver has it
/// (DefaultEndpointReconcilerTTL).
const LIFETIME: Duration = Duration::from_secs(15);
/// Time between two renewals: two of them may fail before the lease ends.
const RENEWAL: Duration = Duration::from_secs(5);
/// Time that removing the lease may take when the server ends. Without it the lease ends by itself.
const FAREWELL: Duration = Duration::from_secs(2);

impl Server {
    /// Renews this server's lease and keeps the endpoints of the Service `kubernetes` up to date
    /// until the server stops; then it is none of them any more.
    pub async fn keep_endpoints(self) {
        let server = &*self.inner;
        let Some(store) = server.store.shared() else { return };
        let mut timer = tokio::time::interval(RENEWAL);
        let mut leases = None;
        loop {
            let due = tokio::select! {
                () = server.stop.cancelled() => break,
                _ = timer.tick() => true,
                // A server that comes or goes is known at once.
                () = change(server, &mut leases) => false,
            };
            let done = async {
                if due {
                    renew(server, store).await?;
                }
                reconcile(server, Ports::Keep).await
            };
            if let Err(failure) = done.await {
                tracing::warn!(why = failure.message, "the endpoints of the Service kubernetes cannot be kept");
            }
        }
        let farewell = async {
            if let Some(address) = address(server) {
                let writes = vec![Write::Delete(format!("{LEASES}{address}").into())];
                server.store.commit(Txn { guards: Vec::new(), writes }).await.map_err(unavailable)?;
                reconcile(server, Ports::Keep).await?;
            }
            Ok::<_, Failure>(())
        };
        if !matches!(tokio::time::timeout(FAREWELL, farewell).await, Ok(Ok(()))) {
            tracing::warn!("this server stays an endpoint of the Service kubernetes until its lease ends");
        }
    }
}

/// Makes this server an endpoint, with its port.
pub(crate) async fn begin(server: &Inner) -> Result<(), Failure> {
    if let Some(store) = server.store.shared() {
        renew(server, store).await?;
    }
    reconcile(server, Ports::Own).await
}

/// The ports of the endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    /// The ports of this server. The endpoints have one list of ports for all servers, so the one
    /// that starts last decides.
    Own,
    /// The ports that are there.
    Keep,
}

/// The address of this server, if it may stand in Endpoints: a loopback address may not.
fn address(server: &Inner) -> Option<String> {
    let ip = server.options.advertise.ip().to_string();
    fairlead_api::ip::endpoint_reasons(&ip).is_empty().then_some(ip)
}

async fn renew(server: &Inner, store: &dyn SharedStore) -> Result<(), Failure> {
    let Some(address) = address(server) else { return Ok(()) };
    let lease = json!({
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {},
        "subsets": [{"addresses": [{"ip": address}]}],
    });
    store.put_for(&format!("{LEASES}{address}"), object::encode(&lease), LIFETIME).await.map_err(unavailable)
}

/// Writes the endpoints, if they are not as they should be.
async fn reconcile(server: &Inner, ports: Ports) -> Result<(), Failure> {
    let live = match server.store.shared() {
        Some(_) => leased(server).await?,
        None => address(server).into_iter().collect(),
    };
    let there = endpoints_there(server).await?;
    let wanted = match &there {
        // No lease at all means that something is wrong with the leases, or that all servers stop:
        // kube-apiserver leaves the endpoints alone as well.
        Some(there) if live.is_empty() && server.store.shared().is_some() => there.at("subsets").clone(),
        Some(there) => subsets(server, &live, there.list("subsets"), ports),
        None => subsets(server, &live, &[], ports),
    };
    let slice = slice(server, &wanted);
    let labels = json!({"endpointslice.kubernetes.io/skip-mirror": "true"});
    let metadata = json!({"name": "kubernetes", "namespace": "default", "labels": labels});
    let endpoints = json!({"metadata": metadata, "subsets": wanted});
    bootstrap::keep(server, &kinds::ENDPOINTS, endpoints).await?;
    bootstrap::keep(server, &kinds::ENDPOINT_SLICE, slice).await
}

/// The addresses of all servers that have a lease.
async fn leased(server: &Inner) -> Result<BTreeSet<String>, Failure> {
    let range = Range { prefix: LEASES.into(), ..Range::default() };
    let page = server.store.range(range).await.map_err(unavailable)?;
    let address = |json: &[u8]| {
        let lease: Value = serde_json::from_slice(json).ok()?;
        let ip = lease.list("subsets").first()?.list("addresses").first()?.text("ip").to_owned();
        fairlead_api::ip::endpoint_reasons(&ip).is_empty().then_some(ip)
    };
    Ok(page.entries.iter().filter_map(|entry| address(&entry.json)).collect())
}

async fn endpoints_there(server: &Inner) -> Result<Option<Value>, Failure> {
    let key = object::key(&kinds::ENDPOINTS, "default", "kubernetes");
    let entry = server.store.get(&key).await.map_err(unavailable)?;
    entry.map(|entry| object::load(&kinds::ENDPOINTS, &entry)).transpose()
}

/// The subsets that name the live servers: those that are there, as far as they are right.
fn subsets(server: &Inner, live: &BTreeSet<String>, there: &[Value], ports: Ports) -> Value {
    if live.is_empty() {
        return json!([]);
    }
    let own = json!([{"name": "https", "port": server.options.advertise.port(), "protocol": "TCP"}]);
    let (addresses, kept) = match there {
        [one] => (one.at("addresses").clone(), one.at("ports").clone()),
        _ => (Value::Null, Value::Null),
    };
    let ips = addresses.as_array().into_iter().flatten().map(|address| address.text("ip").to_owned());
    let ips: Vec<String> = ips.collect();
    let right = ips.len() == live.len() && ips.iter().all(|ip| live.contains(ip));
    let addresses = match right {
        // In another order, maybe: kube-apiserver compares sets, too.
        true => addresses,
        false => json!(live.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>()),
    };
    let ports = match ports {
        Ports::Keep if kept.as_array().is_some_and(|ports| !ports.is_empty()) => kept,
        _ => own,
    };
    json!([{"addresses": addresses, "ports": ports}])
}

/// The EndpointSlice of the same endpoints. It is of IPv4 and has addresses of that family alone,
/// unless all are of IPv6 (pkg/controlplane/reconcilers/endpointsadapter.go,
/// endpointSliceFromEndpoints).
fn slice(server: &Inner, subsets: &Value) -> Value {
    let subset = subsets.as_array().and_then(|subsets| subsets.first());
    let addresses = subset.map_or(&[][..], |subset| subset.list("addresses"));
    let v6 = |ip: &str| ip.contains(':');
    let all_v6 = match addresses {
        [] => server.options.advertise.is_ipv6(),
        _ => addresses.iter().all(|address| v6(address.text("ip"))),
    };
    let ips = addresses.iter().map(|address| address.text("ip")).filter(|ip| v6(ip) == all_v6);
    let endpoints: Vec<Value> = ips.map(|ip| json!({"addresses": [ip], "conditions": {"ready": true}})).collect();
    let own = json!([{"name": "https", "port": server.options.advertise.port(), "protocol": "TCP"}]);
    let labels = json!({"kubernetes.io/service-name": "kubernetes"});
    json!({
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "addressType": if all_v6 { "IPv6" } else { "IPv4" },
        "endpoints": endpoints,
        "ports": subset.map_or(own, |subset| subset.at("ports").clone()),
    })
}

/// Waits until the leases change. A watch that breaks is opened again after the next renewal.
async fn change(server: &Inner, watch: &mut Option<Watch>) {
    if watch.is_none() {
        let opened = async {
            let revision = server.store.revision().await?;
            server.store.watch(LEASES, revision).await
        };
        match opened.await {
            Ok(opened) => *watch = Some(opened),
            Err(_) => return std::future::pending().await,
        }
    }
    if let Some(open) = watch
        && open.next().await.is_err()
    {
        *watch = None;
        std::future::pending().await
    }
}
