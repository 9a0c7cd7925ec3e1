//! Services and destinations of IPVS as attributes. Numbers are in the machine's order, addresses and ports are not.

use std::net::IpAddr;

use super::{At, Counted, Destination, Service, Timeouts};
use crate::netlink::{Attributes, Message, Writer};

/// The length of generic netlink's own header.
pub(super) const HEADER: usize = 4;
const SERVICE: u16 = 1;
const DESTINATION: u16 = 2;
const TIMEOUT_TCP: u16 = 4;
const TIMEOUT_TCP_FIN: u16 = 5;
const TIMEOUT_UDP: u16 = 6;
const PERSISTENT: u32 = 1;
/// The flags a user may set.
const USER_FLAGS: u32 = 0x1 | 0x8 | 0x10 | 0x20;

/// What can be asked for.
pub(super) mod command {
    pub(crate) const NEW_SERVICE: u8 = 1;
    pub(crate) const SET_SERVICE: u8 = 2;
    pub(crate) const DEL_SERVICE: u8 = 3;
    pub(crate) const GET_SERVICE: u8 = 4;
    pub(crate) const NEW_DESTINATION: u8 = 5;
    pub(crate) const SET_DESTINATION: u8 = 6;
    pub(crate) const DEL_DESTINATION: u8 = 7;
    pub(crate) const GET_DESTINATION: u8 = 8;
    pub(crate) const SET_CONFIG: u8 = 12;
    pub(crate) const GET_CONFIG: u8 = 13;
}

pub(super) fn header(command: u8) -> [u8; 4] {
    [command, 1, 0, 0]
}

/// What tells a service from others.
pub(super) fn identity(w: &mut Writer, at: &At) {
    w.nest(SERVICE, |w| put_identity(w, at));
}

pub(super) fn service(w: &mut Writer, service: &Service) {
    w.nest(SERVICE, |w| {
        put_identity(w, &service.at);
        w.text(6, &service.scheduler);
        let flags = service.flags | if service.affinity_s.is_some() { PERSISTENT } else { 0 };
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&flags.to_ne_bytes());
        bytes[4..].copy_from_slice(&USER_FLAGS.to_ne_bytes());
        w.bytes(7, &bytes);
        w.u32(8, service.affinity_s.unwrap_or(0));
        // Each client for itself: a mask of IPv4, a length of IPv6.
        w.u32(9, if service.at.is_ipv4() { u32::MAX } else { 128 });
    });
}

fn put_identity(w: &mut Writer, at: &At) {
    w.u16(1, family(at.is_ipv4()));
    match at {
        At::Mark { mark, .. } => w.u32(5, *mark),
        At::Address { address, protocol, port } => {
            w.u16(2, (*protocol).into());
            w.bytes(3, &octets(*address));
            w.u16_be(4, *port);
        }
    }
}

pub(super) fn destination(w: &mut Writer, destination: &Destination) {
    const TRANSLATE: u32 = 0;
    w.nest(DESTINATION, |w| {
        w.bytes(1, &octets(destination.address));
        w.u16_be(2, destination.port);
        w.u32(3, TRANSLATE);
        w.u32(4, destination.weight);
        w.u32(5, 0);
        w.u32(6, 0);
        w.u16(11, family(destination.address.is_ipv4()));
    });
}

pub(super) fn timeouts(w: &mut Writer, timeouts: Timeouts) {
    w.u32(TIMEOUT_TCP, timeouts.tcp_s);
    w.u32(TIMEOUT_TCP_FIN, timeouts.tcp_fin_s);
    w.u32(TIMEOUT_UDP, timeouts.udp_s);
}

pub(super) fn read_timeouts(message: &Message<'_>) -> Option<Timeouts> {
    let a = message.attributes(HEADER);
    let seconds = |kind| a.find(kind).and_then(|seconds| seconds.u32());
    let (tcp_s, tcp_fin_s, udp_s) = (seconds(TIMEOUT_TCP)?, seconds(TIMEOUT_TCP_FIN)?, seconds(TIMEOUT_UDP)?);
    Some(Timeouts { tcp_s, tcp_fin_s, udp_s })
}

pub(super) fn read_service(message: &Message<'_>) -> Option<Service> {
    let a = message.attributes(HEADER).nested(SERVICE);
    let flags = a.bytes(7)?.get(..4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(u32::from_ne_bytes)?;
    Some(Service {
        at: read_identity(a)?,
        scheduler: a.text(6)?,
        affinity_s: (flags & PERSISTENT != 0).then(|| number(a, 8)),
        flags: flags & USER_FLAGS & !PERSISTENT,
        counted: counted(a),
    })
}

fn read_identity(a: Attributes<'_>) -> Option<At> {
    let v4 = i32::from(a.find(1)?.u16()?) == libc::AF_INET;
    if let Some(mark) = a.find(5).and_then(|mark| mark.u32()) {
        return Some(At::Mark { v4, mark });
    }
    let (address, protocol) = (address(a.bytes(3)?, v4)?, u8::try_from(a.find(2)?.u16()?).ok()?);
    Some(At::Address { address, protocol, port: a.find(4)?.u16_be()? })
}

pub(super) fn read_destination(message: &Message<'_>, service_v4: bool) -> Option<Destination> {
    let a = message.attributes(HEADER).nested(DESTINATION);
    let family = a.find(11).and_then(|family| family.u16());
    let v4 = family.map_or(service_v4, |family| i32::from(family) == libc::AF_INET);
    Some(Destination {
        address: address(a.bytes(1)?, v4)?,
        port: a.find(2)?.u16_be()?,
        weight: number(a, 4),
        active: number(a, 7),
        inactive: number(a, 8),
        counted: counted(a),
    })
}

/// In services and destinations alike.
fn counted(a: Attributes<'_>) -> Counted {
    let stats = a.nested(12);
    let number = |kind| stats.find(kind).and_then(|number| number.u64()).unwrap_or(0);
    Counted { connections: number(1), packets: number(2), bytes: number(4) }
}

fn number(a: Attributes<'_>, kind: u16) -> u32 {
    a.find(kind).and_then(|number| number.u32()).unwrap_or(0)
}

fn family(v4: bool) -> u16 {
    let number = if v4 { libc::AF_INET } else { libc::AF_INET6 };
    u16::try_from(number).unwrap_or(0)
}

/// An address always takes the room of the longer kind.
fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&address.octets());
            bytes
        }
        IpAddr::V6(address) => address.octets(),
    }
}

fn address(bytes: &[u8], v4: bool) -> Option<IpAddr> {
    if v4 {
        return <[u8; 4]>::try_from(bytes.get(..4)?).ok().map(IpAddr::from);
    }
    <[u8; 16]>::try_from(bytes.get(..16)?).ok().map(IpAddr::from)
}
