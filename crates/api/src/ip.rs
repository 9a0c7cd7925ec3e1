//! IP addresses as the API writes them: what is valid, what is canonical, what is warned about, and which addresses no
//! endpoint may have. Ranges are in [`cidr`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::Path;
use crate::golang;
use crate::names::Reasons;

pub mod cidr;

/// Reads an address leniently, as values stored by old servers may be written: leading zeros are ignored, and an
/// IPv4-mapped IPv6 address is the IPv4 address it stands for.
pub fn parse(text: &str) -> Option<IpAddr> {
    read(text).map(|ip| ip.to_canonical())
}

/// Reads an address strictly: no leading zeros, no IPv4-mapped IPv6. IPv6 need not be in canonical form.
pub fn parse_strict(text: &str) -> Result<IpAddr, Reasons> {
    let ip = parse(text).ok_or_else(|| vec![INVALID.to_owned()])?;
    match text.parse::<IpAddr>() {
        Err(_) => Err(vec!["must not have leading 0s".to_owned()]),
        Ok(exact) if exact != ip => Err(vec!["must not be an IPv4-mapped IPv6 address".to_owned()]),
        Ok(_) => Ok(ip),
    }
}

/// Reads an address in the one form it has in new fields.
pub fn parse_canonical(text: &str) -> Result<IpAddr, Reasons> {
    let ip = parse_strict(text)?;
    let canonical = canonical(ip);
    if canonical == text {
        return Ok(ip);
    }
    Err(vec![format!("must be in canonical form ({})", golang::quote(&canonical))])
}

/// Reasons against a text as a (new) address in a field that takes any form of IPv6.
pub fn strict_reasons(text: &str) -> Reasons {
    parse_strict(text).err().unwrap_or_default()
}

/// Reasons against a text as an address in a field that takes the canonical form only.
pub fn canonical_reasons(text: &str) -> Reasons {
    parse_canonical(text).err().unwrap_or_default()
}

/// The RFC 5952 form.
pub fn canonical(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}

/// Reasons why an address cannot be an endpoint (or, for historical reasons, an external IP): it would not leave the node
/// or the link. Multicast beyond the link is let through, as the reference server does.
pub fn endpoint_reasons(text: &str) -> Reasons {
    let Some(ip) = parse(text) else {
        return vec!["must be a valid IP address".to_owned()];
    };
    let reason = match ip {
        _ if ip.is_unspecified() => format!("may not be unspecified ({text})"),
        _ if ip.is_loopback() => "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        _ if is_link_local(ip) => "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned(),
        _ if is_link_local_multicast(ip) => {
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
        }
        _ => return Reasons::new(),
    };
    vec![reason]
}

/// What is said about an address that is accepted but not written as it should be. Nothing about what is no address.
pub fn warnings(path: &Path, text: &str) -> Vec<String> {
    let Some(ip) = parse(text) else {
        return Vec::new();
    };
    let (quoted, best) = (golang::quote(text), golang::quote(&canonical(ip)));
    match text.parse::<IpAddr>() {
        Ok(exact) if exact == ip && (ip.is_ipv4() || ip.to_string() == text) => Vec::new(),
        Ok(exact) if exact == ip => {
            vec![format!("{path}: IPv6 address {quoted} should be in RFC 5952 canonical format ({best})")]
        }
        _ => vec![format!("{path}: non-standard IP address {quoted} is invalid: use {best}")],
    }
}

const INVALID: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

/// The address as written, mapped or not.
fn read(text: &str) -> Option<IpAddr> {
    if text.contains(':') { read_v6(text).map(IpAddr::V6) } else { read_v4(text).map(IpAddr::V4) }
}

/// Four decimal numbers up to 255, with any number of leading zeros.
fn read_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = without_zeros(parts.next()?, u8::from_str_radix, 10)?;
    }
    parts.next().is_none().then(|| octets.into())
}

/// The form of the standard library, but with leading zeros in groups and in a trailing IPv4 address.
fn read_v6(text: &str) -> Option<Ipv6Addr> {
    let groups: Option<Vec<String>> = text
        .split(':')
        .map(|group| match group {
            "" => Some(String::new()),
            group if group.contains('.') => read_v4(group).map(|ip| ip.to_string()),
            group => without_zeros(group, u16::from_str_radix, 16).map(|n| format!("{n:x}")),
        })
        .collect();
    groups?.join(":").parse().ok()
}

/// A number of plain digits; leading zeros do not count.
fn without_zeros<T>(digits: &str, read: fn(&str, u32) -> Result<T, std::num::ParseIntError>, radix: u32) -> Option<T> {
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let rest = digits.trim_start_matches('0');
    read(if rest.is_empty() { "0" } else { rest }, radix).ok()
}

#[cfg(test)]
mod tests;
