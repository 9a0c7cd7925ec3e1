//! A range cut into equal parts, of which each belongs to one Node. Pure.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::NodeRanges;

/// At most so many parts are told apart, as in kube-controller-manager.
const MAX_BITS: u8 = 16;

/// One range of the cluster.
#[derive(Debug)]
pub(super) struct Pool {
    range: IpNet,
    /// The length of a part's prefix.
    prefix: u8,
    taken: BTreeSet<u32>,
    /// Where the next search begins: a part that was just freed is not given again at once.
    next: u32,
}

impl Pool {
    /// The pools of the cluster's ranges; a range too small for one part has none.
    pub(super) fn all(ranges: &NodeRanges) -> Vec<Pool> {
        let pool = |range: &IpNet| {
            let prefix = if range.addr().is_ipv4() { ranges.prefix_v4 } else { ranges.prefix_v6 };
            let fits = range.prefix_len() <= prefix && prefix <= range.max_prefix_len();
            fits.then(|| Pool { range: range.trunc(), prefix, taken: BTreeSet::new(), next: 0 })
        };
        ranges.cluster.iter().filter_map(pool).collect()
    }

    /// A part nobody has.
    pub(super) fn draw(&mut self) -> Option<IpNet> {
        let count = self.count();
        if self.taken.len() >= count as usize {
            return None;
        }
        let at = (self.next..count).chain(0..self.next).find(|at| !self.taken.contains(at))?;
        self.taken.insert(at);
        self.next = (at + 1) % count;
        self.part(at)
    }

    /// Marks every part that a range touches; one of another family, or elsewhere, touches none.
    pub(super) fn take(&mut self, range: &IpNet) {
        if let Some((first, last)) = self.touched(range) {
            self.taken.extend(first..=last);
        }
    }

    /// Frees what [`Pool::take`] takes.
    pub(super) fn free(&mut self, range: &IpNet) {
        if let Some((first, last)) = self.touched(range) {
            self.taken.retain(|at| !(first..=last).contains(at));
        }
    }

    fn count(&self) -> u32 {
        1 << (self.prefix - self.range.prefix_len()).min(MAX_BITS)
    }

    fn part(&self, at: u32) -> Option<IpNet> {
        let shift = u32::from(self.range.max_prefix_len() - self.prefix);
        let address = match self.range.network() {
            IpAddr::V4(base) => {
                let offset = at.checked_shl(shift).unwrap_or_default();
                IpAddr::V4(Ipv4Addr::from(u32::from(base) | offset))
            }
            IpAddr::V6(base) => {
                let offset = u128::from(at).checked_shl(shift).unwrap_or_default();
                IpAddr::V6(Ipv6Addr::from(u128::from(base) | offset))
            }
        };
        IpNet::new(address, self.prefix).ok()
    }

    /// The first and last part a range touches.
    fn touched(&self, range: &IpNet) -> Option<(u32, u32)> {
        let inside = self.range.contains(&range.network()) || range.contains(&self.range.network());
        if !inside {
            return None;
        }
        let last = self.count() - 1;
        let place = |address: IpAddr| if self.range.contains(&address) { self.place(address).min(last) } else { last };
        let first = if range.contains(&self.range.network()) { 0 } else { place(range.network()) };
        Some((first, place(range.broadcast())))
    }

    /// Which part an address of the range is in.
    fn place(&self, address: IpAddr) -> u32 {
        let shift = u32::from(self.range.max_prefix_len() - self.prefix);
        let offset = match (address, self.range.network()) {
            (IpAddr::V4(address), IpAddr::V4(base)) => u128::from(u32::from(address) - u32::from(base)),
            (IpAddr::V6(address), IpAddr::V6(base)) => u128::from(address) - u128::from(base),
            _ => 0,
        };
        u32::try_from(offset.checked_shr(shift).unwrap_or_default()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests;
