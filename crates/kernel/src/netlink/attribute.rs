//! Attributes as they are read: a kind, a length, and bytes that may hold attributes again. Reading stops at the first
//! attribute whose length is a lie; nothing here panics.

/// The two highest bits of a kind say how the bytes are to be read; the kernel does not set them reliably.
const KIND_MASK: u16 = 0x3fff;
const HEADER: usize = 4;

/// One attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// What it is, without the flags.
    pub kind: u16,
    /// What it holds.
    pub bytes: &'a [u8],
}

/// Attributes one after the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Reads `bytes` as attributes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Attributes { rest: bytes }
    }

    /// The first attribute of a kind.
    pub fn find(&self, kind: u16) -> Option<Attribute<'a>> {
        Iterator::find(&mut self.into_iter(), |attribute| attribute.kind == kind)
    }

    /// What the first attribute of a kind holds, read as attributes; nothing if it is not there.
    pub fn nested(&self, kind: u16) -> Attributes<'a> {
        self.find(kind).map(|attribute| attribute.nested()).unwrap_or_default()
    }

    /// A number in network order.
    pub fn u32_be(&self, kind: u16) -> Option<u32> {
        self.find(kind)?.u32_be()
    }

    /// A number in network order.
    pub fn u64_be(&self, kind: u16) -> Option<u64> {
        self.find(kind)?.u64_be()
    }

    /// A string.
    pub fn text(&self, kind: u16) -> Option<String> {
        Some(self.find(kind)?.text())
    }

    /// The bytes of an attribute.
    pub fn bytes(&self, kind: u16) -> Option<&'a [u8]> {
        Some(self.find(kind)?.bytes)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let header = self.rest.get(..HEADER)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & KIND_MASK;
        let Some(bytes) = self.rest.get(HEADER..length) else {
            self.rest = &[];
            return None;
        };
        // The last attribute may come without its padding.
        self.rest = self.rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Attribute { kind, bytes })
    }
}

impl<'a> Attribute<'a> {
    /// What it holds, read as attributes.
    pub fn nested(&self) -> Attributes<'a> {
        Attributes::new(self.bytes)
    }

    /// A string, up to its NUL; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }

    /// A byte.
    pub fn u8(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    /// A number in network order.
    pub fn u16_be(&self) -> Option<u16> {
        self.bytes.try_into().ok().map(u16::from_be_bytes)
    }

    /// A number in network order.
    pub fn u32_be(&self) -> Option<u32> {
        self.bytes.try_into().ok().map(u32::from_be_bytes)
    }

    /// A number in network order.
    pub fn u64_be(&self) -> Option<u64> {
        self.bytes.try_into().ok().map(u64::from_be_bytes)
    }

    /// A number in the machine's order.
    pub fn u16(&self) -> Option<u16> {
        self.bytes.try_into().ok().map(u16::from_ne_bytes)
    }

    /// A number in the machine's order.
    pub fn u32(&self) -> Option<u32> {
        self.bytes.try_into().ok().map(u32::from_ne_bytes)
    }

    /// A number in the machine's order.
    pub fn u64(&self) -> Option<u64> {
        self.bytes.try_into().ok().map(u64::from_ne_bytes)
    }
}
