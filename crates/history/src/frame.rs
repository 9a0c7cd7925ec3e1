//! Records in a file, one behind the other, so that what was cut off or damaged is seen: a length, a checksum, the record.
//!
//! ```text
//! +--------------+---------------------------+---------+
//! | length: u32  | CRC-32 of length + record | record  |   numbers little endian
//! +--------------+---------------------------+---------+
//! ```
//! Reading ends at the first frame that is not whole: what comes after it cannot be trusted to begin where it seems to.

#[cfg(test)]
mod tests;

/// Length and checksum.
const HEAD: usize = 8;
/// The longest record that is written or believed; nothing that is kept comes near.
pub(crate) const MAX_RECORD: usize = 8 << 20;

/// Appends a record.
pub(crate) fn put(out: &mut Vec<u8>, record: &[u8]) {
    put_with(out, |out| out.extend_from_slice(record));
}

/// Appends a record that is written in its place.
pub(crate) fn put_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend([0; HEAD]);
    write(out);
    let record = &out[begin + HEAD..];
    debug_assert!(record.len() <= MAX_RECORD, "records are kept small by who makes them");
    let length = u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes();
    let sum = checksum(&length, record);
    out[begin..begin + 4].copy_from_slice(&length);
    out[begin + 4..begin + HEAD].copy_from_slice(&sum);
}

fn checksum(length: &[u8], record: &[u8]) -> [u8; 4] {
    let mut sum = crc32fast::Hasher::new();
    sum.update(length);
    sum.update(record);
    sum.finalize().to_le_bytes()
}

/// The records of some bytes, up to the first that is not whole.
#[derive(Debug)]
pub(crate) struct Frames<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Frames<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Frames<'b> {
        Frames { bytes, at: 0 }
    }

    /// Where the next record begins: everything before is whole.
    pub(crate) fn whole(&self) -> usize {
        self.at
    }
}

impl<'b> Iterator for Frames<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let (head, rest) = self.bytes.get(self.at..)?.split_at_checked(HEAD)?;
        let (length, sum) = head.split_at(4);
        let size = usize::try_from(u32::from_le_bytes(length.try_into().ok()?)).ok()?;
        let record = rest.get(..size).filter(|_| size <= MAX_RECORD)?;
        if checksum(length, record) != sum {
            return None;
        }
        self.at += HEAD + size;
        Some(record)
    }
}
