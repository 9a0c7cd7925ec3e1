//! Delays between Pods that fail one after the other.
//!
//! A Node may reject each Pod of a template, for example because of a sysctl that it does not
//! allow. Without a delay the controller would replace it, and the Node reject it, without end.

use std::collections::HashMap;
use std::time::Duration;

use fairlead_api::view::View;
use fairlead_cluster::Change;
use serde_json::Value;
use tokio::time::Instant;

/// Delay after the first failed Pod that is replaced, doubled with each further one up to
/// [`LAST_DELAY`] (cmd/kube-controller-manager/app/apps.go, startDaemonSetController: 1 s and
/// 15 min).
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LAST_DELAY: Duration = Duration::from_mins(15);

/// Replaced Pods that had failed, by the uid of their owner and by a slot: the Node of a Pod of a
/// DaemonSet, the name of a Pod of a StatefulSet. The first one is replaced at once.
#[derive(Debug, Default)]
pub(crate) struct Failures(HashMap<Box<str>, HashMap<Box<str>, Failure>>);

#[derive(Debug)]
struct Failure {
    at: Instant,
    delay: Duration,
}

impl Failure {
    fn remaining(&self, now: Instant) -> Duration {
        self.delay.saturating_sub(now.duration_since(self.at))
    }
}

impl Failures {
    /// Forgets the failures of an owner that is gone or has another template: its Pods may work.
    pub(crate) fn update<T: View>(&mut self, change: &Change<T>, template: impl Fn(&T) -> &Value) {
        let Some(old) = &change.old else { return };
        let is_same = |new: &T| new.meta().uid == old.meta().uid && template(new) == template(old);
        if !change.new.as_ref().is_some_and(|new| is_same(new)) {
            self.0.remove(old.meta().uid.as_str());
        }
    }

    /// True if the last failed Pod was replaced so lately that the next one has to wait. Then
    /// [`Failures::next`] at the same time says for how long.
    pub(crate) fn is_too_soon(&self, uid: &str, slot: &str, now: Instant) -> bool {
        let failure = self.0.get(uid).and_then(|slots| slots.get(slot));
        failure.is_some_and(|failure| !failure.remaining(now).is_zero())
    }

    /// Counts a Pod that is replaced because it failed.
    pub(crate) fn count(&mut self, uid: &str, slot: &str, now: Instant) {
        let slots = self.0.entry(uid.into()).or_default();
        slots.retain(|_, failure| now.duration_since(failure.at) < LAST_DELAY * 2);
        let delay = slots.get(slot).map_or(FIRST_DELAY, |failure| (failure.delay * 2).min(LAST_DELAY));
        slots.insert(slot.into(), Failure { at: now, delay });
    }

    /// Time until the next Pod of an owner may be replaced.
    pub(crate) fn next(&self, uid: &str, now: Instant) -> Option<Duration> {
        let remaining = self.0.get(uid)?.values().map(|failure| failure.remaining(now));
        remaining.filter(|remaining| !remaining.is_zero()).min()
    }
}

#[cfg(test)]
mod tests;
