//! Which cluster IP a Service gets. The lower part of a range, its static band, is kept for addresses that people
//! choose; others are drawn from the rest, and from the static band only when the rest is full.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::value::Value;
use ipnet::IpNet;

use super::families::{family_of, is_settled};
use super::{Ledger, invalid, put, record};
use crate::field::{FieldError, FieldErrors, Path};
use crate::kinds::service::spec;
use crate::{Failure, Look, golang, ip};

/// An address for each family of a new Service; chosen ones are taken as they are.
pub(super) fn create(service: &mut Value, ledger: &mut Ledger<'_>) -> Result<(), Failure> {
    let spec = service.at("spec");
    if !spec::needs_cluster_ip(spec) || spec.texts("clusterIPs").first() == Some(&spec::NONE) {
        return Ok(());
    }
    allocate(service, 0, ledger)
}

/// What a change of type or of families takes and gives back.
pub(super) fn update(service: &mut Value, old: &Value, ledger: &mut Ledger<'_>) -> Result<(), Failure> {
    let (spec, before) = (service.at("spec"), old.at("spec"));
    if is_settled(spec, before) {
        return Ok(());
    }
    if !spec::needs_cluster_ip(before) {
        return create(service, ledger);
    }
    let had = before.texts("clusterIPs");
    if had.first() == Some(&spec::NONE) {
        return Ok(());
    }
    if !spec::needs_cluster_ip(spec) {
        ledger.freed_ips.extend(had.into_iter().filter_map(ip::parse));
        return Ok(());
    }
    match (before.list("ipFamilies").len(), spec.list("ipFamilies").len()) {
        (1, 2) => allocate(service, 1, ledger),
        (2, 1) => {
            ledger.freed_ips.extend(had.get(1).copied().and_then(ip::parse));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Takes an address for each family from the one at `first` on.
fn allocate(service: &mut Value, first: usize, ledger: &mut Ledger<'_>) -> Result<(), Failure> {
    let spec = service.at("spec");
    let families: Vec<String> = spec.texts("ipFamilies").into_iter().map(str::to_owned).collect();
    let mut addresses: Vec<String> = spec.texts("clusterIPs").into_iter().map(str::to_owned).collect();
    addresses.resize(addresses.len().max(families.len()), String::new());
    let asked = addresses.clone();
    for (family, address) in families.iter().zip(&mut addresses).skip(first) {
        let got = if address.is_empty() { draw(service, family, ledger) } else { choose(service, address, ledger) };
        match got {
            Ok(got) => *address = got,
            Err(Refusal::Full(why)) => return Err(Failure::internal(full(service, &why))),
            Err(Refusal::Because(why)) => return Err(refused(service, &asked, why)),
        }
    }
    if let Some(spec) = service.get_mut("spec") {
        put(spec, "clusterIP", addresses.first().cloned());
        put(spec, "clusterIPs", addresses);
    }
    Ok(())
}

enum Refusal {
    Full(String),
    Because(String),
}

fn full(service: &Value, why: &str) -> String {
    let name = golang::quote(service.at("metadata").text("name"));
    format!("failed to allocate a serviceIP for Service {name}: {why}")
}

fn refused(service: &Value, asked: &[String], why: String) -> Failure {
    let shown = Value::from(asked.to_vec());
    invalid(service, FieldErrors::from([FieldError::invalid(&Path::new("spec.clusterIPs"), &shown, why)]))
}

/// Takes the address that the client chose. A dry run does not ask whether it is free.
fn choose(service: &Value, text: &str, ledger: &mut Ledger<'_>) -> Result<String, Refusal> {
    let because = |why: &str| Err(Refusal::Because(format!("failed to allocate IP {text}: {why}")));
    let Some(address) = ip::parse(text) else {
        return because("it is not an IP address");
    };
    let family = family_of(text);
    let in_range = ranges(ledger, family).any(|range| range.holds(address));
    if ledger.dry_run {
        let first = ledger.ranges.iter().find(|range| range.addr().is_ipv6() == address.is_ipv6());
        return match first {
            Some(range) if !in_range => because(&format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {range}"
            )),
            _ => Ok(text.to_owned()),
        };
    }
    if !in_range {
        return because("the provided network does not match the current range");
    }
    if let Some(why) = record::reason_against(service, address) {
        return because(&why);
    }
    if (ledger.taken)(address) || ledger.taken_ips.contains(&address) {
        return because("provided IP is already allocated");
    }
    ledger.taken_ips.push(address);
    Ok(text.to_owned())
}

/// Takes a random free address of a family.
fn draw(service: &Value, family: &str, ledger: &mut Ledger<'_>) -> Result<String, Refusal> {
    let ranges: Vec<Range> = ranges(ledger, family).collect();
    if ranges.is_empty() {
        let why = format!("range is full: there is no ServiceCIDR for {family}, so an IP could not be allocated");
        return Err(Refusal::Full(why));
    }
    for range in ranges {
        let Some(address) = range.pick(ledger) else {
            continue;
        };
        if !ledger.dry_run {
            if let Some(why) = record::reason_against(service, address) {
                return Err(Refusal::Because(format!("failed to allocate IP: {why}")));
            }
            ledger.taken_ips.push(address);
        }
        return Ok(address.to_string());
    }
    Err(Refusal::Full("range is full".to_owned()))
}

fn ranges<'a>(ledger: &Ledger<'a>, family: &str) -> impl Iterator<Item = Range> + use<'a> {
    let v6 = family == "IPv6";
    let all = ledger.ranges.iter();
    all.filter(move |range| range.addr().is_ipv6() == v6).filter_map(Range::new)
}

