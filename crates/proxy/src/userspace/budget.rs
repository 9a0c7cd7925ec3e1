//! How many descriptors may be used: what is bounded cannot take the whole process down.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fairlead_runtime::{Budget as ClientBudget, Limits, Permit, Sender};

/// Descriptors that are left to the rest of the process: netlink, the API, logs, health ports.
const RESERVED: usize = 256;

/// Part of the descriptors that one address may use for TCP connections.
const ADDRESS_PART: usize = 4;
/// Part of the descriptors that the addresses of an IPv6 /64 may use for TCP connections together.
/// More than that of an address, because the Pods of a Node share a /64.
const PREFIX_PART: usize = 2;

/// Descriptors, shared by all workers.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    full: AtomicBool,
    addresses: ClientBudget,
    prefixes: ClientBudget,
}

/// The part of a client's share that one connection uses, returned on drop.
#[derive(Debug)]
pub(crate) struct ClientShare {
    _address: Permit,
    _prefix: Option<Permit>,
}

impl Budget {
    /// From how many descriptors the process may have.
    pub(crate) fn new(descriptors: usize) -> Budget {
        // Even a process that may have few must serve somebody.
        let limit = descriptors.saturating_sub(RESERVED).max(descriptors / 2);
        let share = |part: usize| Limits { total: u64::MAX, per_sender: (limit / part).max(2) as u64 };
        Budget {
            limit,
            used: AtomicUsize::new(0),
            full: AtomicBool::new(false),
            addresses: ClientBudget::new("userspace proxy descriptors", share(ADDRESS_PART)),
            prefixes: ClientBudget::new("userspace proxy descriptors of a prefix", share(PREFIX_PART)),
        }
    }

    /// Charges descriptors to a client, or returns `None` if the client uses its share already.
    /// [`Budget::take`] acquires them for the process.
    pub(crate) fn charge(&self, client: IpAddr, count: usize) -> Option<ClientShare> {
        let client = client.to_canonical();
        let address = self.addresses.acquire(&Sender::Network(client), count as u64).ok()?;
        let prefix = match client {
            IpAddr::V4(_) => None,
            IpAddr::V6(_) => Some(self.prefixes.acquire(&Sender::from_address(client), count as u64).ok()?),
        };
        Some(ClientShare { _address: address, _prefix: prefix })
    }

    /// How many there are in all.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes so many, if they are there.
    pub(crate) fn take(&self, count: usize) -> bool {
        let before = self.used.fetch_add(count, Ordering::Relaxed);
        if before + count <= self.limit {
            return true;
        }
        self.used.fetch_sub(count, Ordering::Relaxed);
        false
    }

    /// Takes so many, whether they are there or not.
    pub(crate) fn need(&self, count: usize) {
        self.used.fetch_add(count, Ordering::Relaxed);
    }

    /// Gives back so many.
    pub(crate) fn give(&self, count: usize) {
        self.used.fetch_sub(count, Ordering::Relaxed);
    }

    /// Somebody had to be turned away; true if that is news.
    pub(crate) fn is_news(&self) -> bool {
        !self.full.swap(true, Ordering::Relaxed)
    }

    /// There is room again; true if that is news.
    pub(crate) fn has_room(&self) -> bool {
        let half = self.used.load(Ordering::Relaxed) < self.limit / 4 * 3;
        half && self.full.load(Ordering::Relaxed) && self.full.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_given() {
        let budget = Budget::new(RESERVED * 2 + 3);
        assert_eq!(budget.limit(), RESERVED + 3);
        assert!(budget.take(RESERVED + 2));
        assert!(!budget.take(2));
        assert!(budget.take(1));
        budget.give(2);
        assert!(budget.take(2));
    }

    #[test]
    fn a_client_has_a_quarter_and_a_prefix_half_of_the_descriptors() {
        let budget = Budget::new(RESERVED + 800);
        let held = |clients: &[&str]| {
            let clients = clients.iter().cycle().take(1000).map(|client| client.parse().expect("an address"));
            clients.filter_map(|client| budget.charge(client, 2)).collect::<Vec<_>>()
        };
        assert_eq!(held(&["192.0.2.1"]).len(), 100);
        assert_eq!(held(&["192.0.2.1", "::ffff:192.0.2.1"]).len(), 100);
        assert_eq!(held(&["2001:db8::1"]).len(), 100);
        assert_eq!(held(&["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"]).len(), 200);
        let _all = held(&["192.0.2.1"]);
        assert!(budget.charge("192.0.2.1".parse().expect("an address"), 2).is_none());
        assert!(budget.charge("192.0.2.2".parse().expect("an address"), 2).is_some());
    }

    #[test]
    fn that_it_is_full_is_said_once_until_there_is_room() {
        let budget = Budget::new(RESERVED * 2);
        assert!(budget.take(RESERVED));
        assert!(budget.is_news() && !budget.is_news());
        assert!(!budget.has_room());
        budget.give(RESERVED);
        assert!(budget.has_room() && !budget.has_room());
        assert!(budget.is_news());
    }
}
