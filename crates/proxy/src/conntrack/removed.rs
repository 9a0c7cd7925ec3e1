//! Frontends that are gone. A plan does not know them, but flows to them are still ours to forget for a while.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_plan::{Endpoint, Family, FrontendKey, Plan, PlanChange, PortKey, Protocol};

use super::scope::is_tracked;

/// For how long flows to them are looked for.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How many are remembered. When more go at once, those that went first are forgotten.
const MOST: usize = 1 << 16;

/// Frontends that are gone, and where they led to.
#[derive(Debug, Default)]
pub(super) struct Removed(HashMap<FrontendKey, Gone>);

#[derive(Debug)]
struct Gone {
    until: Instant,
    /// `None`: anywhere.
    backends: Option<Arc<[Endpoint]>>,
}

impl Removed {
    /// Takes up what went with a change, and forgets what came back.
    pub(super) fn note(&mut self, plan: &Plan, change: &PlanChange, now: Instant) {
        for delta in change.frontends.iter().filter(|delta| is_tracked(delta.key.protocol())) {
            match (&delta.old, &delta.new) {
                (Some(old), None) => self.insert(delta.key, Some(backends_before(plan, change, &old.port)), now),
                (_, Some(_)) => drop(self.0.remove(&delta.key)),
                (None, None) => {}
            }
        }
    }

    pub(super) fn insert(&mut self, frontend: FrontendKey, backends: Option<Arc<[Endpoint]>>, now: Instant) {
        if self.0.len() >= MOST {
            self.make_room();
        }
        self.0.insert(frontend, Gone { until: now + REMEMBERED, backends });
    }

    /// Whether packets to a frontend that is gone were sent there.
    pub(super) fn led_to(&self, frontend: &FrontendKey, backend: SocketAddr) -> bool {
        let is = |endpoint: &Endpoint| (endpoint.ip, endpoint.port) == (backend.ip(), backend.port());
        self.0.get(frontend).is_some_and(|gone| gone.backends.as_ref().is_none_or(|all| all.iter().any(is)))
    }

    /// Families and protocols of all.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Family, Protocol)> {
        self.0.keys().map(|key| (key.family(), key.protocol()))
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.0.retain(|_, gone| gone.until > now);
    }

    /// Forgets the older half.
    fn make_room(&mut self) {
        let mut times: Vec<Instant> = self.0.values().map(|gone| gone.until).collect();
        times.sort_unstable();
        let middle = times[times.len() / 2];
        self.0.retain(|_, gone| gone.until > middle);
    }
}

/// The endpoints a port had before a change.
fn backends_before(plan: &Plan, change: &PlanChange, port: &PortKey) -> Arc<[Endpoint]> {
    match change.backends.binary_search_by(|delta| delta.key.cmp(port)) {
        Ok(at) => change.backends[at].old.clone().unwrap_or_default(),
        Err(_) => plan.backends(port).into(),
    }
}
