//! The link that has the addresses of Services, so that packets to them are for this machine, where IPVS sees them. It never
//! carries a packet, and is never up.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairlead_kernel::link::{Links, Prefix};
use fairlead_program::ipvs::LINK;

use crate::Error;

/// The name of a link that is only made to see whether one can be.
const TRIAL: &str = "fl-ipvs-try";

/// The link's addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    links: Links,
    index: u32,
}

/// Whether the kernel has links of the kind.
pub(super) fn available() -> Result<(), Error> {
    let mut links = Links::open()?;
    if links.find(LINK)?.is_some() {
        return Ok(());
    }
    links.add_dummy(TRIAL)?;
    let index = links.index(TRIAL)?;
    Ok(links.delete(index)?)
}

impl Addresses {
    /// Opens the way to links in this thread's network namespace.
    pub(super) fn open() -> Result<Addresses, Error> {
        Ok(Addresses { links: Links::open()?, index: 0 })
    }

    /// Makes the link if it is not there, and says which addresses it has.
    pub(super) fn ensure(&mut self) -> Result<BTreeSet<IpAddr>, Error> {
        if self.links.find(LINK)?.is_none() {
            self.links.add_dummy(LINK)?;
        }
        self.index = self.links.index(LINK)?;
        self.there()
    }

    fn there(&mut self) -> Result<BTreeSet<IpAddr>, Error> {
        let addresses = self.links.addresses(self.index)?.into_iter().map(|prefix| prefix.address);
        // The kernel gives a link one of these by itself.
        let automatic = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        Ok(addresses.filter(|ip| !automatic(ip)).collect())
    }

    /// Gives the link an address; fine if it has it.
    pub(super) fn add(&mut self, ip: IpAddr) -> Result<(), Error> {
        Ok(self.links.add_virtual_address(self.index, ip)?)
    }

    /// Takes an address away; fine if it is gone.
    pub(super) fn delete(&mut self, ip: IpAddr) -> Result<(), Error> {
        match self.links.delete_address(self.index, Prefix::host(ip)) {
            Err(error) if is_gone(&error) => Ok(()),
            done => Ok(done?),
        }
    }

    /// Takes all other addresses away.
    pub(super) fn keep(&mut self, wanted: &BTreeSet<IpAddr>) -> Result<(), Error> {
        let there = self.there()?;
        there.difference(wanted).try_for_each(|ip| self.delete(*ip))
    }

    /// What is not as it should be.
    pub(super) fn compare(&mut self, wanted: &BTreeSet<IpAddr>) -> Result<Option<String>, Error> {
        match self.links.find(LINK)? {
            Some(link) if link.index == self.index => {}
            _ => return Ok(Some(format!("the link {LINK} is gone"))),
        }
        let there = self.there()?;
        if let Some(missing) = wanted.difference(&there).next() {
            return Ok(Some(format!("{LINK} has lost the address {missing}")));
        }
        Ok(there.difference(wanted).next().map(|more| format!("{LINK} has the address {more}, which no Service has")))
    }
}

fn is_gone(error: &fairlead_kernel::Error) -> bool {
    // What the kernel says of an address that a link does not have.
    const EADDRNOTAVAIL: i32 = 99;
    error.is_not_found() || error.errno() == Some(EADDRNOTAVAIL)
}
