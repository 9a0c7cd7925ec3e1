//! All that allocations are about, as it was at one revision: a Service is never seen without what came with it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use fairlead_api::Value;
use fairlead_api::alloc::NodePorts;
use fairlead_api::repair::{self, Address, Findings, HandMade, PortMap, Seen, Service, World};
use fairlead_api::{Failure, Kind, Look};
use fairlead_store::{Backend, Entry, Error, Range, Revision};
use ipnet::IpNet;

use super::kinds;
use crate::object;
use crate::read::unavailable;

/// How often it is begun anew when the store has forgotten the revision meanwhile.
const ATTEMPTS: usize = 3;

/// What is read.
pub(super) struct Snapshot {
    services: Vec<Arc<Entry>>,
    addresses: Vec<Arc<Entry>>,
    cidrs: Vec<Arc<Entry>>,
    slices: Vec<Arc<Entry>>,
    endpoints: Vec<Arc<Entry>>,
    map: Option<Arc<Entry>>,
    revision: Revision,
}

/// The key of the node-port map.
pub(super) fn map_key() -> Box<str> {
    format!("/registry/{}", NodePorts::KEY).into()
}

impl Snapshot {
    pub(super) async fn read(store: &dyn Backend) -> Result<Snapshot, Failure> {
        let mut attempt = 1;
        loop {
            match Snapshot::try_read(store).await {
                Err(Error::Compacted { .. }) if attempt < ATTEMPTS => attempt += 1,
                other => return other.map_err(unavailable),
            }
        }
    }

    async fn try_read(store: &dyn Backend) -> Result<Snapshot, Error> {
        let range = |prefix: String, at| store.range(Range { prefix: prefix.into(), at, ..Range::default() });
        let of = |kind: &'static Kind, at| range(object::prefix(kind, ""), at);
        let services = of(&kinds::SERVICE, None).await?;
        let at = Some(services.revision);
        let key = map_key();
        let maps = range("/registry/ranges/".to_owned(), at).await?;
        Ok(Snapshot {
            addresses: of(&kinds::IP_ADDRESS, at).await?.entries,
            cidrs: of(&kinds::SERVICE_CIDR, at).await?.entries,
            slices: of(&kinds::ENDPOINT_SLICE, at).await?.entries,
            endpoints: of(&kinds::ENDPOINTS, at).await?.entries,
            map: maps.entries.into_iter().find(|entry| entry.key == key),
            revision: services.revision,
            services: services.entries,
        })
    }

    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        let lists = [&self.services, &self.addresses, &self.cidrs, &self.slices, &self.endpoints];
        lists.into_iter().map(Vec::len).sum()
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// When the node-port map was written last.
    pub(super) fn map(&self) -> Option<Revision> {
        self.map.as_ref().map(|entry| entry.revision)
    }

    /// Looks for what is wrong. Takes some 80 ms for ten thousand Services and their slices, so not on a thread that serves.
    pub(super) fn examine(&self, node_ports: &RangeInclusive<u16>, seen: &Seen, now: i64) -> Findings {
        let mut incomplete = false;
        let services = each(&self.services, Service::read, &mut incomplete);
        let addresses = each(&self.addresses, Address::read, &mut incomplete);
        let slices = each(&self.slices, HandMade::slice, &mut false);
        let endpoints = each(&self.endpoints, HandMade::endpoints, &mut false);
        let world = World {
            services,
            addresses,
            ranges: self.ranges(),
            ports: read_map(self.map.as_deref(), node_ports),
            endpoints: slices.into_iter().chain(endpoints).flatten().collect(),
            incomplete,
        };
        repair::examine(&world, node_ports, seen, now)
    }

    fn ranges(&self) -> Vec<IpNet> {
        let cidrs = self.cidrs.iter().filter_map(|entry| object::load(&kinds::SERVICE_CIDR, entry).ok());
        let all = cidrs.flat_map(|cidr| -> Vec<IpNet> {
            let texts = cidr.at("spec").texts("cidrs");
            texts.into_iter().filter_map(fairlead_api::ip::cidr::parse).collect()
        });
        all.collect()
    }
}

/// Reads objects; notes whether one cannot be read.
fn each<'a, T>(
    entries: &'a [Arc<Entry>],
    read: impl Fn(&'a [u8]) -> Result<T, serde_json::Error>,
    incomplete: &mut bool,
) -> Vec<T> {
    let read = |entry: &'a Arc<Entry>| match read(&entry.json) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!(key = &*entry.key, %error, "an object cannot be read");
            *incomplete = true;
            None
        }
    };
    entries.iter().filter_map(read).collect()
}

/// The node-port map of an entry.
pub(super) fn read_map(entry: Option<&Entry>, range: &RangeInclusive<u16>) -> PortMap {
    let Some(entry) = entry else { return PortMap::Absent };
    let object: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
    NodePorts::read(&object, range.clone()).map_or(PortMap::Damaged, PortMap::Read)
}
