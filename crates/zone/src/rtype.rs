//! Numbers of record types the zone and those around it speak of.

/// An IPv4 address.
pub const A: u16 = 1;
/// A name server.
pub const NS: u16 = 2;
/// The name another one stands for.
pub const CNAME: u16 = 5;
/// The start of a zone.
pub const SOA: u16 = 6;
/// The name of an address.
pub const PTR: u16 = 12;
/// A mail server.
pub const MX: u16 = 15;
/// Text.
pub const TXT: u16 = 16;
/// An IPv6 address.
pub const AAAA: u16 = 28;
/// A server and its port.
pub const SRV: u16 = 33;
/// A name for all names below another.
pub const DNAME: u16 = 39;
/// What goes with a message (EDNS).
pub const OPT: u16 = 41;
/// A transfer of what changed.
pub const IXFR: u16 = 251;
/// A transfer of the whole zone.
pub const AXFR: u16 = 252;
/// Whatever there is.
pub const ANY: u16 = 255;
