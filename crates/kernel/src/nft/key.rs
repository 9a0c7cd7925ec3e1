//! Keys and data as the bytes the kernel compares: each part in network order, and in a concatenation filled up to four
//! bytes. `DataType` is what `nft` needs to print them.

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
    /// `ifname`
    Ifname,
    /// `mark`: 32 bits, in the machine's order
    Mark,
    /// `iface_index`
    IfIndex,
    /// `ether_addr`
    EtherAddr,
    /// Any other type, by its number and length; only ever read.
    Other(u8, u8),
}

impl DataType {
    /// The number `nft` gives it.
    pub(super) fn number(self) -> u32 {
        match self {
            DataType::Ipv4Addr => 7,
            DataType::Ipv6Addr => 8,
            DataType::EtherAddr => 9,
            DataType::InetProto => 12,
            DataType::InetService => 13,
            DataType::Mark => 19,
            DataType::IfIndex => 20,
            DataType::Ifname => 41,
            DataType::Other(number, _) => number.into(),
        }
    }

    pub(super) fn from_number(number: u32) -> Self {
        let known = [
            DataType::Ipv4Addr,
            DataType::Ipv6Addr,
            DataType::EtherAddr,
            DataType::InetProto,
            DataType::InetService,
            DataType::Mark,
            DataType::IfIndex,
            DataType::Ifname,
        ];
        let other = DataType::Other(number.to_le_bytes()[0], 0);
        known.into_iter().find(|known| known.number() == number).unwrap_or(other)
    }

    /// How many bytes it has.
    pub fn len(self) -> u32 {
        match self {
            DataType::Ipv4Addr | DataType::Mark | DataType::IfIndex => 4,
            DataType::Ipv6Addr | DataType::Ifname => 16,
            DataType::EtherAddr => 6,
            DataType::InetProto => 1,
            DataType::InetService => 2,
            DataType::Other(_, length) => length.into(),
        }
    }

    /// Whether it has no bytes, which only an unknown type has.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// How many bytes it takes in a concatenation.
    pub fn padded(self) -> u32 {
        self.len().next_multiple_of(4)
    }

    /// Whether numbers of this type are in the machine's order.
    pub(super) fn is_host_order(self) -> bool {
        matches!(self, DataType::Mark | DataType::IfIndex | DataType::Ifname)
    }
}

/// The bytes a key of these types has.
pub(super) fn length(types: &[DataType]) -> u32 {
    match types {
        [one] => one.len(),
        several => several.iter().map(|part| part.padded()).sum(),
    }
}

/// The number `nft` gives a concatenation of these types: six bits each. More than five do not fit; `nft` would not
/// print those.
pub(super) fn number(types: &[DataType]) -> u32 {
    types.iter().fold(0, |number, part| (number << 6) | (part.number() & 0x3f))
}

/// The types behind such a number.
pub(super) fn types(mut number: u32) -> Vec<DataType> {
    let mut types = Vec::new();
    while number != 0 && types.len() < 5 {
        types.insert(0, DataType::from_number(number & 0x3f));
        number >>= 6;
    }
    types
}

/// Builds a key from its parts.
///
/// ```
/// use fairlead_kernel::nft::Key;
/// let key = Key::new().ipv4([10, 96, 0, 10].into()).proto(6).port(80);
/// assert_eq!(key.into_bytes(), [10, 96, 0, 10, 6, 0, 0, 0, 0, 80, 0, 0]);
/// assert_eq!(Key::new().port(80).into_bytes(), [0, 80]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    bytes: Vec<u8>,
}

impl Key {
    /// A key without parts.
    pub fn new() -> Self {
        Key::default()
    }

    /// An IPv4 address.
    pub fn ipv4(self, address: Ipv4Addr) -> Self {
        self.part(&address.octets())
    }

    /// An IPv6 address.
    pub fn ipv6(self, address: Ipv6Addr) -> Self {
        self.part(&address.octets())
    }

    /// An address of either family.
    pub fn ip(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.ipv4(address),
            IpAddr::V6(address) => self.ipv6(address),
        }
    }

    /// A transport protocol, such as 6 for TCP.
    pub fn proto(self, number: u8) -> Self {
        self.part(&[number])
    }

    /// A port.
    pub fn port(self, port: u16) -> Self {
        self.part(&port.to_be_bytes())
    }

    /// A number in the machine's order: a mark, an index, what numgen drew.
    pub fn number(self, number: u32) -> Self {
        self.part(&number.to_ne_bytes())
    }

    /// The name of an interface; what is beyond 15 bytes is cut off, as the kernel does.
    pub fn ifname(self, name: &str) -> Self {
        let mut bytes = [0; 16];
        let length = name.len().min(15);
        bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
        self.part(&bytes)
    }

    /// Bytes as they are.
    pub fn part(mut self, bytes: &[u8]) -> Self {
        // Only a part that is not the last needs filling up; alone it stays as it is.
        let padded = self.bytes.len().next_multiple_of(4);
        let later = padded != 0;
        self.bytes.resize(padded, 0);
        self.bytes.extend_from_slice(bytes);
        if later {
            self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        }
        self
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
