//! Did links or addresses change? That something did is told; what there is now is asked for.

use std::os::fd::{AsFd, BorrowedFd};

use crate::error::Error;
use crate::netlink::{Protocol, Socket};

const LINKS: u32 = 1;
const IPV4_ADDRESSES: u32 = 5;
const IPV6_ADDRESSES: u32 = 9;

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

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
