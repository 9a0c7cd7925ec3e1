//! How is a netlink request made, sent and answered? Sockets with acknowledgements and dumps; messages and attributes as
//! bytes, written and read without ever trusting a length.

mod attribute;
#[cfg(test)]
pub(crate) mod hostile;
mod message;
mod socket;
#[cfg(test)]
mod tests;

pub use attribute::{Attribute, Attributes};
pub use message::{Message, Messages, Writer};
pub(crate) use socket::refusal;
pub use socket::{Protocol, Request, Socket};

/// The request flags of netlink, as far as they are used here.
pub mod flag {
    /// A request, as opposed to a reply.
    pub const REQUEST: u16 = 0x1;
    /// Part of an answer of several messages.
    pub const MULTI: u16 = 0x2;
    /// The kernel shall confirm.
    pub const ACK: u16 = 0x4;
    /// The kernel shall say what it did, as it tells those who listen.
    pub const ECHO: u16 = 0x8;
    /// The answer to a dump is inconsistent: the table changed meanwhile.
    pub const DUMP_INTR: u16 = 0x10;
    /// All objects rather than one.
    pub const DUMP: u16 = 0x300;
    /// Replace an object that is there.
    pub const REPLACE: u16 = 0x100;
    /// Fail if the object is there.
    pub const EXCL: u16 = 0x200;
    /// Make the object if it is not there.
    pub const CREATE: u16 = 0x400;
    /// Add after what is there.
    pub const APPEND: u16 = 0x800;
}
