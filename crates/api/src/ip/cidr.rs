//! Ranges of addresses (`10.0.0.0/8`) as the API writes them: what is valid, what is canonical, what is warned about.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use crate::field::Path;
use crate::golang;
use crate::names::Reasons;

/// Reads a range leniently: leading zeros, IPv4-mapped IPv6 and bits beyond the prefix are let through.
pub fn parse(text: &str) -> Option<IpNet> {
    let (address, length) = split(text)?;
    let net = IpNet::new(address, length).ok()?;
    Some(unmapped(net))
}

/// Reads a range strictly: no leading zeros, no IPv4-mapped IPv6, no bits beyond the prefix. IPv6 need not be canonical.
pub fn parse_strict(text: &str) -> Result<IpNet, Reasons> {
    let net = parse(text).ok_or_else(|| vec![INVALID.to_owned()])?;
    let reason = match exact(text) {
        None => "must not have leading 0s in IP or prefix length",
        Some(exact) if is_mapped(exact.addr()) => "must not have an IPv4-mapped IPv6 address",
        Some(exact) if exact.addr() != exact.network() => "must not have bits set beyond the prefix length",
        Some(_) => return Ok(net),
    };
    Err(vec![reason.to_owned()])
}

/// Reads a range in the one form it has in new fields.
pub fn parse_canonical(text: &str) -> Result<IpNet, Reasons> {
    let net = parse_strict(text)?;
    let canonical = net.trunc().to_string();
    if canonical == text {
        return Ok(net);
    }
    Err(vec![format!("must be in canonical form ({})", golang::quote(&canonical))])
}

/// Reasons against a text as a (new) range in a field that takes any form of IPv6.
pub fn strict_reasons(text: &str) -> Reasons {
    parse_strict(text).err().unwrap_or_default()
}

/// Reasons against a text as a range in a field that takes the canonical form only.
pub fn canonical_reasons(text: &str) -> Reasons {
    parse_canonical(text).err().unwrap_or_default()
}

/// What is said about a range that is accepted but not written as it should be. Nothing about what is no range.
pub fn warnings(path: &Path, text: &str) -> Vec<String> {
    let Some(net) = parse(text) else {
        return Vec::new();
    };
    let quoted = golang::quote(text);
    let best = golang::quote(&net.trunc().to_string());
    let mut warnings = Vec::new();
    if net.addr() != net.network() {
        let single = golang::quote(&format!("{}/{}", net.addr(), net.max_prefix_len()));
        warnings
            .push(format!("{path}: CIDR value {quoted} is ambiguous in this context (should be {best} or {single}?)"));
    }
    match exact(text) {
        Some(exact) if !is_mapped(exact.addr()) => {
            if warnings.is_empty() && exact.addr().is_ipv6() && exact.to_string() != text {
                warnings
                    .push(format!("{path}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ({best})"));
            }
        }
        _ => warnings.push(format!("{path}: non-standard CIDR value {quoted} is invalid: use {best}")),
    }
    warnings
}

const INVALID: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// The two parts, each read leniently.
fn split(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/')?;
    Some((super::read(address)?, super::without_zeros(length, u8::from_str_radix, 10)?))
}

/// The range if it is written without leading zeros.
fn exact(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let plain = length == "0" || !length.starts_with(['0', '+']);
    let net = IpNet::new(address.parse().ok()?, length.parse().ok()?).ok()?;
    plain.then_some(net)
}

fn is_mapped(ip: IpAddr) -> bool {
    ip != ip.to_canonical()
}

/// The IPv4 range that a range of IPv4-mapped addresses stands for.
fn unmapped(net: IpNet) -> IpNet {
    match (net.addr().to_canonical(), net) {
        (IpAddr::V4(ip), IpNet::V6(v6)) if v6.prefix_len() >= 96 => {
            Ipv4Net::new(ip, v6.prefix_len() - 96).map_or(net, IpNet::V4)
        }
        _ => net,
    }
}
