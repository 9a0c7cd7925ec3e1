//! Which hardware address has an IP address on a link? Told beforehand, nobody has to ask.

use std::net::IpAddr;

use super::{Links, family, put_ip};
use crate::error::Error;
use crate::netlink::flag;

const NEW_NEIGHBOUR: u16 = 28;
const HARDWARE_ADDRESS: u16 = 2;
const PERMANENT: u16 = 0x80;

impl Links {
    /// Tells for good which hardware address an address has on a link.
    pub fn add_neighbour(&mut self, link: u32, address: IpAddr, hardware: [u8; 6]) -> Result<(), Error> {
        let what = format!("new neighbour {address} on link {link}");
        let header = header(link, address);
        self.change(&what, NEW_NEIGHBOUR, flag::CREATE | flag::REPLACE, &header, &|w| {
            put_ip(w, 1, address);
            w.bytes(HARDWARE_ADDRESS, &hardware);
        })
    }
}

/// `struct ndmsg`: family, padding, index, state, flags, type.
fn header(link: u32, address: IpAddr) -> [u8; 12] {
    let mut header = [0; 12];
    header[0] = family(address);
    header[4..8].copy_from_slice(&link.to_ne_bytes());
    header[8..10].copy_from_slice(&PERMANENT.to_ne_bytes());
    header
}
