//! Names of chains and lists: from what they are for, so that they are the same in every run. Part of each is a SHA-256, so
//! that nobody can choose the name of a Service to meet another's chain.

use std::fmt::Display;

use fairlead_plan::{Endpoint, FrontendKey, PoolKey, PortKey, Scope};

/// `FAIRLEAD-SVC-…` for all endpoints of a port, `FAIRLEAD-SVL-…` for those on this Node.
pub(crate) fn pool(key: &PoolKey) -> String {
    let kind = match key.scope {
        Scope::Cluster => "SVC",
        Scope::Local => "SVL",
    };
    named(kind, &key.port)
}

/// `FAIRLEAD-SEP-…` for one endpoint of a port; also the name of the list of its clients.
pub(crate) fn endpoint(port: &PortKey, endpoint: &Endpoint) -> String {
    named("SEP", &format_args!("{port} {endpoint}"))
}

/// `FAIRLEAD-EXT-…`, `-ALW-…`, `-GRD-…`, `-REF-…` for a frontend.
pub(crate) fn frontend(kind: &str, key: &FrontendKey) -> String {
    named(kind, key)
}

/// Names of chains have 28 characters at most.
fn named(kind: &str, of: &dyn Display) -> String {
    let digest = sha256(of.to_string().as_bytes());
    let mut bits = u64::from_be_bytes(digest[..8].try_into().expect("a digest has 32 bytes"));
    let mut name = format!("FAIRLEAD-{kind}-");
    for _ in 0..12 {
        name.push(char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[(bits & 31) as usize]));
        bits >>= 5;
    }
    name
}

/// The first words of SHA-256 (FIPS 180-4), and those of its rounds: fractions of the roots of the first primes.
const START: [u32; 8] = root_fractions(2);
const ROUNDS: [u32; 64] = root_fractions(3);

fn sha256(message: &[u8]) -> [u8; 32] {
    let mut state = START;
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        compress(&mut state, block);
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// The first 32 bits behind the point of the square or cube roots of primes.
const fn root_fractions<const N: usize>(power: u32) -> [u32; N] {
    let mut fractions = [0; N];
    let (mut found, mut number) = (0, 2u128);
    while found < N {
        let mut divisor = 2;
        while number % divisor != 0 {
            divisor += 1;
        }
        if divisor == number {
            fractions[found] = root_fraction(number, power);
            found += 1;
        }
        number += 1;
    }
    fractions
}

/// The largest number whose power fits is the root times 2 to the 32.
const fn root_fraction(of: u128, power: u32) -> u32 {
    let goal = of << (32 * power);
    let (mut low, mut high) = (0u128, 1u128 << 37);
    while low + 1 < high {
        let middle = u128::midpoint(low, high);
        if middle.pow(power) <= goal {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

fn compress(state: &mut [u32; 8], block: &[u8]) {
    let word = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let mut words = [0; 64];
    words.iter_mut().zip(block.chunks_exact(4)).for_each(|(to, bytes)| *to = word(bytes));
    for at in 16..64 {
        let (early, late) = (words[at - 15], words[at - 2]);
        let one = early.rotate_right(7) ^ early.rotate_right(18) ^ early >> 3;
        let other = late.rotate_right(17) ^ late.rotate_right(19) ^ late >> 10;
        words[at] = words[at - 16].wrapping_add(one).wrapping_add(words[at - 7]).wrapping_add(other);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, word) in ROUNDS.iter().zip(words) {
        let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let first = h.wrapping_add(sum).wrapping_add(e & f ^ !e & g).wrapping_add(*round).wrapping_add(word);
        let sum = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = sum.wrapping_add(a & b ^ a & c ^ b & c);
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(first), c, b, a, first.wrapping_add(second));
    }
    for (word, added) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: &str) {
        let digest: String = sha256(message.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, expected, "{message:?}");
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        check(
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        );
    }
}
