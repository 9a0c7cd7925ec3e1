//! Which connections does the kernel know? Entries of connection tracking, read with a filter and deleted one by one.

use std::net::IpAddr;
use std::time::Duration;

use crate::error::Error;
use crate::netlink::{Attributes, Message, Protocol, Request, Socket, Writer, flag};
use crate::nft;

#[cfg(test)]
mod tests;

/// Connection tracking within nfnetlink.
const SUBSYSTEM: u16 = 1;
const GET: u16 = SUBSYSTEM << 8 | 1;
const DELETE: u16 = SUBSYSTEM << 8 | 2;
const STATISTICS: u16 = SUBSYSTEM << 8 | 5;
/// The length of nfnetlink's own header.
const HEADER: usize = 4;

const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
const STATUS: u16 = 3;
const TIMEOUT: u16 = 7;
const MARK: u16 = 8;
const COUNTERS_ORIGINAL: u16 = 9;
const COUNTERS_REPLY: u16 = 10;
const ID: u16 = 12;
const ZONE: u16 = 18;
const FILTER: u16 = 25;

/// A connection, as one side of it sees the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Where packets come from.
    pub source: IpAddr,
    /// Where they go to.
    pub destination: IpAddr,
    /// The transport protocol, such as 17 for UDP.
    pub protocol: u8,
    /// The source port; 0 for protocols without.
    pub source_port: u16,
    /// The destination port; 0 for protocols without.
    pub destination_port: u16,
}

/// One connection the kernel knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As whoever opened it sent the first packet.
    pub original: Tuple,
    /// As the answers come; with translation it is not the mirror of `original`.
    pub reply: Tuple,
    /// Bits; see [`status`].
    pub status: u32,
    /// After how many seconds without a packet it is forgotten.
    pub timeout_s: u32,
    /// Its mark.
    pub mark: u32,
    /// Its zone.
    pub zone: u16,
    /// A number that no other entry has at this time.
    pub id: u32,
    /// Packets and bytes as it was opened, where the kernel counts.
    pub sent: nft::Counter,
    /// Packets and bytes of the answers, where the kernel counts.
    pub received: nft::Counter,
}

/// The bits of an entry's status that matter here.
pub mod status {
    /// Both directions were seen.
    pub const SEEN_REPLY: u32 = 0x2;
    /// It will not be forgotten early.
    pub const ASSURED: u32 = 0x4;
    /// The source is translated.
    pub const SOURCE_NAT: u32 = 0x10;
    /// The destination is translated.
    pub const DESTINATION_NAT: u32 = 0x20;
}

/// Which entries are wanted; what is None does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this transport protocol.
    pub protocol: Option<u8>,
    /// Only this zone.
    pub zone: Option<u16>,
    /// Only IPv4, or only IPv6.
    pub ipv6: Option<bool>,
    /// Only what was first sent to this address.
    pub destination: Option<IpAddr>,
    /// Only what was first sent to this port; needs a protocol.
    pub destination_port: Option<u16>,
    /// Only what this address answers: where translation leads to.
    pub answers_from: Option<IpAddr>,
    /// Only what is answered from this port; needs a protocol.
    pub answers_from_port: Option<u16>,
}

impl Filter {
    fn takes(&self, ipv6: bool) -> bool {
        let fits = |address: Option<IpAddr>| address.is_none_or(|address| address.is_ipv6() == ipv6);
        self.ipv6.is_none_or(|wanted| wanted == ipv6) && fits(self.destination) && fits(self.answers_from)
    }
}

/// A connection to connection tracking in the namespace it was opened in.
#[derive(Debug)]
pub struct Conntrack {
    socket: Socket,
}

impl Conntrack {
    /// Opens one in this thread's network namespace.
    pub fn open() -> Result<Self, Error> {
        Ok(Conntrack { socket: Socket::open(Protocol::Netfilter)? })
    }

    /// The entries of both families that pass the filter, in no order.
    pub fn entries(&mut self, filter: Filter) -> Result<Vec<Entry>, Error> {
        self.read(filter, Some)
    }

