//! Which virtual servers does IPVS have? Services, their destinations, and how connections are given out, over generic
//! netlink. A kernel without IPVS is an error of its own: [`Error::Absent`].

#[cfg(test)]
mod tests;
mod wire;

use std::net::IpAddr;

use crate::error::Error;
use crate::netlink::{Message, Protocol, Request, Socket, Writer, flag};
use wire::command;

/// The family of generic netlink that tells the numbers of others.
const CONTROL: u16 = 16;

/// A virtual server. Address, protocol and port are its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The virtual address.
    pub address: IpAddr,
    /// The transport protocol, such as 6 for TCP.
    pub protocol: u8,
    /// The port.
    pub port: u16,
    /// How connections are given out: rr, wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq, mh.
    pub scheduler: String,
    /// For how many seconds a client keeps its destination; None for not at all.
    pub affinity_s: Option<u32>,
    /// Flags of the scheduler, see [`scheduler_flag`].
    pub flags: u32,
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
        self.change("new service", service, command::NEW_SERVICE, &|w| wire::service(w, service))
    }

    /// Changes the scheduler, affinity or flags of a service.
    pub fn set_service(&mut self, service: &Service) -> Result<(), Error> {
        self.change("change of service", service, command::SET_SERVICE, &|w| wire::service(w, service))
    }

    /// Deletes a service with its destinations; their connections end.
    pub fn delete_service(&mut self, service: &Service) -> Result<(), Error> {
        self.change("deletion of service", service, command::DEL_SERVICE, &|w| wire::identity(w, service))
    }

    /// The destinations of a service.
    pub fn destinations(&mut self, service: &Service) -> Result<Vec<Destination>, Error> {
        let body = |w: &mut Writer| wire::identity(w, service);
        self.dump("the destinations of a service", command::GET_DESTINATION, &body, |message| {
            Ok(wire::read_destination(message, service.address))
        })
    }

    /// Gives a service one more destination; packets are translated on their way to it.
    pub fn add_destination(&mut self, service: &Service, destination: &Destination) -> Result<(), Error> {
        self.change_destination("new destination", command::NEW_DESTINATION, service, destination)
    }

    /// Changes the weight of a destination.
    pub fn set_destination(&mut self, service: &Service, destination: &Destination) -> Result<(), Error> {
        self.change_destination("change of destination", command::SET_DESTINATION, service, destination)
    }

    /// Takes a destination away; its connections end.
    pub fn delete_destination(&mut self, service: &Service, destination: &Destination) -> Result<(), Error> {
        self.change_destination("deletion of destination", command::DEL_DESTINATION, service, destination)
    }

    fn change_destination(
        &mut self,
        what: &str,
        number: u8,
        service: &Service,
        destination: &Destination,
    ) -> Result<(), Error> {
        let what = format!("{what} {}:{} of", destination.address, destination.port);
        self.change(&what, service, number, &|w| {
            wire::identity(w, service);
            wire::destination(w, destination);
        })
    }

    fn change(&mut self, what: &str, service: &Service, number: u8, body: &dyn Fn(&mut Writer)) -> Result<(), Error> {
        let what = format!("{what} {}:{} with {}", service.address, service.port, service.scheduler);
        let header = wire::header(number);
        let request = Request { kind: self.family, flags: flag::ACK, header: &header, body };
        self.socket.request(&what, request, |_| Ok(()))
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
