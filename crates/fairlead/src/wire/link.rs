//! The link of this machine that has addresses of the cluster: its Pods and its programs find DNS and the API there, without
//! any translation of addresses on the way.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use fairlead_kernel::Error;
use fairlead_kernel::link::{LinkNotice, Links};
use fairlead_pods::LinkChanges;
use tokio_util::sync::CancellationToken;

/// Its name, and that of its other end where the kernel has no link with one end.
const NAMES: [&str; 2] = ["fl-node0", "fl-node1"];

/// Time from the start during which errors that may go by themselves are tried again.
const START_LIMIT: Duration = Duration::from_secs(5);
/// Time between two of these attempts.
const START_RETRY: Duration = Duration::from_millis(100);

/// Makes the link, and gives it these addresses and no others.
pub(super) async fn prepare(addresses: &[IpAddr]) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        match prepare_once(addresses) {
            Err(error) if error.is_temporary() && began.elapsed() < START_LIMIT => {
                tokio::time::sleep(START_RETRY).await;
            }
            result => return result,
        }
    }
}

fn prepare_once(addresses: &[IpAddr]) -> Result<(), Error> {
    make(addresses)?;
    let mut links = Links::open()?;
    let link = links.index(NAMES[0])?;
    for old in links.addresses(link)? {
        if !addresses.contains(&old.address) && !is_link_local(old.address) {
            links.delete_address(link, old)?;
        }
    }
    Ok(())
}

/// Makes the link, and gives it these addresses. Others it has stay.
fn make(addresses: &[IpAddr]) -> Result<(), Error> {
    let mut links = Links::open()?;
    if links.find(NAMES[0])?.is_none() {
        match links.add_dummy(NAMES[0]) {
            Err(Error::Absent(_)) => links.add_veth(NAMES[0], NAMES[1], None)?,
            other => other?,
        }
    }
    for name in NAMES {
        if let Some(link) = links.find(name)? {
            links.set_up(link.index)?;
        }
    }
    let link = links.index(NAMES[0])?;
    for address in addresses {
        links.add_virtual_address(link, *address)?;
    }
    Ok(())
}

/// Restores the link and its addresses whenever they are removed, until told to stop.
pub(super) async fn keep(addresses: Vec<IpAddr>, stop: CancellationToken) {
    let mut changes = LinkChanges::open();
    let concerns = |notice: &LinkNotice| match notice {
        LinkNotice::Link(name) => NAMES.contains(&name.as_str()),
        LinkNotice::Address(_, prefix) => addresses.contains(&prefix.address),
        LinkNotice::RouteDeleted(_) | LinkNotice::Lost => false,
    };
    let mut failing = false;
    while stop.run_until_cancelled(changes.changed(concerns)).await.is_some() {
        let wanted = addresses.clone();
        let restored = tokio::task::spawn_blocking(move || match is_whole(&wanted) {
            Ok(true) => Ok(false),
            // Another server of this machine may have addresses there, which it would restore in
            // turn.
            _ => make(&wanted).map(|()| true),
        });
        match restored.await {
            Ok(Ok(true)) => tracing::warn!("link {} was removed or changed; it is restored", NAMES[0]),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                // Tried again at the next change, or after half a minute.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "link {} cannot be restored", NAMES[0]);
                }
                continue;
            }
            // The thread panicked, which is logged by itself.
            Err(_) => continue,
        }
        failing = false;
    }
}

/// Returns true if the link is up and has the addresses.
fn is_whole(addresses: &[IpAddr]) -> Result<bool, Error> {
    let mut links = Links::open()?;
    let Some(link) = links.find(NAMES[0])?.filter(|link| link.up) else { return Ok(false) };
    let there = links.addresses(link.index)?;
    Ok(addresses.iter().all(|address| there.iter().any(|prefix| prefix.address == *address)))
}

/// Addresses the kernel gives every link.
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Removes the link, and says so if it was there.
pub(super) fn remove() -> Result<Option<String>, Error> {
    let mut links = Links::open()?;
    let Some(link) = links.find(NAMES[0])? else { return Ok(None) };
    links.delete(link.index)?;
    Ok(Some(format!("link {}", NAMES[0])))
}
