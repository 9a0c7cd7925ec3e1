//! Which addresses does a new Pod get? The next free ones of the Node's ranges: one that was just given back is the last to be
//! given again, since others may still send to it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

#[cfg(test)]
mod tests;

/// Who has what.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    used: BTreeSet<IpAddr>,
    /// The last one given out of each range.
    last: Vec<(IpNet, IpAddr)>,
}

/// There is none left.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no address is left in {0}, the range of this Node's Pods")]
pub(crate) struct Full(IpNet);

impl Pool {
    /// Somebody has these already.
    pub(crate) fn keep(&mut self, addresses: &[IpAddr]) {
        self.used.extend(addresses);
    }

    /// One address of each range.
    pub(crate) fn take(&mut self, ranges: &[IpNet]) -> Result<Vec<IpAddr>, Full> {
        let mut taken = Vec::new();
        for range in ranges {
            match self.take_one(*range) {
                Some(address) => taken.push(address),
                None => {
                    self.release(&taken);
                    return Err(Full(*range));
                }
            }
        }
        Ok(taken)
    }

    /// They are nobody's again.
    pub(crate) fn release(&mut self, addresses: &[IpAddr]) {
        self.used.retain(|address| !addresses.contains(address));
    }

    /// The last addresses given out, to be remembered.
    pub(crate) fn last(&self) -> impl Iterator<Item = IpAddr> {
        self.last.iter().map(|(_, address)| *address)
    }

    /// Goes on after these.
    pub(crate) fn go_on_after(&mut self, last: &[IpAddr], ranges: &[IpNet]) {
        for range in ranges {
            if let Some(address) = last.iter().find(|address| range.contains(*address)) {
                self.set_last(*range, *address);
            }
        }
    }

    fn set_last(&mut self, range: IpNet, address: IpAddr) {
        self.last.retain(|(known, _)| *known != range);
        self.last.push((range, address));
    }

    fn take_one(&mut self, range: IpNet) -> Option<IpAddr> {
        let (first, end) = bounds(range)?;
        let last = self.last.iter().find(|(known, _)| *known == range).map(|(_, address)| number(*address));
        let start = last.filter(|last| (first..end).contains(last)).map_or(first, |last| last + 1);
        // Among one more than are used there is a free one.
        let tries = (self.used.len() as u128 + 2).min(end - first + 1);
        let candidates = (0..tries).map(|step| first + (start - first + step) % (end - first + 1));
        let free = candidates.map(|number| address(number, range)).find(|address| !self.used.contains(address))?;
        self.used.insert(free);
        self.set_last(range, free);
        Some(free)
    }
}

/// The first and the last address for Pods: not the network's own, not the Node's, which is the first, not the one for all.
fn bounds(range: IpNet) -> Option<(u128, u128)> {
    let (network, broadcast) = (number(range.network()), number(range.broadcast()));
    let last = if range.addr().is_ipv4() { broadcast.checked_sub(1)? } else { broadcast };
    let first = network + 2;
    (first <= last).then_some((first, last))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => address.into(),
    }
}

fn address(number: u128, range: IpNet) -> IpAddr {
    match u32::try_from(number) {
        Ok(number) if range.addr().is_ipv4() => Ipv4Addr::from(number).into(),
        _ => Ipv6Addr::from(number).into(),
    }
}
