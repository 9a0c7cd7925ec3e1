//! The PROXY header: who the client is, in front of its bytes. Read from fronts that are trusted, written for backends. Pure.
//! The form is HAProxy's (doc/proxy-protocol.txt): version 1 is a line, version 2 is binary.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::engine::secure::TlsFacts;
use crate::spec::ProxyVersion;

mod crc32c;
#[cfg(test)]
mod tests;

/// What version 2 begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// What version 1 begins with.
const LINE: &[u8] = b"PROXY ";
/// The longest line of version 1, with its end.
const LONGEST_LINE: usize = 107;
/// The longest header that is read: addresses take 52 bytes, the rest of version 2 is what fronts add for themselves.
pub const LONGEST: usize = 4096;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// The front speaks for itself, as its health checks do, or does not say for whom.
    Own,
    /// It speaks for a client.
    Proxied {
        /// The client.
        client: SocketAddr,
        /// The address the client meant.
        local: SocketAddr,
    },
}

/// What bytes are no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no PROXY header")]
pub struct Malformed;

/// Reads the header that `bytes` begin with, and how long it is. `None`: what is there may become one, and is all part of it.
pub fn parse(bytes: &[u8]) -> Result<Option<(Header, usize)>, Malformed> {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(byte, wanted)| byte == wanted);
    match bytes {
        bytes if begins(&SIGNATURE) && bytes.first() != Some(&b'P') => parse_binary(bytes),
        bytes if begins(LINE) => parse_line(bytes),
        _ => Err(Malformed),
    }
}

/// What the first bytes of somebody are who may not send a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// They may still become a header.
    Undecided,
    /// They begin one.
    Header,
    /// They are none, and will be none.
    Other,
}

/// Looks at the first bytes of somebody who may not send a header, however small the pieces are in which they come.
#[derive(Debug, Clone, Default)]
pub struct Suspicion {
    seen: [u8; SIGNATURE.len()],
    length: usize,
}

impl Suspicion {
    /// These come next. All the bytes of a header that were passed on before it is one are too few to be taken for one.
    pub fn hear(&mut self, bytes: &[u8]) -> Opening {
        for byte in bytes {
            let Some(place) = self.seen.get_mut(self.length) else { break };
            *place = *byte;
            self.length += 1;
        }
        let seen = &self.seen[..self.length];
        let of = |mark: &[u8]| match seen.len() < mark.len() {
            true if mark.starts_with(seen) => Opening::Undecided,
            false if seen.starts_with(mark) => Opening::Header,
            _ => Opening::Other,
        };
        match of(LINE) {
            Opening::Other => of(&SIGNATURE),
            decided => decided,
        }
    }
}

fn parse_line(bytes: &[u8]) -> Result<Option<(Header, usize)>, Malformed> {
    let window = &bytes[..bytes.len().min(LONGEST_LINE)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        return if window.len() < LONGEST_LINE { Ok(None) } else { Err(Malformed) };
    };
    let line = window[..end].strip_suffix(b"\r").ok_or(Malformed)?;
    let line = std::str::from_utf8(line).map_err(|_| Malformed)?;
    let line = line.strip_prefix("PROXY ").ok_or(Malformed)?;
    if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
        return Ok(Some((Header::Own, end + 1)));
    }
    let words: Vec<&str> = line.split(' ').collect();
    let [family, source, destination, source_port, destination_port] = words[..] else { return Err(Malformed) };
    let client = socket(family, source, source_port)?;
    let local = socket(family, destination, destination_port)?;
    Ok(Some((Header::Proxied { client, local }, end + 1)))
}

