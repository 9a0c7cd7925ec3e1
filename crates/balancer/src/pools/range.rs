//! Ranges of addresses as people write them: `192.0.2.0/28`, `192.0.2.10-192.0.2.20`, one address.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use fairlead_api::view::Family;
use ipnet::IpNet;

/// Addresses of one family from a first to a last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    family: Family,
    first: u128,
    last: u128,
}

/// Why a text is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// It cannot be read.
    #[error("{0:?} is no range of addresses: want one such as 192.0.2.0/28 or 192.0.2.10-192.0.2.20")]
    Unreadable(String),
    /// Its last address is before its first, or of another family.
    #[error("{0:?} ends before it begins")]
    Backwards(String),
    /// Nobody can reach such addresses.
    #[error("{0:?} has addresses that no load balancer can have: loopback, multicast or unspecified ones")]
    Unusable(String),
}

impl Range {
    /// Its family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Its first address as a number.
    pub fn first(&self) -> u128 {
        self.first
    }

    /// Its last address as a number.
    pub fn last(&self) -> u128 {
        self.last
    }

    /// Returns its first and last address.
    pub fn addresses(&self) -> RangeInclusive<IpAddr> {
        address(self.family, self.first)..=address(self.family, self.last)
    }

    /// How many addresses it has; all of IPv6 are one fewer than there are.
    pub fn size(&self) -> u128 {
        (self.last - self.first).saturating_add(1)
    }

    /// Whether an address is in it.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let (family, number) = number(ip);
        family == self.family && (self.first..=self.last).contains(&number)
    }

    /// Whether the two have an address in common.
    pub fn overlaps(&self, other: &Range) -> bool {
        self.family == other.family && self.first <= other.last && other.first <= self.last
    }
}

impl FromStr for Range {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Range, RangeError> {
        let text = text.trim();
        let unreadable = || RangeError::Unreadable(text.to_owned());
        let (first, last) = if let Some((first, last)) = text.split_once('-') {
            let read = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| unreadable());
            (read(first)?, read(last)?)
        } else if text.contains('/') {
            let net: IpNet = text.parse().map_err(|_| unreadable())?;
            (net.network(), net.broadcast())
        } else {
            let ip = text.parse::<IpAddr>().map_err(|_| unreadable())?;
            (ip, ip)
        };
        let unusable = |ip: IpAddr| ip.is_loopback() || ip.is_multicast() || ip.is_unspecified();
        if unusable(first) || unusable(last) {
            return Err(RangeError::Unusable(text.to_owned()));
        }
        let ((family, first), (other, last)) = (number(first), number(last));
        if family != other || last < first {
            return Err(RangeError::Backwards(text.to_owned()));
        }
        Ok(Range { family, first, last })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (address(self.family, self.first), address(self.family, self.last));
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

/// An address as a number.
pub(super) fn number(ip: IpAddr) -> (Family, u128) {
    match ip {
        IpAddr::V4(ip) => (Family::V4, u128::from(u32::from(ip))),
        IpAddr::V6(ip) => (Family::V6, u128::from(ip)),
    }
}

/// The address of a number.
pub(super) fn address(family: Family, number: u128) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes()),
        Family::V6 => IpAddr::from(number.to_be_bytes()),
    }
}
