//! Does the kernel of this machine have SCTP? Without it Services that ask for it are refused rather than left alone.

use socket2::{Domain, Protocol, Socket, Type};

/// The number of the protocol.
const SCTP: i32 = 132;

/// Whether it does. Who asks for a socket makes the kernel load the module, where there is one.
pub fn is_there() -> bool {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(SCTP))).is_ok()
}
