//! Addresses that are this machine's without being those of an interface: a route of the kernel's own table says so. Whoever made
//! some finds exactly those again by its number.

use std::net::IpAddr;

use super::owned::OWNER;
use super::{DEL_ROUTE, GET_ROUTE, Links, NEW_ROUTE, Prefix, dump_routes, family, put_ip};
use crate::error::Error;
use crate::netlink::{Message, flag};

const LOCAL_TABLE: u8 = 255;
/// The kind of a route to this machine itself.
const LOCAL: u8 = 2;
const DESTINATION: u16 = 1;
const OUT_LINK: u16 = 4;

impl Links {
    /// Makes an address this machine's, for an owner; `loopback` is the number of `lo`. Fine if it is.
    pub fn add_local(&mut self, owner: u8, loopback: u32, address: IpAddr) -> Result<(), Error> {
        let what = format!("new local address {address}");
        self.change(&what, NEW_ROUTE, flag::CREATE | flag::REPLACE, &header(owner, address), &|w| {
            put_ip(w, DESTINATION, address);
            w.u32(OUT_LINK, loopback);
        })
    }

    /// Takes back what [`Links::add_local`] made. An address another has made this machine's stays.
    pub fn delete_local(&mut self, owner: u8, loopback: u32, address: IpAddr) -> Result<(), Error> {
        let what = format!("deletion of the local address {address}");
        self.change(&what, DEL_ROUTE, 0, &header(owner, address), &|w| {
            put_ip(w, DESTINATION, address);
            w.u32(OUT_LINK, loopback);
        })
    }

    /// The addresses an owner has made this machine's, of both families.
    pub fn local(&mut self, owner: u8) -> Result<Vec<IpAddr>, Error> {
        let mut found = Vec::new();
        for like in [IpAddr::from([0; 4]), IpAddr::from([0u8; 16])] {
            found.extend(self.dump("the local routes", GET_ROUTE, &dump_routes(like), |message| {
                Ok(address(message).filter(|(whose, _)| *whose == owner).map(|(_, address)| address))
            })?);
        }
        Ok(found)
    }
}

/// `struct rtmsg`, as in [`super::route_header`].
fn header(owner: u8, address: IpAddr) -> [u8; 12] {
    const HOST: u8 = 254;
    let scope = if address.is_ipv4() { HOST } else { 0 };
    [family(address), Prefix::host(address).length, 0, 0, LOCAL_TABLE, owner, scope, LOCAL, 0, 0, 0, 0]
}

/// Who made an address this machine's, and which it is.
pub(super) fn address(message: &Message<'_>) -> Option<(u8, IpAddr)> {
    let head = message.payload.get(..12)?;
    let address = message.attributes(12).bytes(DESTINATION).and_then(super::ip)?;
    let one = head[1] == Prefix::host(address).length;
    (one && head[4] == LOCAL_TABLE && head[7] == LOCAL).then_some((head[OWNER], address))
}
