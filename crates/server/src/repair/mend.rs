//! Does what a pass found necessary, if the objects concerned are still as the pass saw them.

use std::net::IpAddr;

use fairlead_api::Value;
use fairlead_api::alloc::{self, NodePorts};
use fairlead_api::repair::{Finding, Mend, Owner, Parent, PortMap};
use fairlead_api::{Failure, Look};
use fairlead_store::{Guard, Outcome, Revision, Txn, Write};

use super::kinds;
use super::snapshot::{map_key, read_map};
use crate::read::unavailable;
use crate::{Inner, clock, object, write};

/// Mends one IPAddress object; says whether it did.
pub(super) async fn address(server: &Inner, mend: &Mend) -> bool {
    let done = match mend {
        Mend::Create(ip, owner) => create(server, *ip, owner).await,
        Mend::Point(ip, revision, owner) => point(server, *ip, Revision(*revision), owner).await,
        Mend::Delete(name, revision, parent) => delete(server, name, Revision(*revision), parent.as_ref()).await,
        Mend::Nothing | Mend::SetPort(_) | Mend::ClearPort(_) | Mend::NewMap => Ok(false),
    };
    done.unwrap_or_else(|failure| {
        tracing::warn!(why = failure.message, "an IPAddress cannot be repaired");
        server.metrics.repair.failed_address();
        false
    })
}

async fn commit(server: &Inner, guards: Vec<Guard>, write: Write) -> Result<bool, Failure> {
    let outcome = server.store.commit(Txn { guards, writes: vec![write] }).await.map_err(unavailable)?;
    Ok(matches!(outcome, Outcome::Done(_)))
}

fn key(name: &str) -> Box<str> {
    object::key(&kinds::IP_ADDRESS, "", name)
}

fn stands(owner: &Owner) -> Guard {
    Guard::At(object::key(&kinds::SERVICE, &owner.namespace, &owner.name), Revision(owner.revision))
}

async fn create(server: &Inner, ip: IpAddr, owner: &Owner) -> Result<bool, Failure> {
    let mut address = alloc::ip_address_object(ip, &owner.namespace, &owner.name);
    write::fill_system_fields(&mut address, &clock::now());
    let key = key(&ip.to_string());
    let guards = vec![Guard::Absent(key.clone()), stands(owner)];
    commit(server, guards, Write::Put(key, object::encode(&address))).await
}

/// In its place, so that nobody can take the address in between.
async fn point(server: &Inner, ip: IpAddr, revision: Revision, owner: &Owner) -> Result<bool, Failure> {
    let key = key(&ip.to_string());
    let entry = server.store.get(&key).await.map_err(unavailable)?;
    let Some(entry) = entry.filter(|entry| entry.revision == revision) else { return Ok(false) };
    let mut address = object::load(&kinds::IP_ADDRESS, &entry)?;
    let wanted = alloc::ip_address_object(ip, &owner.namespace, &owner.name);
    address.set("spec", wanted.at("spec").clone());
    let mut labels = address.at("metadata").map("labels").cloned().unwrap_or_default();
    labels.extend(wanted.at("metadata").map("labels").cloned().unwrap_or_default());
    write::set_metadata(&mut address, "labels", Value::Object(labels));
    let guards = vec![Guard::At(key.clone(), revision), stands(owner)];
    commit(server, guards, Write::Put(key, object::encode(&address))).await
}

async fn delete(server: &Inner, name: &str, revision: Revision, parent: Option<&Parent>) -> Result<bool, Failure> {
    let key = key(name);
    let mut guards = vec![Guard::At(key.clone(), revision)];
    guards.extend(parent.map(|parent| {
        let service = object::key(&kinds::SERVICE, &parent.namespace, &parent.name);
        match parent.revision {
            Some(revision) => Guard::At(service, Revision(revision)),
            None => Guard::Absent(service),
        }
    }));
    commit(server, guards, Write::Delete(key)).await
}

/// What was done to the node-port map.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ports {
    /// Ports were marked as used.
    pub(super) set: bool,
    /// Ports were marked as free.
    pub(super) cleared: bool,
}

/// Brings the node-port map up to date; `seen` is when it was written last as the pass saw it.
pub(super) async fn ports(server: &Inner, findings: &[Finding], seen: Option<Revision>) -> Ports {
    let changes: Vec<&Mend> = findings.iter().map(|finding| &finding.mend).filter(|mend| is_of_map(mend)).collect();
    if changes.is_empty() {
        return Ports::default();
    }
    let done = change_map(server, &changes, seen).await;
    done.unwrap_or_else(|failure| {
        tracing::warn!(why = failure.message, "the node port map cannot be repaired");
        server.metrics.repair.failed_ports();
        Ports::default()
    })
}

fn is_of_map(mend: &Mend) -> bool {
    matches!(mend, Mend::SetPort(_) | Mend::ClearPort(_) | Mend::NewMap)
}

async fn change_map(server: &Inner, changes: &[&Mend], seen: Option<Revision>) -> Result<Ports, Failure> {
    let range = &server.options.settings.node_ports;
    let _lock = server.node_ports.lock().await;
    let entry = server.store.get(&map_key()).await.map_err(unavailable)?;
    let unchanged = entry.as_ref().map(|entry| entry.revision) == seen;
    let stored = read_map(entry.as_deref(), range);
    let mut ports = match &stored {
        PortMap::Read(ports) => ports.clone(),
        PortMap::Damaged if !unchanged => return Ok(Ports::default()),
        PortMap::Absent | PortMap::Damaged => NodePorts::new(range.clone()),
    };
    // To mark a port that meanwhile was taken does no harm, but one that looked leaked may meanwhile be somebody's.
    for change in changes {
        match change {
            Mend::SetPort(port) => _ = ports.take(*port),
            Mend::ClearPort(port) if unchanged => ports.release(*port),
            _ => {}
        }
    }
    if stored == PortMap::Read(ports.clone()) {
        return Ok(Ports::default());
    }
    let (guard, old) = match &entry {
        Some(entry) => (Guard::At(map_key(), entry.revision), serde_json::from_slice(&entry.json).unwrap_or_default()),
        None => (Guard::Absent(map_key()), Value::Null),
    };
    let done = commit(server, vec![guard], Write::Put(map_key(), object::encode(&ports.write(old)))).await?;
    Ok(Ports { set: done, cleared: done && unchanged })
}
