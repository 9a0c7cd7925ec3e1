//! Which interfaces, addresses and routes are there? As many of rtnetlink's requests as Services and Pods need: virtual
//! links, their addresses, the routes to them.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::Error;
use crate::netlink::{Message, Protocol, Request, Socket, Writer, flag};

const NEW_LINK: u16 = 16;
const DEL_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const DEL_ADDRESS: u16 = 21;
const GET_ADDRESS: u16 = 22;
const NEW_ROUTE: u16 = 24;
const DEL_ROUTE: u16 = 25;
const GET_ROUTE: u16 = 26;

mod local;
mod monitor;
mod neighbour;
mod owned;
#[cfg(test)]
mod tests;
mod vxlan;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFA_CACHEINFO: u16 = 6;
const UP: u32 = 1;
/// It is up, and so is what it is plugged into.
const RUNNING: u32 = 0x40;

const MAIN_TABLE: u8 = 254;
/// What we set up ourselves, as `ip route` marks what an administrator did.
const ORIGIN: u8 = 4;

pub use monitor::{LinkMonitor, LinkNotice};
pub use vxlan::Vxlan;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its number in the namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// Whether packets can go through it: it is up, and what it is plugged into is, too.
    pub running: bool,
    /// What kind of virtual link it is; empty for others.
    pub kind: String,
    /// The largest packet.
    pub mtu: u32,
    /// Its hardware address, if it has one of the usual length.
    pub hardware: [u8; 6],
}

/// A range of addresses, or an address with the size of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// How many bits name the network.
    pub length: u8,
}

impl Prefix {
    /// One address alone.
    pub fn host(address: IpAddr) -> Self {
        Prefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }
}

/// A route of the main table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where to.
    pub destination: Prefix,
    /// Through which router, if not directly.
    pub gateway: Option<IpAddr>,
    /// By which interface.
    pub link: Option<u32>,
    /// Which address of ours to send from.
    pub source: Option<IpAddr>,
}

/// A connection to the links of the namespace it was opened in.
#[derive(Debug)]
pub struct Links {
    socket: Socket,
}

impl Links {
    /// Opens one in this thread's network namespace.
    pub fn open() -> Result<Self, Error> {
        Ok(Links { socket: Socket::open(Protocol::Route)? })
    }

    /// All interfaces.
    pub fn list(&mut self) -> Result<Vec<Link>, Error> {
        self.dump("the links", GET_LINK, &link_header(0, 0, 0), |message| Ok(link(message)))
    }

    /// The interface of a name, if there is one.
    pub fn find(&mut self, name: &str) -> Result<Option<Link>, Error> {
        Ok(self.list()?.into_iter().find(|link| link.name == name))
    }

    /// The number of the interface of a name.
    pub fn index(&mut self, name: &str) -> Result<u32, Error> {
        let found = self.find(name)?.map(|link| link.index);
        found.ok_or(Error::System {
            action: format!("finding the link {name}"),
            source: std::io::Error::from_raw_os_error(libc::ENODEV),
        })
    }

    /// Makes a dummy interface. [`Error::Absent`] where the kernel has none.
    pub fn add_dummy(&mut self, name: &str) -> Result<(), Error> {
        self.add(name, "dummy", &|_| {}).map_err(|error| match error.errno() {
            Some(libc::EOPNOTSUPP) => Error::Absent("the dummy network device"),
            _ => error,
        })
    }

    /// Makes a pair of interfaces of which each receives what the other sends; the peer in another namespace if given.
    pub fn add_veth(&mut self, name: &str, peer: &str, namespace: Option<BorrowedFd<'_>>) -> Result<(), Error> {
        let fd = namespace.map(|fd| fd.as_raw_fd().cast_unsigned());
        self.add(name, "veth", &|w| {
            w.nest(2, |w| {
                w.nest(1, |w| {
                    w.raw(&link_header(0, 0, 0));
                    w.text(IFLA_IFNAME, peer);
                    if let Some(fd) = fd {
                        w.u32(IFLA_NET_NS_FD, fd);
                    }
                });
            });
        })
    }

    fn add(&mut self, name: &str, kind: &str, data: &dyn Fn(&mut Writer)) -> Result<(), Error> {
        let what = format!("new {kind} link {name}");
        self.change(&what, NEW_LINK, flag::CREATE | flag::EXCL, &link_header(0, 0, 0), &|w| {
            w.text(IFLA_IFNAME, name);
            w.nest(IFLA_LINKINFO, |w| {
                w.text(1, kind);
                data(w);
            });
        })
    }

