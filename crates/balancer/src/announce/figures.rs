//! What an announcer did and sees, in numbers for whoever watches it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Here, Owners};
use crate::metrics::{Kind, Sample};

/// Numbers that the task of an announcer keeps.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Heartbeats of this Node that were written.
    pub(super) beats: Figure,
    /// Those that could not be written.
    pub(super) failures: Figure,
    /// Addresses taken over from other Nodes.
    pub(super) takeovers: Figure,
    /// Other Nodes whose hearts beat.
    pub(super) others: Figure,
}

/// One of them.
#[derive(Debug, Default)]
pub(super) struct Figure(AtomicU64);

impl Figure {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Figures {
    /// All that is to be told.
    pub(super) fn samples(&self, owners: &Owners) -> Vec<Sample> {
        const BEATS: &str = "Heartbeats of this Node, by whether they could be written";
        let sample = |name, help, kind, value| Sample { name, help, kind, labels: Vec::new(), value };
        let beats = |result: &str, value| {
            let labels = vec![("result", result.to_owned())];
            Sample { labels, ..sample("announcer_heartbeats", BEATS, Kind::Counter, value) }
        };
        let count = |state: fn(&Here) -> bool| owners.here.values().filter(|here| state(here)).count() as u64;
        let held = count(|here| *here == Here::Held);
        let taken = count(|here| matches!(here, Here::Taken(_)));
        let (takeovers, others) = (self.takeovers.get(), self.others.get());
        let sighted = u64::from(owners.sighted);
        let guarded = u64::from(owners.unguarded.is_none());
        vec![
            sample(
                "announcer_guarded",
                "Whether the rules that guard addresses are in force in the kernel: without them none is announced",
                Kind::Gauge,
                guarded,
            ),
            sample("announcer_addresses", "Addresses this Node answers for", Kind::Gauge, held),
            sample("announcer_addresses_taken", "Addresses that a stranger on the LAN has", Kind::Gauge, taken),
            beats("written", self.beats.get()),
            beats("failed", self.failures.get()),
            sample("announcer_takeovers", "Addresses taken over from other Nodes", Kind::Counter, takeovers),
            sample("announcer_others", "Other Nodes whose heartbeats are heard", Kind::Gauge, others),
            sample("announcer_sighted", "Whether this Node sees the heartbeats of others", Kind::Gauge, sighted),
        ]
    }
}

#[cfg(test)]
mod tests;
