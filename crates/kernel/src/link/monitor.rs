//! Did links or addresses change? That something did is told; what there is now is asked for.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{DEL_ADDRESS, DEL_LINK, DEL_ROUTE, NEW_ADDRESS, NEW_LINK, Prefix, address, link, route};
use crate::error::Error;
use crate::netlink::{Message, Protocol, Socket};

// RTNLGRP_* of linux/rtnetlink.h.
const LINKS: u32 = 1;
const IPV4_ADDRESSES: u32 = 5;
const IPV4_ROUTES: u32 = 7;
const IPV6_ADDRESSES: u32 = 9;
const IPV6_ROUTES: u32 = 11;

/// A notice of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkNotice {
    /// A link of this name was made, changed or deleted.
    Link(String),
    /// A link of this number got or lost an address.
    Address(u32, Prefix),
    /// A route to this destination was deleted from the main table. The kernel does not report
    /// routes that go with their link.
    RouteDeleted(Prefix),
    /// Notices were lost, since too many came at once.
    Lost,
}

/// Listens to changes of links and addresses in the namespace it was opened in.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: Socket,
}

impl LinkMonitor {
    /// Listens from now on.
    pub fn open() -> Result<LinkMonitor, Error> {
        let socket = Socket::open(Protocol::Route)?;
        for group in [LINKS, IPV4_ADDRESSES, IPV6_ADDRESSES] {
            socket.join(group)?;
        }
        Ok(LinkMonitor { socket })
    }

    /// Listens to deleted routes too.
    pub fn open_with_routes() -> Result<LinkMonitor, Error> {
        let monitor = LinkMonitor::open()?;
        for group in [IPV4_ROUTES, IPV6_ROUTES] {
            monitor.socket.join(group)?;
        }
        Ok(monitor)
    }

    /// Waits for a notice. Returns false if none comes within `limit`.
    pub fn wait(&self, limit: Duration) -> Result<bool, Error> {
        self.socket.wait(limit)
    }

    /// Passes the notices to a function that have come since the last call, without waiting for
    /// any.
    pub fn notices(&mut self, mut each: impl FnMut(LinkNotice)) -> Result<(), Error> {
        loop {
            match self.socket.receive(false, |message| notice(message).into_iter().for_each(&mut each)) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(Error::Overrun) => each(LinkNotice::Lost),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether something changed since this was asked last. It never waits: who wants to waits for the descriptor.
    pub fn changed(&mut self) -> Result<bool, Error> {
        let mut changed = false;
        loop {
            match self.socket.receive(false, |_| changed = true) {
                Ok(true) => {}
                Ok(false) => return Ok(changed),
                // Some notices were lost: that is one, too.
                Err(Error::Overrun) => changed = true,
                Err(error) => return Err(error),
            }
        }
    }
}

fn notice(message: &Message<'_>) -> Option<LinkNotice> {
    match message.kind {
        NEW_LINK | DEL_LINK => link(message).map(|link| LinkNotice::Link(link.name)),
        NEW_ADDRESS | DEL_ADDRESS => address(message).map(|(index, prefix)| LinkNotice::Address(index, prefix)),
        DEL_ROUTE => route(message).map(|route| LinkNotice::RouteDeleted(route.destination)),
        _ => None,
    }
}

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
