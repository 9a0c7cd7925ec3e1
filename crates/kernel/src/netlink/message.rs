//! Messages: a header of 16 bytes, the protocol's own header, and attributes. `Writer` makes them, `Messages` takes a
//! received buffer apart.

use super::{Attributes, flag};

const HEADER: usize = 16;
const NESTED: u16 = 0x8000;

/// Builds messages one after the other in one buffer.
#[derive(Debug, Default)]
pub struct Writer {
    buffer: Vec<u8>,
    /// Where the message that is being written begins.
    start: usize,
    /// An attribute was longer than its 16-bit length can say; nothing of this buffer may be sent.
    too_long: bool,
}

impl Writer {
    /// An empty buffer.
    pub fn new() -> Self {
        Writer::default()
    }

    /// Begins a message; `flag::REQUEST` is added. Every message ends with [`Writer::end`].
    pub fn begin(&mut self, kind: u16, flags: u16, sequence: u32, header: &[u8]) {
        self.start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&kind.to_ne_bytes());
        self.buffer.extend_from_slice(&(flags | flag::REQUEST).to_ne_bytes());
        self.buffer.extend_from_slice(&sequence.to_ne_bytes());
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(header);
        self.pad();
    }

    /// Ends the message: its length is known now.
    pub fn end(&mut self) {
        let length = u32::try_from(self.buffer.len() - self.start).unwrap_or(u32::MAX);
        self.buffer[self.start..self.start + 4].copy_from_slice(&length.to_ne_bytes());
    }

    /// An attribute of bytes.
    pub fn bytes(&mut self, kind: u16, bytes: &[u8]) {
        let Ok(length) = u16::try_from(bytes.len() + 4) else {
            self.too_long = true;
            return;
        };
        self.buffer.extend_from_slice(&length.to_ne_bytes());
        self.buffer.extend_from_slice(&kind.to_ne_bytes());
        self.buffer.extend_from_slice(bytes);
        self.pad();
    }

    /// A string with its NUL.
    pub fn text(&mut self, kind: u16, text: &str) {
        let Ok(length) = u16::try_from(text.len() + 5) else {
            self.too_long = true;
            return;
        };
        self.buffer.extend_from_slice(&length.to_ne_bytes());
        self.buffer.extend_from_slice(&kind.to_ne_bytes());
        self.buffer.extend_from_slice(text.as_bytes());
        self.buffer.push(0);
        self.pad();
    }

    /// A byte.
    pub fn u8(&mut self, kind: u16, value: u8) {
        self.bytes(kind, &[value]);
    }

    /// A number in network order.
    pub fn u16_be(&mut self, kind: u16, value: u16) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// A number in network order.
    pub fn u32_be(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// A number in network order.
    pub fn u64_be(&mut self, kind: u16, value: u64) {
        self.bytes(kind, &value.to_be_bytes());
    }

    /// A number in the machine's order.
    pub fn u16(&mut self, kind: u16, value: u16) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    /// A number in the machine's order.
    pub fn u32(&mut self, kind: u16, value: u32) {
        self.bytes(kind, &value.to_ne_bytes());
    }

    /// An attribute that holds what `fill` writes.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Writer)) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 2]);
        self.buffer.extend_from_slice(&(kind | NESTED).to_ne_bytes());
        fill(self);
        match u16::try_from(self.buffer.len() - start) {
            Ok(length) => self.buffer[start..start + 2].copy_from_slice(&length.to_ne_bytes()),
            Err(_) => self.too_long = true,
        }
    }

    /// Bytes that stand in the message as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.pad();
    }

    /// What was written so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// How many bytes were written so far.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Whether something did not fit its length field.
    pub fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// Overwrites bytes that were written before.
    pub(crate) fn patch(&mut self, at: usize, bytes: &[u8]) {
        self.buffer[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Numbers the messages one after the other from `first` on.
    pub(crate) fn renumber(&mut self, first: u32) {
        let (mut at, mut sequence) = (0, first);
        while at + HEADER <= self.buffer.len() {
            let length = u32::from_ne_bytes(self.buffer[at..at + 4].try_into().expect("four bytes")) as usize;
            self.patch(at + 8, &sequence.to_ne_bytes());
            sequence = sequence.wrapping_add(1);
            at += length.next_multiple_of(4).max(HEADER);
        }
    }

    fn pad(&mut self) {
        let padded = self.buffer.len().next_multiple_of(4);
        self.buffer.resize(padded, 0);
    }
}

/// A message as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The kind: of the protocol, or one of netlink's own below 16.
    pub kind: u16,
    /// See [`flag`].
    pub flags: u16,
    /// The number of the request it answers.
    pub sequence: u32,
    /// The netlink port it is for, or in an event the port of whoever caused it.
    pub port: u32,
    /// Everything behind the header.
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// The attributes behind a protocol header of `skip` bytes.
    pub fn attributes(&self, skip: usize) -> Attributes<'a> {
        Attributes::new(self.payload.get(skip..).unwrap_or_default())
    }
}

/// The messages of one datagram; ends at the first whose length is a lie.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Reads `bytes` as messages.
    pub fn new(bytes: &'a [u8]) -> Self {
        Messages { rest: bytes }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let header: [u8; HEADER] = self.rest.get(..HEADER)?.try_into().ok()?;
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let length = word(0) as usize;
        let Some(payload) = self.rest.get(HEADER..length) else {
            self.rest = &[];
            return None;
        };
        self.rest = self.rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind: half(4), flags: half(6), sequence: word(8), port: word(12), payload })
    }
}

/// The attributes on the way to the byte `offset` of a message whose attributes begin at `first`.
pub(crate) fn attribute_path(message: &[u8], first: usize, offset: usize) -> Vec<u16> {
    let mut path = Vec::new();
    let mut level = (first, message.len());
    // No message of ours nests deeper than this.
    while path.len() < 12 {
        let Some((kind, start, end)) = attribute_at(message, level, offset) else { break };
        path.push(kind);
        if start == offset {
            break;
        }
        level = (start + 4, end);
    }
    path
}

/// The kind and bounds of the attribute that covers `offset`.
fn attribute_at(message: &[u8], (mut at, end): (usize, usize), offset: usize) -> Option<(u16, usize, usize)> {
    while at < end {
        let header = message.get(at..at + 4)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        if length < 4 || at + length > end {
            return None;
        }
        if (at..at + length).contains(&offset) {
            return Some((u16::from_ne_bytes([header[2], header[3]]) & 0x3fff, at, at + length));
        }
        at += length.next_multiple_of(4);
    }
    None
}
