//! Who listens? The sockets of a network namespace that take connections or datagrams from others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::error::Error;

#[cfg(test)]
mod tests;

/// The network as this thread sees it.
const OWN: &str = "/proc/thread-self/net";
/// The state of a TCP socket that takes connections.
const LISTENS: &str = "0A";
/// The state of a UDP socket that takes datagrams of anybody.
const UNCONNECTED: &str = "07";

/// What a socket speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A socket that waits for others. One at `::` takes IPv4 too, unless its owner forbade it, which the kernel does not tell here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listening {
    /// What it speaks.
    pub transport: Transport,
    /// Where.
    pub at: SocketAddr,
    /// Its number, by which processes hold it; 0: not known.
    pub inode: u64,
}

/// All of them in the namespace of this thread, in order.
pub fn listening() -> Result<Vec<Listening>, Error> {
    let mut found = Vec::new();
    for (name, transport, state) in [
        ("tcp", Transport::Tcp, LISTENS),
        ("tcp6", Transport::Tcp, LISTENS),
        ("udp", Transport::Udp, UNCONNECTED),
        ("udp6", Transport::Udp, UNCONNECTED),
    ] {
        let text = match fs::read_to_string(Path::new(OWN).join(name)) {
            Ok(text) => text,
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(Error::System { action: format!("reading {OWN}/{name}"), source }),
        };
        let here = text.lines().skip(1).filter_map(|line| socket(line, state));
        found.extend(here.map(|(at, inode)| Listening { transport, at, inode }));
    }
    found.sort();
    found.dedup_by_key(|socket| (socket.transport, socket.at));
    Ok(found)
}

/// The names of the programs of these processes, by the numbers of the sockets they hold.
pub fn programs(processes: &[u32]) -> BTreeMap<u64, String> {
    let mut found = BTreeMap::new();
    for pid in processes {
        // One that has ended meanwhile holds none.
        let Ok(name) = fs::read_to_string(format!("/proc/{pid}/comm")) else { continue };
        let held = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let sockets = held.filter_map(|entry| inode(fs::read_link(entry.path()).ok()?.to_str()?));
        found.extend(sockets.map(|number| (number, name.trim_end().to_owned())));
    }
    found
}

/// The number of `socket:[12345]`.
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The address and number of a line such as `  0: 0100007F:1F90 00000000:0000 0A ...`, if the socket is in that state.
fn socket(line: &str, state: &str) -> Option<(SocketAddr, u64)> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _, is) = (fields.next()?, fields.next()?, fields.next()?);
    let (ip, port) = local.split_once(':')?;
    let at = SocketAddr::new(address(ip)?, u16::from_str_radix(port, 16).ok()?);
    let inode = fields.nth(5).and_then(|number| number.parse().ok()).unwrap_or_default();
    (is == state).then_some((at, inode))
}

/// An address as words of 32 bits, each in the machine's order.
fn address(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical())
        }
        _ => None,
    }
}
