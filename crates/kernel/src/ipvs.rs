//! Which virtual servers does IPVS have? Services, their destinations, and how connections are given out, over generic
//! netlink. A kernel without IPVS is an error of its own: [`Error::Absent`].

#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::error::Error;
use crate::netlink::{Message, Protocol, Request, Socket, Writer, flag};
use wire::command;

/// The family of generic netlink that tells the numbers of others.
const CONTROL: u16 = 16;

/// What a virtual server is addressed by: its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// By an address and a port.
    Address {
        /// The virtual address.
        address: IpAddr,
        /// The transport protocol, such as 6 for TCP.
        protocol: u8,
        /// The port.
        port: u16,
    },
    /// By the mark of packets, which is looked at before their addresses.
    Mark {
        /// Whether it is for IPv4; else it is for IPv6.
        v4: bool,
        /// All of the mark; never 0.
        mark: u32,
    },
}

impl At {
    /// Whether it is for IPv4.
    pub fn is_ipv4(&self) -> bool {
        match self {
            At::Address { address, .. } => address.is_ipv4(),
            At::Mark { v4, .. } => *v4,
        }
    }
}

/// `10.96.0.10:80/6` or `mark 0xf6000001`
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Address { address, protocol, port } => write!(f, "{}/{protocol}", SocketAddr::new(*address, *port)),
            At::Mark { v4, mark } => write!(f, "mark {mark:#010x} of {}", if *v4 { "IPv4" } else { "IPv6" }),
        }
    }
}

/// A virtual server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// What packets must be addressed to.
    pub at: At,
    /// How connections are given out: rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh.
    pub scheduler: String,
    /// For how many seconds a client keeps its destination; None for not at all.
    pub affinity_s: Option<u32>,
    /// Flags of the scheduler, see [`scheduler_flag`].
    pub flags: u32,
    /// What it counted; only ever read.
    pub counted: Counted,
}

/// The flags some schedulers have.
pub mod scheduler_flag {
    /// sh, mh: go on to the next destination when the chosen one has weight 0.
    pub const FALLBACK: u32 = 0x8;
    /// sh, mh: take the client's port into the hash.
    pub const PORT: u32 = 0x10;
}

/// Where a service's connections go. Address and port are its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// Its share; with 0 it keeps its connections and gets no new ones.
    pub weight: u32,
    /// Connections in use; only ever read.
    pub active: u32,
    /// Connections that are over but remembered; only ever read.
    pub inactive: u32,
    /// What it counted; only ever read.
    pub counted: Counted,
}

impl Destination {
    /// One nobody uses yet.
    pub fn new(address: IpAddr, port: u16, weight: u32) -> Self {
        Destination { address, port, weight, active: 0, inactive: 0, counted: Counted::default() }
    }
}

/// What came in. The kernel sums it up every other second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many connections began.
    pub connections: u64,
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// For how many seconds the kernel remembers idle connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Of TCP.
    pub tcp_s: u32,
    /// Of TCP once a side has closed.
    pub tcp_fin_s: u32,
    /// Of UDP.
    pub udp_s: u32,
}

/// A connection to IPVS in the namespace it was opened in.
#[derive(Debug)]
pub struct Ipvs {
    socket: Socket,
    family: u16,
}

impl Ipvs {
    /// Opens one in this thread's network namespace; loads the kernel's module if there is one.
    pub fn open() -> Result<Self, Error> {
        let mut socket = Socket::open(Protocol::Generic)?;
        let mut family = None;
        let body = |w: &mut Writer| w.text(2, "IPVS");
        let request = Request { kind: CONTROL, flags: 0, header: &[3, 1, 0, 0], body: &body };
        let asked = socket.request("the number of IPVS", request, |message| {
            family = message.attributes(wire::HEADER).find(1).and_then(|number| number.u16());
            Ok(())
        });
        match (asked, family) {
            (Ok(()), Some(family)) => Ok(Ipvs { socket, family }),
            (Ok(()), None) => Err(Error::Malformed("a family without a number")),
            (Err(error), _) if error.is_not_found() => Err(Error::Absent("IPVS")),
            (Err(error), _) => Err(error),
        }
    }