    /// What `each` makes of them: who wants few of many, or little of each, never holds them all.
    pub fn read<T>(&mut self, filter: Filter, mut each: impl FnMut(Entry) -> Option<T>) -> Result<Vec<T>, Error> {
        // The kernel filters one family at a time.
        let mut all = Vec::new();
        for (ipv6, family) in [(false, libc::AF_INET), (true, libc::AF_INET6)] {
            if filter.takes(ipv6) {
                all.append(&mut self.family(family, filter, &mut each)?);
            }
        }
        Ok(all)
    }

    fn family<T>(
        &mut self,
        family: i32,
        filter: Filter,
        mut each: impl FnMut(Entry) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let header = nft::header(u8::try_from(family).unwrap_or(0), 0);
        let body = |w: &mut Writer| put_filter(w, filter);
        let request = Request { kind: GET, flags: 0, header: &header, body: &body };
        // A kernel that does not know the filter sends everything.
        let mut parse =
            |message: &Message<'_>| entry(message).filter(|entry| wanted(entry, filter)).and_then(&mut each);
        self.socket.dump("the connections", request, |message| Ok(parse(message)))
    }

    /// Forgets one connection; false if it was gone already.
    pub fn delete(&mut self, entry: &Entry) -> Result<bool, Error> {
        let family = if entry.original.source.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let header = nft::header(u8::try_from(family).unwrap_or(0), 0);
        let body = |w: &mut Writer| {
            put_tuple(w, ORIGINAL, &entry.original);
            if entry.zone != 0 {
                w.u16_be(ZONE, entry.zone);
            }
            // Another connection of the same addresses may have taken its place.
            w.u32_be(ID, entry.id);
        };
        let request = Request { kind: DELETE, flags: flag::ACK, header: &header, body: &body };
        match self.socket.request("deletion of a connection", request, |_| Ok(())) {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How many entries there are.
    pub fn count(&mut self) -> Result<u32, Error> {
        let mut found = None;
        let header = nft::header(0, 0);
        let request = Request { kind: STATISTICS, flags: 0, header: &header, body: &|_: &mut Writer| {} };
        self.socket.request("the number of connections", request, |message| {
            found = message.attributes(HEADER).u32_be(1);
            Ok(())
        })?;
        found.ok_or(Error::Malformed("statistics without a number of connections"))
    }
}

/// Listens to connections that end, in the namespace it was opened in. What they counted comes with them, if the kernel is
/// told to count (`net.netfilter.nf_conntrack_acct`).
#[derive(Debug)]
pub struct Ended {
    socket: Socket,
}

impl Ended {
    /// Listens from now on.
    pub fn open() -> Result<Self, Error> {
        /// The group of connections that end.
        const GROUP: u32 = 3;
        let socket = Socket::open(Protocol::Netfilter)?;
        socket.join(GROUP)?;
        Ok(Ended { socket })
    }

    /// Hands out those that ended, after waiting up to `limit` for the first. [`Error::Overrun`] means that some were lost.
    pub fn entries(&mut self, limit: Duration, mut each: impl FnMut(Entry)) -> Result<(), Error> {
        if self.socket.wait(limit)? {
            let take = |message: &Message<'_>| {
                entry(message).filter(|_| message.kind == DELETE).map(&mut each);
            };
            let mut take = take;
            while self.socket.receive(false, &mut take)? {}
        }
        Ok(())
    }
}

fn wanted(entry: &Entry, filter: Filter) -> bool {
    let (original, reply) = (&entry.original, &entry.reply);
    filter.protocol.is_none_or(|protocol| original.protocol == protocol)
        && filter.zone.is_none_or(|zone| entry.zone == zone)
        && filter.destination.is_none_or(|address| original.destination == address)
        && filter.destination_port.is_none_or(|port| original.destination_port == port)
        && filter.answers_from.is_none_or(|address| reply.source == address)
        && filter.answers_from_port.is_none_or(|port| reply.source_port == port)
}

fn put_filter(w: &mut Writer, filter: Filter) {
    if let Some(zone) = filter.zone {
        w.u16_be(ZONE, zone);
    }
    let original = Wanted { address: filter.destination, port: filter.destination_port, source: false };
    let reply = Wanted { address: filter.answers_from, port: filter.answers_from_port, source: true };
    let flags = [original.put(w, ORIGINAL, filter.protocol), reply.put(w, REPLY, filter.protocol)];
    if flags != [0, 0] {
        w.nest(FILTER, |w| {
            w.u32(1, flags[0]);
            w.u32(2, flags[1]);
        });
    }
}

/// What one side of a connection must be like.
struct Wanted {
    address: Option<IpAddr>,
    port: Option<u16>,
    /// Of its packets' source, not their destination.
    source: bool,
}

impl Wanted {
    /// Writes it; returns which parts the kernel is to compare.
    fn put(&self, w: &mut Writer, kind: u16, protocol: Option<u8>) -> u32 {
        const PROTOCOL: u32 = 1 << 3;
        let (address_flag, port_flag) = if self.source { (1 << 0, 1 << 4) } else { (1 << 1, 1 << 5) };
        let (v4, v6, port_kind) = if self.source { (1, 3, 2) } else { (2, 4, 3) };
        // The kernel takes no port without a protocol. Of IPv6 addresses it hands out all but the one that is wanted (seen
        // in 6.18), so we compare them.
        let port = self.port.filter(|_| protocol.is_some());
        let address = self.address.filter(IpAddr::is_ipv4);
        let flags = [(address.is_some(), address_flag), (protocol.is_some(), PROTOCOL), (port.is_some(), port_flag)];
        let flags: u32 = flags.iter().filter(|(wanted, _)| *wanted).map(|(_, flag)| flag).sum();
        // Answers have the protocol of what they answer.
        if flags == 0 || self.source && flags == PROTOCOL {
            return 0;
        }
        w.nest(kind, |w| {
            w.nest(1, |w| address.into_iter().for_each(|address| put_address(w, v4, v6, address)));
            w.nest(2, |w| {
                protocol.into_iter().for_each(|protocol| w.u8(1, protocol));
                port.into_iter().for_each(|port| w.u16_be(port_kind, port));
            });
        });
        flags
    }
}

fn put_address(w: &mut Writer, v4: u16, v6: u16, address: IpAddr) {
    match address {
        IpAddr::V4(address) => w.bytes(v4, &address.octets()),
        IpAddr::V6(address) => w.bytes(v6, &address.octets()),
    }
}

fn put_tuple(w: &mut Writer, kind: u16, tuple: &Tuple) {
    w.nest(kind, |w| {
        w.nest(1, |w| {
            put_address(w, 1, 3, tuple.source);
            put_address(w, 2, 4, tuple.destination);
        });
        w.nest(2, |w| {
            w.u8(1, tuple.protocol);
            w.u16_be(2, tuple.source_port);
            w.u16_be(3, tuple.destination_port);
        });
    });
}

pub(crate) fn entry(message: &Message<'_>) -> Option<Entry> {
    let a = message.attributes(HEADER);
    Some(Entry {
        original: tuple(a.nested(ORIGINAL))?,
        reply: tuple(a.nested(REPLY))?,
        status: a.u32_be(STATUS).unwrap_or(0),
        timeout_s: a.u32_be(TIMEOUT).unwrap_or(0),
        mark: a.u32_be(MARK).unwrap_or(0),
        zone: a.find(ZONE).and_then(|zone| zone.u16_be()).unwrap_or(0),
        id: a.u32_be(ID).unwrap_or(0),
        sent: counter(a.nested(COUNTERS_ORIGINAL)),
        received: counter(a.nested(COUNTERS_REPLY)),
    })
}

fn tuple(a: Attributes<'_>) -> Option<Tuple> {
    let (addresses, transport) = (a.nested(1), a.nested(2));
    let port = |kind| transport.find(kind).and_then(|port| port.u16_be()).unwrap_or(0);
    Some(Tuple {
        source: address(addresses, 1, 3)?,
        destination: address(addresses, 2, 4)?,
        protocol: transport.find(1)?.u8()?,
        source_port: port(2),
        destination_port: port(3),
    })
}

fn address(a: Attributes<'_>, v4: u16, v6: u16) -> Option<IpAddr> {
    let four = a.bytes(v4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(IpAddr::from);
    four.or_else(|| a.bytes(v6).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()).map(IpAddr::from))
}

fn counter(a: Attributes<'_>) -> nft::Counter {
    nft::Counter { packets: a.u64_be(1).unwrap_or(0), bytes: a.u64_be(2).unwrap_or(0) }
}
