//! Which address does a Service get? Pools of addresses, what a Service asks of them, and who has which. Pure: no clock, no
//! sockets; the same Services and pools always end with the same addresses.
//!
//! ```text
//! pools (flags, file, MetalLB's objects) --> Ledger <-- what Services have (their status), Nodes' addresses, cluster IPs
//!                                               |
//!                        Wish (of one Service) --> assign --> addresses, or the reason why not
//! ```

mod gaps;
mod ledger;
mod range;
mod refusal;
mod wish;

#[cfg(test)]
mod tests;

use fairlead_api::selector::LabelSelector;

pub use ledger::{Ledger, Owner};
pub use range::{Range, RangeError};
pub use refusal::{Conflict, Refusal};
pub use wish::{ADDRESSES, POOL, SHARE, Stacks, Wish};

use crate::spec::Scheme;

/// Addresses that Services may get.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// How Services and people call it.
    pub name: String,
    /// Its addresses.
    pub ranges: Vec<Range>,
    /// Which load balancers they are for.
    pub scheme: Scheme,
    /// The namespaces of the Services they are for; empty: all.
    pub namespaces: Vec<String>,
    /// One of these must select the Service; empty: all.
    pub selectors: Vec<LabelSelector>,
    /// Whether Services get them without asking.
    pub auto_assign: bool,
    /// Whether those that end in .0 and .255 are given only to who asks for them.
    pub avoid_buggy: bool,
    /// The lower the sooner; 0 comes after all others.
    pub priority: u32,
}

impl Pool {
    /// A pool of a name with these addresses, for everybody.
    pub fn new(name: impl Into<String>, ranges: Vec<Range>, scheme: Scheme) -> Pool {
        Pool {
            name: name.into(),
            ranges,
            scheme,
            namespaces: Vec::new(),
            selectors: Vec::new(),
            auto_assign: true,
            avoid_buggy: true,
            priority: 0,
        }
    }

    /// Whether it is for some Services only.
    fn is_narrow(&self) -> bool {
        !self.namespaces.is_empty() || !self.selectors.is_empty()
    }

    /// Whether the Service may have its addresses, leaving the scheme aside.
    fn is_for(&self, wish: &Wish) -> bool {
        let namespace =
            self.namespaces.is_empty() || self.namespaces.iter().any(|name| **name == *wish.service.namespace);
        let label = |key: &str| wish.labels.get(key).map(String::as_str);
        namespace && (self.selectors.is_empty() || self.selectors.iter().any(|selector| selector.matches(label)))
    }

    /// Whether an address is one that some machines cannot reach.
    fn avoids(&self, ip: std::net::IpAddr, range: &Range) -> bool {
        let std::net::IpAddr::V4(ip) = ip else { return false };
        // Who lists one address alone means it.
        self.avoid_buggy && range.size() > 1 && matches!(ip.octets()[3], 0 | 255)
    }
}

/// Two pools that have an address in common.
pub fn overlap(pools: &[Pool]) -> Option<(&Pool, &Pool)> {
    let all: Vec<(usize, &Range)> =
        pools.iter().enumerate().flat_map(|(at, pool)| pool.ranges.iter().map(move |range| (at, range))).collect();
    let mut sorted = all;
    sorted.sort_by_key(|(_, range)| (range.family(), range.first()));
    let meet = sorted.windows(2).find(|two| two[0].1.overlaps(two[1].1))?;
    Some((&pools[meet[0].0], &pools[meet[1].0]))
}
