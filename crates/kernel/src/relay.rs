//! How does a process carry other people's bytes for little? Sockets that never wait, one place to wait for many of them,
//! pipes through which bytes pass without being looked at, datagrams taken many at a time.
//!
//! Mistakes here are [`std::io::Error`]: they are everyday things like a reset, and the caller looks at their kind.

mod datagram;
mod pipe;
mod poll;
mod stream;

pub use datagram::{Datagrams, bind_datagram, connect_datagram};
pub use pipe::Pipe;
pub use poll::{Events, Poller, Ready, Waker};
pub use stream::{accept, connect, listen, listen_beside, reset};

use std::io;

use crate::sys::relay as sys;

/// Lets this process have as many descriptors as it may; how many that is.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    sys::raise_descriptor_limit()
}
