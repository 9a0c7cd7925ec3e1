//! Keys and values as the bytes the kernel compares: each part in network order, numbers in the machine's, and in a
//! concatenation filled up to four bytes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a part of a key is, as `nft` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `ipv4_addr`
    Ipv4Addr,
    /// `ipv6_addr`
    Ipv6Addr,
    /// `inet_proto`
    InetProto,
    /// `inet_service`: a port
    InetService,
    /// `mark`: 32 bits, in the machine's order
    Mark,
}

impl DataType {
    /// How many bytes it has.
    pub fn len(self) -> usize {
        match self {
            DataType::Ipv4Addr | DataType::Mark => 4,
            DataType::Ipv6Addr => 16,
            DataType::InetProto => 1,
            DataType::InetService => 2,
        }
    }

    /// Whether it has no bytes: none has.
    pub fn is_empty(self) -> bool {
        false
    }

    /// The name `nft` has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            DataType::Ipv4Addr => "ipv4_addr",
            DataType::Ipv6Addr => "ipv6_addr",
            DataType::InetProto => "inet_proto",
            DataType::InetService => "inet_service",
            DataType::Mark => "mark",
        }
    }

    /// A part of this type as `nft` prints it.
    pub(crate) fn print(self, bytes: &[u8]) -> String {
        let number = || bytes.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        match (self, bytes.len()) {
            (DataType::Ipv4Addr, 4) => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).unwrap_or_default()).to_string(),
            (DataType::Ipv6Addr, 16) => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap_or_default()).to_string(),
            (DataType::Mark, 4) => format!("0x{:08x}", u32::from_ne_bytes(bytes.try_into().unwrap_or_default())),
            (DataType::InetProto, _) => match number() {
                6 => "tcp".to_owned(),
                17 => "udp".to_owned(),
                132 => "sctp".to_owned(),
                other => other.to_string(),
            },
            _ => number().to_string(),
        }
    }
}

/// How many bytes a key of these types has.
pub fn length(types: &[DataType]) -> usize {
    match types {
        [one] => one.len(),
        several => several.iter().map(|part| part.len().next_multiple_of(4)).sum(),
    }
}

/// The longest key there is here: two IPv6 addresses, a protocol and a port.
const LONGEST: usize = 40;

/// A key, or a value, built from its parts.
///
/// ```
/// use fairlead_program::nft::Key;
/// let key = Key::new().ip([10, 96, 0, 10].into()).proto(6).port(80);
/// assert_eq!(key.as_bytes(), [10, 96, 0, 10, 6, 0, 0, 0, 0, 80, 0, 0]);
/// assert_eq!(Key::new().port(80).as_bytes(), [0, 80]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    // There are hundreds of thousands of them: none has memory of its own.
    bytes: [u8; LONGEST],
    length: u8,
}

impl Default for Key {
    fn default() -> Key {
        Key { bytes: [0; LONGEST], length: 0 }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_bytes())
    }
}

impl Key {
    /// A key without parts.
    pub fn new() -> Key {
        Key::default()
    }

    /// An address.
    pub fn ip(self, address: IpAddr) -> Key {
        match address {
            IpAddr::V4(address) => self.part(&address.octets()),
            IpAddr::V6(address) => self.part(&address.octets()),
        }
    }

    /// A transport protocol, such as 6 for TCP.
    pub fn proto(self, number: u8) -> Key {
        self.part(&[number])
    }

    /// A port.
    pub fn port(self, port: u16) -> Key {
        self.part(&port.to_be_bytes())
    }

    /// A number in the machine's order: a mark, what numgen drew.
    pub fn number(self, number: u32) -> Key {
        self.part(&number.to_ne_bytes())
    }

    /// Bytes as they are. What is beyond the longest key there is here is cut off.
    pub fn part(mut self, bytes: &[u8]) -> Key {
        // Only a part that is not alone is filled up.
        let start = usize::from(self.length).next_multiple_of(4);
        let end = (start + bytes.len()).min(LONGEST);
        self.bytes[start..end].copy_from_slice(&bytes[..end - start]);
        let length = if start > 0 { end.next_multiple_of(4) } else { end };
        self.length = length.try_into().expect("the longest is far below 256");
        self
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The bytes as one number in the machine's order, if they are four.
    pub fn as_number(&self) -> Option<u32> {
        self.as_bytes().try_into().ok().map(u32::from_ne_bytes)
    }

    /// The parts, by their types.
    pub(crate) fn parts<'a>(&'a self, types: &'a [DataType]) -> impl Iterator<Item = (DataType, &'a [u8])> {
        let mut at = 0;
        types.iter().map(move |part| {
            let bytes = self.as_bytes().get(at..at + part.len()).unwrap_or_default();
            at += part.len().next_multiple_of(4);
            (*part, bytes)
        })
    }
}