    /// All services.
    pub fn services(&mut self) -> Result<Vec<Service>, Error> {
        self.dump("the services of IPVS", command::GET_SERVICE, &|_| {}, |message| Ok(wire::read_service(message)))
    }

    /// Makes a service. An error if it is there, or if the kernel does not have the scheduler.
    pub fn add_service(&mut self, service: &Service) -> Result<(), Error> {
        let what = format!("new service {} with {}", service.at, service.scheduler);
        self.change(&what, command::NEW_SERVICE, &|w| wire::service(w, service))
    }

    /// Changes the scheduler, affinity or flags of a service.
    pub fn set_service(&mut self, service: &Service) -> Result<(), Error> {
        let what = format!("change of service {} to {}", service.at, service.scheduler);
        self.change(&what, command::SET_SERVICE, &|w| wire::service(w, service))
    }

    /// Deletes a service with its destinations; their connections end.
    pub fn delete_service(&mut self, at: &At) -> Result<(), Error> {
        self.change(&format!("deletion of service {at}"), command::DEL_SERVICE, &|w| wire::identity(w, at))
    }

    /// The destinations of a service.
    pub fn destinations(&mut self, at: &At) -> Result<Vec<Destination>, Error> {
        let body = |w: &mut Writer| wire::identity(w, at);
        self.dump("the destinations of a service", command::GET_DESTINATION, &body, |message| {
            Ok(wire::read_destination(message, at.is_ipv4()))
        })
    }

    /// Gives a service one more destination; packets are translated on their way to it.
    pub fn add_destination(&mut self, at: &At, destination: &Destination) -> Result<(), Error> {
        self.change_destination("new destination", command::NEW_DESTINATION, at, destination)
    }

    /// Changes the weight of a destination.
    pub fn set_destination(&mut self, at: &At, destination: &Destination) -> Result<(), Error> {
        self.change_destination("change of destination", command::SET_DESTINATION, at, destination)
    }

    /// Takes a destination away; its connections end.
    pub fn delete_destination(&mut self, at: &At, destination: &Destination) -> Result<(), Error> {
        self.change_destination("deletion of destination", command::DEL_DESTINATION, at, destination)
    }

    /// For how long idle connections are remembered.
    pub fn timeouts(&mut self) -> Result<Timeouts, Error> {
        let mut found = None;
        let header = wire::header(command::GET_CONFIG);
        let request = Request { kind: self.family, flags: 0, header: &header, body: &|_: &mut Writer| {} };
        self.socket.request("the time-outs of IPVS", request, |message| {
            found = wire::read_timeouts(message);
            Ok(())
        })?;
        found.ok_or(Error::Malformed("time-outs that are none"))
    }

    /// Sets that.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) -> Result<(), Error> {
        self.change("change of time-outs", command::SET_CONFIG, &|w| wire::timeouts(w, timeouts))
    }

    fn change_destination(&mut self, what: &str, number: u8, at: &At, destination: &Destination) -> Result<(), Error> {
        let what = format!("{what} {} of {at}", SocketAddr::new(destination.address, destination.port));
        self.change(&what, number, &|w| {
            wire::identity(w, at);
            wire::destination(w, destination);
        })
    }

    fn change(&mut self, what: &str, number: u8, body: &dyn Fn(&mut Writer)) -> Result<(), Error> {
        let header = wire::header(number);
        let request = Request { kind: self.family, flags: flag::ACK, header: &header, body };
        self.socket.request(what, request, |_| Ok(()))
    }

    fn dump<T>(
        &mut self,
        what: &str,
        number: u8,
        body: &dyn Fn(&mut Writer),
        parse: impl FnMut(&Message<'_>) -> Result<Option<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        let header = wire::header(number);
        self.socket.dump(what, Request { kind: self.family, flags: 0, header: &header, body }, parse)
    }
}
