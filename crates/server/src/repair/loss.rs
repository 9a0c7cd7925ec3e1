//! When is a pass needed before its time? When an IPAddress object is deleted and its Service stays: until it is made again,
//! the address might be given to another Service.

use fairlead_api::repair::{Address, Service};
use fairlead_store::{Event, Revision};

use super::kinds;
use crate::{Inner, object};

/// Returns when an address was lost after a revision; never, if that cannot be known.
pub(super) async fn of_address(server: &Inner, after: Revision) {
    let prefix = object::prefix(&kinds::IP_ADDRESS, "");
    if let Ok(mut watch) = server.store.watch(&prefix, after).await {
        while let Ok(events) = watch.next().await {
            for event in events.iter().filter(|event| event.deleted) {
                if is_loss(server, event).await {
                    return;
                }
            }
        }
    }
    // The next pass comes at its time.
    std::future::pending().await
}

async fn is_loss(server: &Inner, event: &Event) -> bool {
    let Ok(address) = Address::read(&event.entry.json) else { return false };
    let Some((namespace, name)) = address.service() else { return false };
    let key = object::key(&kinds::SERVICE, namespace, name);
    let Ok(Some(entry)) = server.store.get(&key).await else { return false };
    Service::read(&entry.json).is_ok_and(|service| service.cluster_ips().contains(&address.name()))
}
