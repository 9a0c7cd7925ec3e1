//! CRC-32C (Castagnoli), the checksum of PROXY headers (RFC 9260, appendix A; proxy-protocol.txt,
//! 2.2.3). Pure.
//!
//! `crc32fast`, which the tree has, computes the CRC-32 of IEEE 802.3, another polynomial.

/// The polynomial 0x1EDC6F41 with its bits reversed, as the least significant bit of each byte
/// comes first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The remainder for each byte.
const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        let mut remainder = index as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { (remainder >> 1) ^ POLYNOMIAL } else { remainder >> 1 };
            bit += 1;
        }
        table[index] = remainder;
        index += 1;
    }
    table
}

/// Returns the checksum of parts, one after the other.
pub(super) fn of(parts: &[&[u8]]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    let next = |sum: u32, byte: &u8| TABLE[usize::from((sum as u8) ^ byte)] ^ (sum >> 8);
    !bytes.fold(!0, next)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, B.4.
        assert_eq!(of(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(of(&[&[0xff; 32]]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(of(&[&rising]), 0x46dd_794e);
        assert_eq!(of(&[&rising[..7], &[], &rising[7..]]), 0x46dd_794e);
        assert_eq!(of(&[b"123456789"]), 0xe306_9283);
    }
}
