//! Random numbers that others cannot predict, from the kernel.

use std::io;

use ring::rand::{SecureRandom, SystemRandom};

/// Returns random bytes.
pub(crate) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes)
}