fn socket(family: &str, ip: &str, port: &str) -> Result<SocketAddr, Malformed> {
    let ip: IpAddr = match family {
        "TCP4" => ip.parse::<Ipv4Addr>().map_err(|_| Malformed)?.into(),
        "TCP6" => ip.parse::<Ipv6Addr>().map_err(|_| Malformed)?.into(),
        _ => return Err(Malformed),
    };
    let plain = port == "0" || (!port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = port.parse().ok().filter(|_| plain).ok_or(Malformed)?;
    Ok(canonical(SocketAddr::new(ip, port)))
}

fn parse_binary(bytes: &[u8]) -> Result<Option<(Header, usize)>, Malformed> {
    // What is already certain is refused at once.
    let (command, family) = (bytes.get(12), bytes.get(13));
    if command.is_some_and(|command| !matches!(command, 0x20 | 0x21)) {
        return Err(Malformed);
    }
    let (Some(command), Some(family), Some(high), Some(low)) = (command, family, bytes.get(14), bytes.get(15)) else {
        return Ok(None);
    };
    let length = 16 + usize::from(u16::from_be_bytes([*high, *low]));
    if length > LONGEST {
        return Err(Malformed);
    }
    let Some(rest) = bytes.get(16..length) else { return Ok(None) };
    // LOCAL (proxy-protocol.txt, 2.2): the block is discarded, its family included, and the
    // connection is the front's own.
    if *command == 0x20 {
        return Ok(Some((Header::Own, length)));
    }
    let (header, addresses) = match family {
        0x11 => (addresses::<4>(rest)?, V4_ADDRESSES),
        0x21 => (addresses::<16>(rest)?, V6_ADDRESSES),
        // UNSPEC: the front does not say for whom it speaks, and there are no addresses.
        0x00 => (Header::Own, 0),
        // Datagrams and UNIX sockets: no listener here takes what they carry, so the front means
        // another one. Whose word is kept of a client that did not come this way decides who is let
        // in.
        _ => return Err(Malformed),
    };
    let extensions = rest.get(addresses..).ok_or(Malformed)?;
    check_extensions(&bytes[..length], length - extensions.len())?;
    Ok(Some((header, length)))
}

/// Bytes of the addresses and ports of TCP over IPv4.
const V4_ADDRESSES: usize = 12;
/// Bytes of the addresses and ports of TCP over IPv6.
const V6_ADDRESSES: usize = 36;

/// Checks what follows the addresses of a header: values that each say their type and length
/// (TLVs), and end where the header does. A checksum must be right if there is one
/// (proxy-protocol.txt, 2.2.3). Values of unknown types are skipped.
fn check_extensions(header: &[u8], begin: usize) -> Result<(), Malformed> {
    let mut checksum = None;
    let mut at = begin;
    while at < header.len() {
        let (kind, value, next) = extension(header, at)?;
        let is_valid = match kind {
            CRC32C => value.len() == 4 && checksum.replace(next - 4).is_none(),
            UNIQUE_ID => value.len() <= 128,
            // Bits about the client, the result of the verification in four bytes, then values of
            // its own.
            SSL => value.len() >= 5 && is_whole(value, 5),
            _ => true,
        };
        if !is_valid {
            return Err(Malformed);
        }
        at = next;
    }
    let Some(place) = checksum else { return Ok(()) };
    let said = header.get(place..place + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let parts = [&header[..place], &[0; 4], &header[place + 4..]];
    if said == Some(crc32c::of(&parts)) { Ok(()) } else { Err(Malformed) }
}

/// True if values follow one another from `at` on and end where `bytes` do.
fn is_whole(bytes: &[u8], mut at: usize) -> bool {
    while at < bytes.len() {
        match extension(bytes, at) {
            Ok((.., next)) => at = next,
            Err(Malformed) => return false,
        }
    }
    true
}

/// Returns the type and value at a place, and where the next one begins.
fn extension(bytes: &[u8], at: usize) -> Result<(u8, &[u8], usize), Malformed> {
    let [kind, high, low] = *bytes.get(at..at + 3).ok_or(Malformed)? else { return Err(Malformed) };
    let next = at + 3 + usize::from(u16::from_be_bytes([high, low]));
    Ok((kind, bytes.get(at + 3..next).ok_or(Malformed)?, next))
}

fn addresses<const N: usize>(bytes: &[u8]) -> Result<Header, Malformed>
where
    IpAddr: From<[u8; N]>,
{
    let ip = |at: usize| bytes.get(at..at + N).and_then(|bytes| <[u8; N]>::try_from(bytes).ok()).map(IpAddr::from);
    let port = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let whole = || {
        let client = SocketAddr::new(ip(0)?, port(2 * N)?);
        Some((client, SocketAddr::new(ip(N)?, port(2 * N + 2)?)))
    };
    let (client, local) = whole().ok_or(Malformed)?;
    Ok(Header::Proxied { client: canonical(client), local: canonical(local) })
}

/// An IPv4 address that was written as IPv6 is what it is, else ranges would not match it.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Writes the header for a client.
pub fn write(version: ProxyVersion, client: SocketAddr, local: SocketAddr, tls: Option<&TlsFacts>, out: &mut Vec<u8>) {
    let (client, local) = alike(client, local);
    match version {
        ProxyVersion::V1 => {
            let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
            let (from, to) = (client.ip(), local.ip());
            let line = format!("PROXY {family} {from} {to} {} {}\r\n", client.port(), local.port());
            out.extend_from_slice(line.as_bytes());
        }
        ProxyVersion::V2 => {
            let mut rest = Vec::with_capacity(64);
            octets(client.ip(), &mut rest);
            octets(local.ip(), &mut rest);
            rest.extend_from_slice(&client.port().to_be_bytes());
            rest.extend_from_slice(&local.port().to_be_bytes());
            if let Some(tls) = tls {
                tell_tls(tls, &mut rest);
            }
            binary(0x21, if client.is_ipv4() { 0x11 } else { 0x21 }, &rest, out);
        }
    }
}

/// Writes the header of who speaks for itself, as health checks do.
pub fn write_own(version: ProxyVersion, out: &mut Vec<u8>) {
    match version {
        ProxyVersion::V1 => out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
        ProxyVersion::V2 => binary(0x20, 0x00, &[], out),
    }
}

fn binary(command: u8, family: u8, rest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&SIGNATURE);
    out.extend_from_slice(&[command, family]);
    out.extend_from_slice(&u16::try_from(rest.len()).unwrap_or_default().to_be_bytes());
    out.extend_from_slice(&rest[..rest.len().min(usize::from(u16::MAX))]);
}

/// Types of what may follow the addresses.
const ALPN: u8 = 0x01;
const AUTHORITY: u8 = 0x02;
const CRC32C: u8 = 0x03;
const UNIQUE_ID: u8 = 0x05;
const SSL: u8 = 0x20;
const SSL_VERSION: u8 = 0x21;
const SSL_CIPHER: u8 = 0x23;

/// The longest value that is told; names and suites are far shorter.
const VALUE: usize = 255;

fn tell_tls(tls: &TlsFacts, out: &mut Vec<u8>) {
    if let Some(alpn) = &tls.alpn {
        value(ALPN, alpn.as_bytes(), out);
    }
    if let Some(name) = &tls.sni {
        value(AUTHORITY, name.as_bytes(), out);
    }
    // The client came over TLS (bit 0) and showed no certificate, so that the verification field says "not verified".
    let mut ssl = vec![0x01, 0, 0, 0, 1];
    value(SSL_VERSION, tls.version.as_bytes(), &mut ssl);
    value(SSL_CIPHER, tls.suite.as_bytes(), &mut ssl);
    value(SSL, &ssl, out);
}

fn value(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(2 * VALUE + 16)];
    out.push(kind);
    out.extend_from_slice(&u16::try_from(bytes.len()).unwrap_or_default().to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Both in one family: where they differ, IPv4 is written as IPv6.
fn alike(client: SocketAddr, local: SocketAddr) -> (SocketAddr, SocketAddr) {
    if client.is_ipv4() == local.is_ipv4() {
        return (client, local);
    }
    let six = |address: SocketAddr| match address.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    (six(client), six(local))
}

fn octets(ip: IpAddr, out: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()),
        IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()),
    }
}
