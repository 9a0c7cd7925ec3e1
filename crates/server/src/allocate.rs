//! Addresses and node ports of Services: makes the ledger for a write from the store, and turns what the rules noted in it
//! into writes of the same transaction, so that an address is never taken without its Service.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use fairlead_api::alloc::{self, Ledger, NodePorts};
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, kinds};
use fairlead_store::{Backend, Entry, Error as StoreError, Event, Guard, Range, Revision, Write};
use ipnet::IpNet;
use tokio::sync::OwnedMutexGuard;

use crate::read::unavailable;
use crate::{Inner, object};

/// Where kube-apiserver keeps the node-port map.
const NODE_PORT_MAP: &str = "/registry/ranges/servicenodeports";
/// How long a broken watch of the addresses waits before it begins again.
const RETRY: Duration = Duration::from_millis(200);

/// What a write takes and gives back, to be committed with it.
#[derive(Debug, Default)]
pub(crate) struct Allocation {
    pub(crate) guards: Vec<Guard>,
    pub(crate) writes: Vec<Write>,
    /// Held until the commit, if the node-port map is written.
    pub(crate) lock: Option<OwnedMutexGuard<()>>,
}

/// Completes a Service that is created or changed. Other kinds need nothing.
pub(crate) async fn begin(
    server: &Inner,
    kind: &'static Kind,
    new: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Result<Allocation, Failure> {
    if kind.resource != "services" {
        return Ok(Allocation::default());
    }
    let exact = requested(server, new).await?;
    let settings = &server.options.settings;
    settle(
        server,
        new,
        old,
        dry_run,
        |service, ledger| match old {
            None => alloc::create(service, ledger, settings),
            Some(old) => alloc::update(service, old, ledger, settings),
        },
        &exact,
    )
    .await
}

/// The part of a new object that [`begin`] changes, as the client asked for it: another attempt begins with that.
pub(crate) fn asked(kind: &'static Kind, object: &Value) -> Option<Value> {
    (kind.resource == "services").then(|| object.at("spec").clone())
}

/// Gives back what a deleted Service had.
pub(crate) async fn release(server: &Inner, kind: &'static Kind, old: &Value) -> Result<Allocation, Failure> {
    if kind.resource != "services" {
        return Ok(Allocation::default());
    }
    let mut service = old.clone();
    let exact = Vec::new();
    let free = |service: &mut Value, ledger: &mut Ledger<'_>| {
        alloc::delete(service, ledger);
        Ok(())
    };
    settle(server, &mut service, Some(old), false, free, &exact).await
}

