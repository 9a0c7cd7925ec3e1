//! The keys of server blocks: `.:53`, `example.org`, `dns://example.org:1053`, `10.0.0.0/24`.

use std::collections::HashSet;

use fairlead_zone::{Name, reverse_zones};

use super::Findings;
use super::tree::{Block, Word};
use crate::settings::{Key, Server};

/// The port of a key that names none.
const PORT: u16 = 53;
/// Transports that are not spoken here.
const FOREIGN: [&str; 6] = ["tls", "https", "https3", "grpc", "quic", "http"];

/// What a key of a block stands for. A range of addresses may be several zones.
pub(super) fn key(word: &Word, found: &mut Findings) -> Vec<Key> {
    let text = match word.text.split_once("://") {
        Some(("dns", rest)) => rest,
        Some((scheme, _)) if FOREIGN.contains(&scheme) => {
            found.add("server block", word, format_args!("{scheme}:// is not supported"));
            return Vec::new();
        }
        _ => word.text.as_str(),
    };
    let (zone, port) = split(text);
    match (zones(zone), port) {
        (Some(zones), Some(port)) => zones.into_iter().map(|zone| Key { zone, port }).collect(),
        _ => {
            found.invalid("server block", word, "zone with a port, such as example.org:53");
            Vec::new()
        }
    }
}

/// The zone and the port. What stands behind the last colon is a port if it is a number.
fn split(text: &str) -> (&str, Option<u16>) {
    match text.rsplit_once(':') {
        // An address range of version 6 has colons of its own, and its mask behind them.
        Some((zone, port)) if !port.contains('/') => (zone, port.parse().ok()),
        _ => (text, Some(PORT)),
    }
}

/// The zone of a name, or the reverse zones of a range of addresses.
pub(super) fn zones(text: &str) -> Option<Vec<Name>> {
    if let Ok(range) = text.parse() {
        return Some(reverse_zones(&range));
    }
    let name: Name = text.parse().ok()?;
    (!text.contains('/')).then(|| vec![name.to_lower()])
}

/// Two blocks may not serve one zone at one port, unless they say where they listen.
pub(super) fn clashes(servers: &[Server], blocks: &[Block], found: &mut Findings) {
    let mut seen = HashSet::new();
    let pairs = servers.iter().zip(blocks).filter(|(server, _)| server.plugins.bind.is_empty());
    for (server, block) in pairs {
        for key in &server.keys {
            if let (false, Some(word)) = (seen.insert((&key.zone, key.port)), block.keys.first()) {
                let what = format_args!("{}:{} is served by another block already", key.zone, key.port);
                found.add("server block", word, what);
            }
        }
    }
}
