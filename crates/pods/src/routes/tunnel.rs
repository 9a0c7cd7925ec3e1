//! The network inside the network: machines that are no neighbours, or have no addresses of a family, are neighbours in it.

use std::net::IpAddr;

use fairlead_kernel::Error;
use fairlead_kernel::link::{Links, Vxlan};

use super::Way;

/// The link's name.
const NAME: &str = "fl-vxlan0";
/// The number of the network.
const ID: u32 = 207;
/// The port IANA gave to VXLAN.
const PORT: u16 = 4789;
/// What a packet's wrapping takes at most: Ethernet, IPv6, UDP and VXLAN.
const WRAPPING: u32 = 70;
/// The largest packet of most links.
const USUAL: u32 = 1500;
/// What IPv6 needs.
const LEAST: u32 = 1280;

/// Makes the link unless it is there, and returns its number. `here` is the address other Nodes know this machine by.
pub(super) fn prepare(links: &mut Links, here: IpAddr) -> Result<u32, Error> {
    let wanted = Vxlan { id: ID, local: here, port: PORT, hardware: hardware(here) };
    if let Some(link) = links.find(NAME)? {
        if link.hardware == wanted.hardware {
            return Ok(link.index);
        }
        // This machine has another address by now.
        links.delete(link.index)?;
    }
    links.add_vxlan(NAME, &wanted)?;
    let index = links.index(NAME)?;
    let mtu = outer_mtu(links, here)?.saturating_sub(WRAPPING).max(LEAST);
    links.set_mtu(index, mtu)?;
    links.set_up(index)?;
    Ok(index)
}

/// The largest packet of the link that has an address.
fn outer_mtu(links: &mut Links, here: IpAddr) -> Result<u32, Error> {
    let at = links.all_addresses()?.into_iter().find(|(_, prefix)| prefix.address == here).map(|(link, _)| link);
    let found = links.list()?.into_iter().find(|link| Some(link.index) == at);
    Ok(found.map_or(USUAL, |link| link.mtu))
}

/// Tells the link where a Node is, and returns the gateway by which its range is reached: the range's own first address, which no
/// Pod has.
pub(super) fn connect(links: &mut Links, link: u32, way: &Way) -> Result<IpAddr, Error> {
    let (gateway, hardware) = (way.range.network(), hardware(way.through));
    links.add_tunnel(link, hardware, way.through)?;
    links.add_neighbour(link, gateway, hardware)?;
    Ok(gateway)
}

/// The hardware address of a machine in the inner network, which all machines work out alike from its address in the outer one.
fn hardware(machine: IpAddr) -> [u8; 6] {
    let last: [u8; 4] = match machine {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(ip) => {
            let mut folded = [0; 4];
            ip.octets()
                .iter()
                .enumerate()
                .for_each(|(at, byte)| folded[at % 4] ^= byte.rotate_left(u32::try_from(at / 4).unwrap_or_default()));
            folded
        }
    };
    let [a, b, c, d] = last;
    [0x02, 0xf1, a, b, c, d]
}

/// Removes the link, and says so if it was there.
pub(super) fn remove(links: &mut Links) -> Result<Option<String>, Error> {
    let Some(link) = links.find(NAME)? else { return Ok(None) };
    links.delete(link.index)?;
    Ok(Some(format!("link {NAME}")))
}
