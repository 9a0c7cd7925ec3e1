//! Messages as bytes: reading what a client asks and writing what it gets, with nothing in between but the zone.
//!
//! [`read`] takes a query apart; what is malformed is a value, not an error: it is refused with a reply or not answered at
//! all. [`reply`] answers from a zone without allocating for addresses. [`Builder`] writes replies of [`Record`]s that come
//! from elsewhere, and [`Message`] reads them.

mod build;
mod parse;
mod query;
mod record;
mod reply;

pub use build::{Builder, Head};
pub use parse::{Malformed, Message};
pub use query::{Edns, Query, Reading, Rejection, read};
pub use record::Record;
pub use reply::{Outcome, reply, write_answer};

use crate::name::Name;

/// The most bytes a message has, over TCP.
pub const MAX_MESSAGE: usize = 65_535;
/// What every client takes over UDP.
pub const MIN_LIMIT: usize = 512;
/// How much we take over UDP: what passes through networks in one piece.
pub const UDP_SIZE: u16 = 1232;
/// The bytes of a message before its question.
pub const HEADER: usize = 12;
/// The class of the Internet.
pub const CLASS_IN: u16 = 1;

/// It is a reply.
pub const QR: u16 = 0x8000;
/// The answer is from one who must know.
pub const AA: u16 = 0x0400;
/// It is cut off.
pub const TC: u16 = 0x0200;
/// Others are to be asked, if need be.
pub const RD: u16 = 0x0100;
/// Others can be asked.
pub const RA: u16 = 0x0080;
/// The data was verified.
pub const AD: u16 = 0x0020;
/// The data need not be verified.
pub const CD: u16 = 0x0010;
/// The kind of query.
pub const OPCODE: u16 = 0x7800;

/// How a query went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rcode(pub u16);

impl Rcode {
    /// Well.
    pub const NO_ERROR: Rcode = Rcode(0);
    /// It cannot be read.
    pub const FORM_ERR: Rcode = Rcode(1);
    /// The server cannot answer now.
    pub const SERV_FAIL: Rcode = Rcode(2);
    /// There is no such name.
    pub const NX_DOMAIN: Rcode = Rcode(3);
    /// The server cannot do that.
    pub const NOT_IMP: Rcode = Rcode(4);
    /// The server does not do that.
    pub const REFUSED: Rcode = Rcode(5);
    /// The server does not know this version of EDNS.
    pub const BAD_VERS: Rcode = Rcode(16);

    /// The name people know it by.
    pub fn as_str(self) -> &'static str {
        match self.0 {
            0 => "NOERROR",
            1 => "FORMERR",
            2 => "SERVFAIL",
            3 => "NXDOMAIN",
            4 => "NOTIMP",
            5 => "REFUSED",
            16 => "BADVERS",
            _ => "OTHER",
        }
    }
}

/// A query that asks others too, as a resolver sends it upstream.
pub fn query(id: u16, name: &Name, rtype: u16, edns: Option<Edns>) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + name.wire().len() + 4 + build::OPT_LEN);
    for number in [id, RD, 1, 0, 0, u16::from(edns.is_some())] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(name.wire());
    for number in [rtype, CLASS_IN] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    if let Some(edns) = edns {
        build::push_opt(&mut out, edns, Rcode::NO_ERROR);
    }
    out
}

/// The number at a place.
fn number_at(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;
