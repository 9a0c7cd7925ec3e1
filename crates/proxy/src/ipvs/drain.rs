//! What has been taken away and still has connections: endpoints with weight 0, and virtual servers of marks nothing gets any
//! more. They end with their last connection, or after a day.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairlead_program::ipvs::At;

/// How long something may drain. A connection nobody uses is forgotten by the kernel long before.
const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// What drains, by virtual server.
#[derive(Debug, Default)]
pub(super) struct Drains {
    servers: BTreeMap<At, Draining>,
}

#[derive(Debug, Default)]
struct Draining {
    /// When each has had its time.
    endpoints: BTreeMap<SocketAddr, Instant>,
    /// The server goes with its last endpoint.
    retires: bool,
}

impl Drains {
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// An endpoint drains from now on.
    pub(super) fn add(&mut self, at: At, to: SocketAddr) {
        let endpoints = &mut self.servers.entry(at).or_default().endpoints;
        endpoints.entry(to).or_insert_with(|| Instant::now() + LIMIT);
    }

    /// A virtual server goes when its endpoints have.
    pub(super) fn retire(&mut self, at: At) {
        self.servers.entry(at).or_default().retires = true;
    }

    /// An endpoint is in use again, or gone.
    pub(super) fn forget(&mut self, at: &At, to: &SocketAddr) {
        if let Some(draining) = self.servers.get_mut(at) {
            draining.endpoints.remove(to);
            if draining.endpoints.is_empty() && !draining.retires {
                self.servers.remove(at);
            }
        }
    }

    /// A virtual server is in use again.
    pub(super) fn revive(&mut self, at: &At) {
        if let Some(draining) = self.servers.get_mut(at) {
            draining.retires = false;
            if draining.endpoints.is_empty() {
                self.servers.remove(at);
            }
        }
    }

    /// A virtual server is gone, with all it had.
    pub(super) fn forget_server(&mut self, at: &At) {
        self.servers.remove(at);
    }

    pub(super) fn has(&self, at: &At, to: &SocketAddr) -> bool {
        self.servers.get(at).is_some_and(|draining| draining.endpoints.contains_key(to))
    }

    pub(super) fn retires(&self, at: &At) -> bool {
        self.servers.get(at).is_some_and(|draining| draining.retires)
    }

    /// Virtual servers of which something drains.
    pub(super) fn servers(&self) -> BTreeSet<At> {
        self.servers.keys().copied().collect()
    }

    /// Whether an endpoint has had its time.
    pub(super) fn is_over(&self, at: &At, to: &SocketAddr) -> bool {
        let end = self.servers.get(at).and_then(|draining| draining.endpoints.get(to));
        end.is_some_and(|end| *end <= Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_again_does_not_drain() {
        let at = At::Mark { family: fairlead_plan::Family::V4, mark: 7 };
        let [one, other] = ["10.0.0.1:80", "10.0.0.2:80"].map(|text| text.parse().expect("an address"));
        let mut drains = Drains::default();
        drains.add(at, one);
        drains.add(at, other);
        assert!(drains.has(&at, &one) && !drains.is_over(&at, &one) && !drains.retires(&at));
        drains.forget(&at, &one);
        assert!(!drains.has(&at, &one) && drains.has(&at, &other) && !drains.is_empty());
        drains.retire(at);
        drains.forget(&at, &other);
        assert!(drains.retires(&at) && drains.servers().contains(&at));
        drains.revive(&at);
        assert!(drains.is_empty());
    }
}
