//! Numbers, times and texts as bytes and back. Whatever bytes come in, reading ends in a value or in `None`.

use jiff::Timestamp;

pub(crate) fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    out.extend(time.as_microsecond().to_le_bytes());
}

pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    // Objects have 3 MiB at most, names far less.
    out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(text);
}

/// Reads from the front.
#[derive(Debug)]
pub(super) struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { bytes }
    }

    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(drop)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(super) fn time(&mut self) -> Option<Timestamp> {
        Timestamp::from_microsecond(i64::from_le_bytes(self.take(8)?.try_into().ok()?)).ok()
    }

    pub(super) fn text(&mut self) -> Option<&'b [u8]> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        self.take(usize::try_from(length).ok()?)
    }

    pub(super) fn string(&mut self) -> Option<String> {
        String::from_utf8(self.text()?.to_vec()).ok()
    }

    pub(super) fn rest(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub(super) fn rest_is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