/// Runs the rules on a fresh ledger and books what they noted.
async fn settle(
    server: &Inner,
    service: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
    rules: impl FnOnce(&mut Value, &mut Ledger<'_>) -> Result<(), Failure>,
    exact: &[(IpAddr, bool)],
) -> Result<Allocation, Failure> {
    let needs_ports = has_ports(service) || old.is_some_and(has_ports);
    let mut allocation = Allocation::default();
    let mut map = None;
    let mut node_ports = NodePorts::new(server.options.settings.node_ports.clone());
    if needs_ports {
        allocation.lock = Some(server.node_ports.clone().lock_owned().await);
        map = server.store.get(NODE_PORT_MAP).await.map_err(unavailable)?;
        node_ports = read_map(server, map.as_deref())?;
    }
    let ranges = ranges(server).await?;
    let taken = |ip: IpAddr| match exact.iter().find(|(known, _)| *known == ip) {
        Some((_, taken)) => *taken,
        None => server.addresses.contains(ip),
    };
    let mut random = |below: u64| fastrand::u64(..below.max(1));
    let mut ledger = Ledger::new(&ranges, &taken, &mut random, node_ports);
    if dry_run {
        ledger = ledger.dry();
    }
    rules(service, &mut ledger)?;
    if !dry_run {
        book(&mut allocation, ledger, service, map.as_deref());
    }
    Ok(allocation)
}

fn book(allocation: &mut Allocation, ledger: Ledger<'_>, service: &Value, map: Option<&Entry>) {
    let metadata = service.at("metadata");
    let key = |ip: &IpAddr| object::key(&kinds::IP_ADDRESS, "", &ip.to_string());
    for ip in &ledger.taken_ips {
        let mut address = alloc::ip_address_object(*ip, metadata.text("namespace"), metadata.text("name"));
        crate::write::fill_system_fields(&mut address, &crate::clock::now());
        allocation.guards.push(Guard::Absent(key(ip)));
        allocation.writes.push(Write::Put(key(ip), object::encode(&address)));
    }
    for ip in &ledger.freed_ips {
        allocation.writes.push(Write::Delete(key(ip)));
    }
    if !ledger.ports_changed() {
        return;
    }
    allocation.guards.push(match map {
        Some(entry) => Guard::At(NODE_PORT_MAP.into(), entry.revision),
        None => Guard::Absent(NODE_PORT_MAP.into()),
    });
    let old = map.and_then(|entry| serde_json::from_slice(&entry.json).ok()).unwrap_or(Value::Null);
    let written = ledger.settle().write(old);
    allocation.writes.push(Write::Put(NODE_PORT_MAP.into(), object::encode(&written)));
}

fn read_map(server: &Inner, map: Option<&Entry>) -> Result<NodePorts, Failure> {
    let range = server.options.settings.node_ports.clone();
    let Some(entry) = map else { return Ok(NodePorts::new(range)) };
    let value: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
    NodePorts::read(&value, range)
        .ok_or_else(|| Failure::internal("the node port map in the store is of another range or damaged"))
}

/// Whether a Service has, or will have, node ports.
fn has_ports(service: &Value) -> bool {
    let spec = service.at("spec");
    matches!(spec.text("type"), "NodePort" | "LoadBalancer")
        || spec.int("healthCheckNodePort") != 0
        || spec.list("ports").iter().any(|port| port.int("nodePort") != 0)
}

/// The addresses a Service asks for by name, and whether each is taken right now.
async fn requested(server: &Inner, service: &Value) -> Result<Vec<(IpAddr, bool)>, Failure> {
    let spec = service.at("spec");
    let named = spec.texts("clusterIPs").into_iter().chain([spec.text("clusterIP")]);
    let mut found: Vec<(IpAddr, bool)> = Vec::new();
    for ip in named.filter_map(fairlead_api::ip::parse) {
        if found.iter().all(|(known, _)| *known != ip) {
            let key = object::key(&kinds::IP_ADDRESS, "", &ip.to_string());
            let taken = server.store.get(&key).await.map_err(unavailable)?.is_some();
            found.push((ip, taken));
        }
    }
    Ok(found)
}

/// The ranges of the ServiceCIDRs as they were read last, and the objects they were read from.
#[derive(Debug, Default)]
pub(crate) struct KnownRanges(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    entries: Vec<Arc<Entry>>,
    ranges: Arc<[IpNet]>,
}

impl KnownRanges {
    /// The ranges, if they were read from exactly these objects.
    fn of(&self, entries: &[Arc<Entry>]) -> Option<Arc<[IpNet]>> {
        let known = self.0.lock().expect("no panic while it is held");
        let same = |(a, b): (&Arc<Entry>, &Arc<Entry>)| a.key == b.key && a.revision == b.revision;
        let unchanged = known.entries.len() == entries.len() && known.entries.iter().zip(entries).all(same);
        unchanged.then(|| known.ranges.clone())
    }
}

/// The ranges of all ServiceCIDRs that are ready, the server's own first. Read again only when one of them has changed.
pub(crate) async fn ranges(server: &Inner) -> Result<Arc<[IpNet]>, Failure> {
    let range = Range { prefix: object::prefix(&kinds::SERVICE_CIDR, "").into(), ..Range::default() };
    let page = server.store.range(range).await.map_err(unavailable)?;
    if let Some(known) = server.ranges.of(&page.entries) {
        return Ok(known);
    }
    let ranges: Arc<[IpNet]> = read_ranges(server, &page.entries)?.into();
    *server.ranges.0.lock().expect("no panic while it is held") =
        Known { entries: page.entries, ranges: ranges.clone() };
    Ok(ranges)
}

fn read_ranges(server: &Inner, entries: &[Arc<Entry>]) -> Result<Vec<IpNet>, Failure> {
    let mut ranges: Vec<IpNet> = Vec::new();
    for entry in entries {
        let cidr = object::load(&kinds::SERVICE_CIDR, entry)?;
        if is_ready(&cidr) {
            ranges.extend(cidr.at("spec").texts("cidrs").into_iter().filter_map(|text| text.parse::<IpNet>().ok()));
        }
    }
    let own = &server.options.settings.service_ranges;
    ranges.sort_by_key(|range| !own.contains(range));
    Ok(ranges)
}

fn is_ready(cidr: &Value) -> bool {
    if !cidr.at("metadata").text("deletionTimestamp").is_empty() {
        return false;
    }
    let conditions = cidr.at("status").list("conditions");
    match conditions.iter().find(|condition| condition.text("type") == "Ready") {
        Some(condition) => condition.text("status") == "True",
        None => true,
    }
}

/// The addresses that are taken, followed in the store. May lag behind it by a moment: a guard on the address decides.
#[derive(Debug, Default)]
pub(crate) struct Addresses(RwLock<HashSet<IpAddr>>);

impl Addresses {
    /// Reads what is taken, and follows it until the server goes.
    pub(crate) async fn follow(store: Arc<dyn Backend>) -> Result<Arc<Addresses>, StoreError> {
        let addresses = Arc::new(Addresses::default());
        let revision = addresses.load(&*store).await?;
        let followed = Arc::downgrade(&addresses);
        tokio::spawn(async move {
            let mut from = revision;
            while let Some(addresses) = followed.upgrade() {
                from = addresses.until_broken(&*store, from).await;
                drop(addresses);
                tokio::time::sleep(RETRY).await;
            }
        });
        Ok(addresses)
    }

    fn contains(&self, ip: IpAddr) -> bool {
        self.0.read().expect("no panic while it is held").contains(&ip)
    }

    async fn load(&self, store: &dyn Backend) -> Result<Revision, StoreError> {
        let prefix = object::prefix(&kinds::IP_ADDRESS, "");
        let page = store.range(Range { prefix: prefix.into(), ..Range::default() }).await?;
        let all = page.entries.iter().filter_map(|entry| address(entry)).collect();
        *self.0.write().expect("no panic while it is held") = all;
        Ok(page.revision)
    }

    /// Follows changes; returns the revision to go on from.
    async fn until_broken(&self, store: &dyn Backend, from: Revision) -> Revision {
        let prefix = object::prefix(&kinds::IP_ADDRESS, "");
        let mut seen = from;
        let Ok(mut watch) = store.watch(&prefix, from).await else {
            return self.load(store).await.unwrap_or(from);
        };
        while let Ok(events) = watch.next().await {
            let mut taken = self.0.write().expect("no panic while it is held");
            for event in &events {
                note(&mut taken, event);
                seen = event.revision;
            }
        }
        self.load(store).await.unwrap_or(seen)
    }
}

fn note(taken: &mut HashSet<IpAddr>, event: &Event) {
    let Some(ip) = address(&event.entry) else { return };
    if event.deleted {
        taken.remove(&ip);
    } else {
        taken.insert(ip);
    }
}

/// The address an IPAddress object is named after.
fn address(entry: &Entry) -> Option<IpAddr> {
    entry.key.rsplit('/').next()?.parse().ok()
}