    /// Brings an interface up.
    pub fn set_up(&mut self, index: u32) -> Result<(), Error> {
        self.change(&format!("link {index} up"), NEW_LINK, 0, &link_header(index, UP, UP), &|_| {})
    }

    /// Sets the largest packet.
    pub fn set_mtu(&mut self, index: u32, mtu: u32) -> Result<(), Error> {
        let header = link_header(index, 0, 0);
        self.change(&format!("mtu of link {index}"), NEW_LINK, 0, &header, &|w| w.u32(IFLA_MTU, mtu))
    }

    /// Sets the hardware address.
    pub fn set_hardware_address(&mut self, index: u32, address: [u8; 6]) -> Result<(), Error> {
        let header = link_header(index, 0, 0);
        self.change(&format!("address of link {index}"), NEW_LINK, 0, &header, &|w| w.bytes(IFLA_ADDRESS, &address))
    }

    /// Moves an interface into another namespace, under another name.
    pub fn move_to(&mut self, index: u32, namespace: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
        let fd = namespace.as_raw_fd().cast_unsigned();
        self.change(&format!("move of link {index}"), NEW_LINK, 0, &link_header(index, 0, 0), &|w| {
            w.u32(IFLA_NET_NS_FD, fd);
            w.text(IFLA_IFNAME, name);
        })
    }

    /// Deletes an interface, and with a veth its peer.
    pub fn delete(&mut self, index: u32) -> Result<(), Error> {
        self.change(&format!("deletion of link {index}"), DEL_LINK, 0, &link_header(index, 0, 0), &|_| {})
    }

    /// The addresses of an interface.
    pub fn addresses(&mut self, index: u32) -> Result<Vec<Prefix>, Error> {
        self.dump("the addresses", GET_ADDRESS, &[0; 8], |message| {
            Ok(address(message).filter(|(link, _)| *link == index).map(|(_, prefix)| prefix))
        })
    }

    /// All addresses, each with the number of its interface.
    pub fn all_addresses(&mut self) -> Result<Vec<(u32, Prefix)>, Error> {
        self.dump("the addresses", GET_ADDRESS, &[0; 8], |message| Ok(address(message)))
    }

    /// Gives an interface an address of its own: one the machine is reached by and never sends from, unless to it. Fine if
    /// it has it.
    pub fn add_virtual_address(&mut self, index: u32, ip: IpAddr) -> Result<(), Error> {
        const HOST: u8 = 254;
        let prefix = Prefix::host(ip);
        let what = format!("new address {ip} of link {index}");
        let mut header = address_header(index, prefix, libc::IFA_F_NODAD.to_le_bytes()[0]);
        header[3] = if ip.is_ipv4() { HOST } else { 0 };
        self.change(&what, NEW_ADDRESS, flag::CREATE | flag::REPLACE, &header, &|w| {
            put_address(w, prefix);
            if ip.is_ipv6() {
                // Preferred for no time, valid for ever.
                let mut lifetimes = [0; 16];
                lifetimes[4..8].fill(0xff);
                w.bytes(IFA_CACHEINFO, &lifetimes);
            }
        })
    }

    /// Gives an interface an address; fine if it has it.
    pub fn add_address(&mut self, index: u32, prefix: Prefix) -> Result<(), Error> {
        let what = format!("new address {} of link {index}", prefix.address);
        // Nobody else on these links could have the address: it works at once, without asking around.
        let header = address_header(index, prefix, libc::IFA_F_NODAD.to_le_bytes()[0]);
        self.change(&what, NEW_ADDRESS, flag::CREATE | flag::REPLACE, &header, &|w| put_address(w, prefix))
    }

    /// Takes an address away.
    pub fn delete_address(&mut self, index: u32, prefix: Prefix) -> Result<(), Error> {
        let what = format!("deletion of address {} of link {index}", prefix.address);
        self.change(&what, DEL_ADDRESS, 0, &address_header(index, prefix, 0), &|w| put_address(w, prefix))
    }

    /// The routes of the main table of a family that has `like`.
    pub fn routes(&mut self, like: IpAddr) -> Result<Vec<Route>, Error> {
        self.dump("the routes", GET_ROUTE, &dump_routes(like), |message| Ok(route(message)))
    }

    /// Makes a route, or changes the one to the same destination.
    pub fn add_route(&mut self, route: &Route) -> Result<(), Error> {
        let what = format!("new route to {}/{}", route.destination.address, route.destination.length);
        let header = route_header(route);
        self.change(&what, NEW_ROUTE, flag::CREATE | flag::REPLACE, &header, &|w| put_route(w, route))
    }

