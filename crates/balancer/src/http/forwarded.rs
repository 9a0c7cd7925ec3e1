//! What a backend is told of the client: `X-Forwarded-For`, `-Proto`, `-Port` and `Forwarded` (RFC 7239). What the client says of
//! itself is dropped; what a trusted front says is kept and added to.

use std::fmt;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::name::Name;
use crate::serving::Ends;

/// Room for the lines of a client with an address of IPv4.
const LINES: usize = 160;

/// What a connection's backends are told, as the lines of it.
#[derive(Debug, Clone)]
pub struct Forwarded {
    /// All four fields, for clients that nobody vouches for.
    lines: Vec<u8>,
    client: IpAddr,
    proto: &'static str,
    port: u16,
    peer: IpAddr,
}

/// The client as `Forwarded` has it.
struct Element(IpAddr, &'static str);

/// What a trusted front said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    addresses: Vec<u8>,
    elements: Vec<u8>,
    proto: Option<Vec<u8>>,
    port: Option<Vec<u8>>,
}

impl Forwarded {
    /// What is to be said of a connection.
    pub fn new(ends: &Ends, tls: bool) -> Forwarded {
        let (client, port) = (plain(ends.client).ip(), ends.local.port());
        let proto = if tls { "https" } else { "http" };
        let (mut lines, element) = (Vec::with_capacity(LINES), Element(client, proto));
        // One piece of memory for each connection, and no other: a vector takes whatever is written.
        let _ = write!(
            lines,
            "X-Forwarded-For: {client}\r\nX-Forwarded-Proto: {proto}\r\nX-Forwarded-Port: {port}\r\nForwarded: {element}\r\n"
        );
        Forwarded { lines, client, proto, port, peer: plain(ends.peer).ip() }
    }

    /// Whether these ranges have who connected to us.
    pub(crate) fn trusted(&self, ranges: &[IpNet]) -> bool {
        ranges.iter().any(|range| range.contains(&self.peer))
    }

    /// `https` or `http`.
    pub(crate) fn proto(&self) -> &'static str {
        self.proto
    }

    /// The port the client meant.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Writes the lines.
    pub(crate) fn write(&self, said: Option<&Said>, out: &mut Vec<u8>) {
        let Some(said) = said else { return out.extend_from_slice(&self.lines) };
        for (name, value) in self.fields(Some(said)) {
            line(out, name, &value);
        }
    }

    /// The fields, for those who do not write lines.
    pub(crate) fn fields(&self, said: Option<&Said>) -> [(&'static str, Vec<u8>); 4] {
        let nothing = Said::default();
        let said = said.unwrap_or(&nothing);
        let after = |before: &[u8], last: &str| match before {
            [] => last.as_bytes().to_vec(),
            some => [some, b", ", last.as_bytes()].concat(),
        };
        [
            ("X-Forwarded-For", after(&said.addresses, &self.client.to_string())),
            ("X-Forwarded-Proto", said.proto.clone().unwrap_or_else(|| self.proto.into())),
            ("X-Forwarded-Port", said.port.clone().unwrap_or_else(|| self.port.to_string().into_bytes())),
            ("Forwarded", after(&said.elements, &Element(self.client, self.proto).to_string())),
        ]
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element(IpAddr::V4(address), proto) => write!(f, "for={address};proto={proto}"),
            Element(IpAddr::V6(address), proto) => write!(f, "for=\"[{address}]\";proto={proto}"),
        }
    }
}

impl Said {
    /// Takes note of a field of this name, if it is one of these.
    pub(crate) fn hear(&mut self, name: Name, value: &[u8]) {
        let value = value.trim_ascii();
        match name {
            Name::XForwardedFor => join(&mut self.addresses, value),
            Name::Forwarded => join(&mut self.elements, value),
            Name::XForwardedProto => self.proto = Some(value.to_vec()),
            Name::XForwardedPort => self.port = Some(value.to_vec()),
            _ => {}
        }
    }
}

fn join(list: &mut Vec<u8>, value: &[u8]) {
    if !list.is_empty() && !value.is_empty() {
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(value);
}

/// Writes a field.
pub(crate) fn line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Without the detour of IPv4 through IPv6, as sockets for both have it.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests;
