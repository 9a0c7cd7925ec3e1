//! To which backend does a client's address lead, so that few clients move when backends come and go? Google's Maglev: every
//! backend fills a table by its own permutation of the places. Pure, and the same on all Nodes.

use std::net::{IpAddr, SocketAddr};

/// How many places: a prime, so that every step leads through all of them, and far more than backends, so that shares are
/// even (the paper's 1 % at a hundredth as many backends).
const PLACES: usize = 65_537;

/// Which backend each place leads to; empty if there is none with a weight.
pub(super) fn table(backends: &[(SocketAddr, u32)]) -> Vec<u16> {
    let heaviest = backends.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
    if heaviest == 0 {
        return Vec::new();
    }
    let mut walks: Vec<Walk> = backends.iter().map(|(address, weight)| Walk::new(*address, *weight)).collect();
    let (mut table, mut filled) = (vec![u16::MAX; PLACES], 0);
    // In each round the heaviest takes a place, the others as often as their weight says.
    for round in 1.. {
        for (index, walk) in walks.iter_mut().enumerate() {
            if round * u64::from(walk.weight) < (walk.taken + 1) * u64::from(heaviest) {
                continue;
            }
            walk.taken += 1;
            let place = walk.free_place(&table);
            table[place] = u16::try_from(index).unwrap_or_default();
            filled += 1;
            if filled == PLACES {
                return table;
            }
        }
    }
    table
}

/// Where a client's address is in a table of so many places.
pub(super) fn place(client: IpAddr, places: usize) -> usize {
    let bits = match client {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    usize::try_from(hash(bits, 3) % (places.max(1) as u64)).unwrap_or_default()
}

/// A backend's way through the places.
struct Walk {
    weight: u32,
    at: usize,
    step: usize,
    taken: u64,
}

impl Walk {
    fn new(address: SocketAddr, weight: u32) -> Walk {
        let bits = match address.ip() {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let bits = bits ^ (u128::from(address.port()) << 112);
        let whole = |number: u64| usize::try_from(number).unwrap_or_default();
        let at = whole(hash(bits, 1) % PLACES as u64);
        Walk { weight, at, step: whole(hash(bits, 2) % (PLACES as u64 - 1)) + 1, taken: 0 }
    }

    /// The next place on its way that nobody has. Called only while there is one.
    fn free_place(&mut self, table: &[u16]) -> usize {
        loop {
            let place = self.at;
            self.at = (self.at + self.step) % PLACES;
            if table[place] == u16::MAX {
                return place;
            }
        }
    }
}

/// A number that looks random, and is the same everywhere (the finish of splitmix64, over both halves).
fn hash(bits: u128, seed: u64) -> u64 {
    let mix = |mut x: u64| {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let low = mix((bits as u64).wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    mix(low ^ mix(((bits >> 64) as u64).wrapping_add(seed)))
}