    /// Deletes a route.
    pub fn delete_route(&mut self, route: &Route) -> Result<(), Error> {
        let what = format!("deletion of the route to {}/{}", route.destination.address, route.destination.length);
        self.change(&what, DEL_ROUTE, 0, &route_header(route), &|w| put_route(w, route))
    }

    fn change(
        &mut self,
        what: &str,
        kind: u16,
        flags: u16,
        header: &[u8],
        body: &dyn Fn(&mut Writer),
    ) -> Result<(), Error> {
        self.socket.request(what, Request { kind, flags, header, body }, |_| Ok(()))
    }

    fn dump<T>(
        &mut self,
        what: &str,
        kind: u16,
        header: &[u8],
        parse: impl FnMut(&Message<'_>) -> Result<Option<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        self.socket.dump(what, Request { kind, flags: 0, header, body: &|_: &mut Writer| {} }, parse)
    }
}

fn family(address: IpAddr) -> u8 {
    let number = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    number.to_le_bytes()[0]
}

/// `struct ifinfomsg`: family, type, index, flags, which flags to change.
fn link_header(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&change.to_ne_bytes());
    header
}

/// `struct ifaddrmsg`: family, length, flags, scope, index.
fn address_header(index: u32, prefix: Prefix, flags: u8) -> [u8; 8] {
    let mut header = [family(prefix.address), prefix.length, flags, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&index.to_ne_bytes());
    header
}

/// `struct rtmsg`: family, lengths, type of service, table, origin, scope, type, flags.
fn route_header(route: &Route) -> [u8; 12] {
    const UNIVERSE: u8 = 0;
    const LINK: u8 = 253;
    const UNICAST: u8 = 1;
    let scope = if route.gateway.is_some() || route.destination.address.is_ipv6() { UNIVERSE } else { LINK };
    let prefix = route.destination;
    [family(prefix.address), prefix.length, 0, 0, MAIN_TABLE, ORIGIN, scope, UNICAST, 0, 0, 0, 0]
}

/// The same for all routes of the family that has `like`.
fn dump_routes(like: IpAddr) -> [u8; 12] {
    let mut header = [0; 12];
    header[0] = family(like);
    header
}

fn put_address(w: &mut Writer, prefix: Prefix) {
    put_ip(w, 2, prefix.address);
    put_ip(w, 1, prefix.address);
}

fn put_route(w: &mut Writer, route: &Route) {
    put_ip(w, 1, route.destination.address);
    if let Some(link) = route.link {
        w.u32(4, link);
    }
    if let Some(gateway) = route.gateway {
        put_ip(w, 5, gateway);
    }
    if let Some(source) = route.source {
        put_ip(w, 7, source);
    }
}

fn put_ip(w: &mut Writer, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(address) => w.bytes(kind, &address.octets()),
        IpAddr::V6(address) => w.bytes(kind, &address.octets()),
    }
}

fn link(message: &Message<'_>) -> Option<Link> {
    let word = |at: usize| Some(u32::from_ne_bytes(message.payload.get(at..at + 4)?.try_into().ok()?));
    let a = message.attributes(16);
    Some(Link {
        index: word(4)?,
        name: a.text(IFLA_IFNAME)?,
        up: word(8)? & UP != 0,
        running: word(8)? & UP != 0 && word(8)? & RUNNING != 0,
        kind: a.nested(IFLA_LINKINFO).text(1).unwrap_or_default(),
        mtu: a.find(IFLA_MTU).and_then(|mtu| mtu.u32()).unwrap_or(0),
        hardware: a.bytes(IFLA_ADDRESS).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default(),
    })
}

fn address(message: &Message<'_>) -> Option<(u32, Prefix)> {
    let a = message.attributes(8);
    let index = u32::from_ne_bytes(message.payload.get(4..8)?.try_into().ok()?);
    let bytes = a.bytes(2).or_else(|| a.bytes(1))?;
    Some((index, Prefix { address: ip(bytes)?, length: *message.payload.get(1)? }))
}

fn route(message: &Message<'_>) -> Option<Route> {
    let a = message.attributes(12);
    let (number, length) = (*message.payload.first()?, *message.payload.get(1)?);
    let any = if i32::from(number) == libc::AF_INET { IpAddr::from([0; 4]) } else { IpAddr::from([0u8; 16]) };
    if *message.payload.get(4)? != MAIN_TABLE {
        return None;
    }
    Some(Route {
        destination: Prefix { address: a.bytes(1).and_then(ip).unwrap_or(any), length },
        gateway: a.bytes(5).and_then(ip),
        link: a.find(4).and_then(|link| link.u32()),
        source: a.bytes(7).and_then(ip),
    })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}
