//! One record, whoever it is from.

use std::net::IpAddr;

use super::CLASS_IN;
use crate::name::Name;
use crate::rtype;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Whose record it is.
    pub name: Name,
    /// Its type.
    pub rtype: u16,
    /// Its class.
    pub class: u16,
    /// How long it holds, in seconds.
    pub ttl: u32,
    /// Its data in wire form; names in it have no pointers.
    pub rdata: Box<[u8]>,
}

/// Where names stand in the data of a type: after so many bytes, so many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) skip: usize,
    pub(super) count: usize,
    /// Whether they may be written with pointers (RFC 3597, 4).
    pub(super) compress: bool,
}

impl Record {
    /// A record of the Internet.
    pub fn new(name: Name, rtype: u16, ttl: u32, rdata: &[u8]) -> Record {
        Record { name, rtype, class: CLASS_IN, ttl, rdata: rdata.into() }
    }

    /// An A or AAAA record.
    pub fn address(name: Name, ttl: u32, address: IpAddr) -> Record {
        match address.to_canonical() {
            IpAddr::V4(ip) => Record::new(name, rtype::A, ttl, &ip.octets()),
            IpAddr::V6(ip) => Record::new(name, rtype::AAAA, ttl, &ip.octets()),
        }
    }

    /// The name its data is, for types whose data is one: CNAME, NS, PTR, DNAME.
    pub fn target(&self) -> Option<Name> {
        match Names::of(self.rtype) {
            Some(Names { skip: 0, count: 1, .. }) => Name::from_wire(&self.rdata).ok(),
            _ => None,
        }
    }
}

impl Names {
    pub(super) fn of(rtype: u16) -> Option<Names> {
        let (skip, count, compress) = match rtype {
            // NS, MD, MF, CNAME, MB, MG, MR, PTR
            2 | 3 | 4 | 5 | 7 | 8 | 9 | 12 => (0, 1, true),
            // SOA, MINFO
            6 | 14 => (0, 2, true),
            // MX
            15 => (2, 1, true),
            // RP
            17 => (0, 2, false),
            // AFSDB, RT, KX
            18 | 21 | 36 => (2, 1, false),
            // PX
            26 => (2, 2, false),
            // SRV
            33 => (6, 1, false),
            // DNAME
            39 => (0, 1, false),
            _ => return None,
        };
        Some(Names { skip, count, compress })
    }
}
