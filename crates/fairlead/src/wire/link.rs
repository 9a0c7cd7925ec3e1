//! The link of this machine that has addresses of the cluster: its Pods and its programs find DNS and the API there, without
//! any translation of addresses on the way.

use std::net::IpAddr;

use fairlead_kernel::Error;
use fairlead_kernel::link::Links;

/// Its name, and that of its other end where the kernel has no link with one end.
const NAMES: [&str; 2] = ["fl-node0", "fl-node1"];

/// Makes the link, and gives it these addresses and no others.
pub(super) fn prepare(addresses: &[IpAddr]) -> Result<(), Error> {
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
    for old in links.addresses(link)? {
        if !addresses.contains(&old.address) && !is_link_local(old.address) {
            links.delete_address(link, old)?;
        }
    }
    Ok(())
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
