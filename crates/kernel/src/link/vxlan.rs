//! A network inside another: packets for machines that are no neighbours go wrapped in UDP. Nothing is learnt and nobody is asked;
//! which machine has which hardware address inside is told beforehand.

use std::net::IpAddr;

use super::{Links, Route, put_ip, put_route, route_header};
use crate::error::Error;
use crate::netlink::flag;

const NEW_NEIGHBOUR: u16 = 28;
const DESTINATION: u16 = 1;
const HARDWARE_ADDRESS: u16 = 2;
const BRIDGE: u8 = 7;
const PERMANENT: u16 = 0x80;
/// The entry is the link's own, not that of a bridge it is part of.
const SELF: u8 = 2;
/// The gateway of a route is there, whatever the addresses of the link say.
const ON_LINK: u32 = 4;

/// What such a link is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vxlan {
    /// The number of the network; all its machines have the same.
    pub id: u32,
    /// The address of this machine in the outer network.
    pub local: IpAddr,
    /// The UDP port of all its machines.
    pub port: u16,
    /// The hardware address of this machine in the inner network.
    pub hardware: [u8; 6],
}

impl Links {
    /// Makes the link.
    pub fn add_vxlan(&mut self, name: &str, vxlan: &Vxlan) -> Result<(), Error> {
        let what = format!("new vxlan link {name}");
        self.change(&what, super::NEW_LINK, flag::CREATE | flag::EXCL, &super::link_header(0, 0, 0), &|w| {
            w.text(super::IFLA_IFNAME, name);
            w.bytes(super::IFLA_ADDRESS, &vxlan.hardware);
            w.nest(super::IFLA_LINKINFO, |w| {
                w.text(1, "vxlan");
                w.nest(2, |w| {
                    w.u32(1, vxlan.id);
                    put_ip(w, if vxlan.local.is_ipv4() { 4 } else { 17 }, vxlan.local);
                    // Nothing is learnt.
                    w.bytes(7, &[0]);
                    w.bytes(15, &vxlan.port.to_be_bytes());
                });
            });
        })
    }

    /// Tells for good behind which machine a hardware address is.
    pub fn add_tunnel(&mut self, link: u32, hardware: [u8; 6], machine: IpAddr) -> Result<(), Error> {
        let what = format!("new way to {machine} on link {link}");
        let mut header = [0; 12];
        header[0] = BRIDGE;
        header[4..8].copy_from_slice(&link.to_ne_bytes());
        header[8..10].copy_from_slice(&PERMANENT.to_ne_bytes());
        header[10] = SELF;
        self.change(&what, NEW_NEIGHBOUR, flag::CREATE | flag::REPLACE, &header, &|w| {
            put_ip(w, DESTINATION, machine);
            w.bytes(HARDWARE_ADDRESS, &hardware);
        })
    }

    /// Makes a route of an owner through a gateway that only a neighbour entry knows.
    pub fn add_owned_route_on_link(&mut self, owner: u8, route: &Route) -> Result<(), Error> {
        let what = format!("new route to {}/{}", route.destination.address, route.destination.length);
        let mut header = route_header(route);
        header[super::owned::OWNER] = owner;
        header[8..12].copy_from_slice(&ON_LINK.to_ne_bytes());
        self.change(&what, super::NEW_ROUTE, flag::CREATE | flag::EXCL, &header, &|w| put_route(w, route))
    }
}
