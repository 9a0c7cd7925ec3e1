//! The bytes of protobuf: tags, varints and lengths. Every length is checked against what is there.

use super::{Error, mismatch};

/// Groups within groups, which nobody sends: enough to skip, not enough to exhaust the stack.
const MAX_GROUPS: u32 = 64;

/// What follows a tag.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// Skipped: no Kubernetes type has one.
    Group,
    Fixed32(u32),
}

impl<'a> Wire<'a> {
    /// The number of the wire type.
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Wire::Varint(_) => 0,
            Wire::Fixed64(_) => 1,
            Wire::Bytes(_) => 2,
            Wire::Group => 3,
            Wire::Fixed32(_) => 5,
        }
    }

    pub(crate) fn bytes(self, field: &str) -> Result<&'a [u8], Error> {
        match self {
            Wire::Bytes(bytes) => Ok(bytes),
            other => Err(mismatch(&other, field)),
        }
    }

    pub(crate) fn varint(self, field: &str) -> Result<u64, Error> {
        match self {
            Wire::Varint(value) => Ok(value),
            other => Err(mismatch(&other, field)),
        }
    }

    /// Text that is not UTF-8 is kept as far as JSON can say it.
    pub(crate) fn text(self, field: &str) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(self.bytes(field)?).into_owned())
    }
}

/// Takes fields off the front of a message.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Reader { rest: message }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field: its number and what it holds; `None` at the end of the message.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, Error> {
        if self.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        if kind == 4 {
            return Err(malformed("proto: wiretype end group for non-group"));
        }
        Ok(Some((number, self.value(kind, 0)?)))
    }

    fn tag(&mut self) -> Result<(u32, u8), Error> {
        let tag = self.varint()?;
        let kind = (tag & 7) as u8;
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=0x1fff_ffff) => Ok((number, kind)),
            _ => Err(Error::Malformed(format!("proto: illegal tag {} (wire type {tag})", tag >> 3))),
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Result<Wire<'a>, Error> {
        Ok(match kind {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| end())?;
                Wire::Bytes(self.take(length)?)
            }
            3 => self.group(depth + 1)?,
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(Error::Malformed(format!("proto: illegal wireType {other}"))),
        })
    }

    fn group(&mut self, depth: u32) -> Result<Wire<'a>, Error> {
        if depth > MAX_GROUPS {
            return Err(malformed("proto: groups nested too deeply"));
        }
        loop {
            match self.tag()? {
                (_, 4) => return Ok(Wire::Group),
                (_, kind) => self.value(kind, depth)?,
            };
        }
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or_else(end)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed("proto: integer overflow"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(end)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(end)?;
        self.rest = rest;
        Ok(*taken)
    }
}

/// Appends fields to a message.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// A message with bytes of another kind before it.
    pub(crate) fn after(prefix: &[u8]) -> Self {
        Writer { out: prefix.to_vec() }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn integer(&mut self, number: u32, value: i64) {
        self.raw(u64::from(number) << 3);
        // Negative numbers take ten bytes whatever their width: the sign is extended to 64 bits.
        self.raw(value.cast_unsigned());
    }

    pub(crate) fn flag(&mut self, number: u32, value: bool) {
        self.integer(number, value.into());
    }

    pub(crate) fn double(&mut self, number: u32, value: f64) {
        self.raw(u64::from(number) << 3 | 1);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, number: u32, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    pub(crate) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.raw(u64::from(number) << 3 | 2);
        self.raw(value.len() as u64);
        self.out.extend_from_slice(value);
    }

    pub(crate) fn message(&mut self, number: u32, fill: impl FnOnce(&mut Writer)) {
        let mut inner = Writer::default();
        fill(&mut inner);
        self.bytes(number, &inner.out);
    }

    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }
}

fn end() -> Error {
    malformed("unexpected EOF")
}

fn malformed(message: &str) -> Error {
    Error::Malformed(message.to_owned())
}
