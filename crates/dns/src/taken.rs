//! Addresses that are this machine's only because we answer there: put on the loopback interface, and taken away with us.
//!
//! A link of their own would be tidier, but not every kernel has links that lead nowhere.

use std::net::IpAddr;

use fairlead_kernel::link::{Links, Prefix};

use crate::Error;

/// The link that every machine has.
const LINK: &str = "lo";

/// Addresses that are ours. They are gone with this value.
#[derive(Debug)]
pub(crate) struct Taken {
    addresses: Vec<IpAddr>,
}

impl Taken {
    /// Takes addresses. Those a run before left are taken over; those the machine has anyway are left alone.
    pub(crate) fn new(addresses: &[IpAddr]) -> Result<Taken, Error> {
        put(addresses).map_err(|error| Error::Address { error })
    }
}

fn put(addresses: &[IpAddr]) -> Result<Taken, fairlead_kernel::Error> {
    let mut links = Links::open()?;
    let (index, had) = (links.index(LINK)?, links.all_addresses()?);
    let elsewhere = |ip: &IpAddr| had.iter().any(|(link, prefix)| prefix.address == *ip && *link != index);
    let mut taken = Taken { addresses: Vec::new() };
    for address in addresses.iter().filter(|ip| !ip.is_loopback() && !ip.is_unspecified() && !elsewhere(ip)) {
        links.add_virtual_address(index, *address)?;
        taken.addresses.push(*address);
    }
    Ok(taken)
}

impl Drop for Taken {
    fn drop(&mut self) {
        let delete = || {
            let mut links = Links::open()?;
            let index = links.index(LINK)?;
            self.addresses.iter().try_for_each(|address| links.delete_address(index, Prefix::host(*address)))
        };
        if let Err(error) = delete() {
            tracing::warn!("addresses stay on {LINK}: {error}");
        }
    }
}