/// The usable addresses of a range: neither its first nor, in IPv4, its last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    first: IpAddr,
    /// How many there are, at most what a random number can reach.
    size: u64,
    /// How many of them, from the first on, are in the static band.
    band: u64,
}

/// Draws before a scan begins: in a band that is nine tenths full they fail once in thirty times.
const DRAWS: u32 = 32;

impl Range {
    /// `None` for a range without usable addresses.
    pub(super) fn new(net: &IpNet) -> Option<Range> {
        let bits = u32::from(net.max_prefix_len() - net.prefix_len());
        let all = 1u64.checked_shl(bits).map_or(u64::MAX, |size| size - 1);
        let size = if net.addr().is_ipv4() { all.checked_sub(1)? } else { all };
        if size == 0 {
            return None;
        }
        Some(Range { first: offset(net.network(), 1)?, size, band: band(all.saturating_add(1)).min(size) })
    }

    fn holds(&self, address: IpAddr) -> bool {
        let distance = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                u128::from(u32::from(address)).checked_sub(u128::from(u32::from(first)))
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => u128::from(address).checked_sub(u128::from(first)),
            _ => None,
        };
        distance.is_some_and(|distance| distance < u128::from(self.size))
    }

    fn pick(&self, ledger: &mut Ledger<'_>) -> Option<IpAddr> {
        self.pick_between(self.band, self.size, ledger).or_else(|| self.pick_between(0, self.band, ledger))
    }

    /// A free address among those numbered from `low` to before `high`.
    ///
    /// Random draws make each free one equally likely. When they keep failing, the band is nearly full and is scanned from
    /// a random place; a scan takes at most as many steps as addresses are taken, so a large range is never walked through.
    fn pick_between(&self, low: u64, high: u64, ledger: &mut Ledger<'_>) -> Option<IpAddr> {
        let count = high.checked_sub(low).filter(|count| *count > 0)?;
        let at = |number: u64| offset(self.first, low + number);
        for _ in 0..DRAWS {
            let address = at((ledger.random)(count) % count)?;
            if !(ledger.taken)(address) {
                return Some(address);
            }
        }
        let start = (ledger.random)(count) % count;
        let around = (start..count).chain(0..start);
        around.filter_map(at).find(|address| !(ledger.taken)(*address))
    }
}

/// The size of the static band of a range of that many addresses.
fn band(size: u64) -> u64 {
    if size <= 16 { 0 } else { (size / 16).clamp(16, 256) }
}

fn offset(address: IpAddr, by: u64) -> Option<IpAddr> {
    match address {
        IpAddr::V4(ip) => Some(Ipv4Addr::from(u32::from(ip).checked_add(u32::try_from(by).ok()?)?).into()),
        IpAddr::V6(ip) => Some(Ipv6Addr::from(u128::from(ip).checked_add(by.into())?).into()),
    }
}

#[cfg(test)]
mod tests;
