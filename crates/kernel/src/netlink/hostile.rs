//! For tests: what a broken or hostile sender might send. Good messages with bytes and lengths changed, pieces cut out, doubled
//! and mixed, and plain noise. Whatever reads messages must take all of it without harm.

use super::{Message, Messages};

/// How many messages there are in a short run and in a long one.
const ROUNDS: [u32; 2] = [50_000, 400_000];

/// Hands good messages to a reader, which must like each (it returns whether it does), and then bad ones made from them.
pub(crate) fn check(good: &[&[u8]], mut read: impl FnMut(&Message<'_>) -> bool) {
    for bytes in good {
        let liked = Messages::new(bytes).filter(|message| read(message)).count();
        assert!(liked > 0, "nobody likes {bytes:02x?}");
    }
    let mut random = fastrand::Rng::with_seed(u64::from(ROUNDS[0]));
    for _ in 0..ROUNDS[usize::from(fairlead_testkit::full())] {
        let bytes = bad(&mut random, good);
        Messages::new(&bytes).for_each(|message| {
            read(&message);
        });
        // A message in which the header is fine and nothing else need be.
        let kind = bytes.get(4..6).and_then(|kind| kind.try_into().ok()).map_or(0, u16::from_ne_bytes);
        read(&Message { kind, flags: 0, sequence: 1, port: 0, payload: bytes.get(16..).unwrap_or_default() });
    }
}

fn bad(random: &mut fastrand::Rng, good: &[&[u8]]) -> Vec<u8> {
    let mut bytes = good[random.usize(..good.len())].to_vec();
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(..24)).min(bytes.len());
        match random.u8(..6) {
            0 => bytes[at..end].iter_mut().for_each(|byte| *byte = random.u8(..)),
            // Lengths are at multiples of four.
            1 => set_length(&mut bytes, at & !3, random),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            4 => {
                let other = good[random.usize(..good.len())];
                let from = random.usize(..=other.len());
                bytes.splice(at..end, other[from..].iter().copied());
            }
            _ => bytes.truncate(at),
        }
        bytes.truncate(4096);
    }
    bytes
}

fn set_length(bytes: &mut [u8], at: usize, random: &mut fastrand::Rng) {
    let edges = [0, 1, 3, 4, 5, 7, 8, 20, 0x7fff, 0x8004, 0xffff];
    let length: u16 = if random.bool() { edges[random.usize(..edges.len())] } else { random.u16(..80) };
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&length.to_ne_bytes());
    }
}
