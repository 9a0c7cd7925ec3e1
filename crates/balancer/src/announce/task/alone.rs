//! A Node that nobody could take over from beats slowly. As soon as somebody comes, or there is something new to begin, it beats as usual and
//! believes nothing older than usual.
//!
//! ```text
//! usual --a beat that says it is slow comes back--> calm --another Node, Lease or rival; a new address--> usual
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::super::Input;
use super::Work;
use crate::owner::Wanted;

impl Work {
    /// Whether nobody is there who could take over, as far as the API shows: neither a Node nor a heart that beats.
    pub(super) fn is_alone(&self) -> bool {
        let me = &self.settings.node;
        let others = self.input.nodes.iter().any(|node| node.metadata.name != *me);
        self.listed && !others && !self.pulse.hears_others()
    }

    /// How long our next beat may take, if it is to be a slow one.
    pub(super) fn lasts(&self) -> Option<Duration> {
        let times = &self.settings.times;
        self.is_alone().then(|| times.alone + times.limit)
    }

    /// Our beat that began then has come back.
    pub(super) fn proven(&mut self, began: Instant) -> bool {
        let changed = self.pulse.prove(began);
        // What came up meanwhile has to be said or seen first.
        if self.is_alone() && self.next > Instant::now() && self.pulse.rest() {
            self.next = self.next.max(began + self.settings.times.alone);
        }
        changed
    }

    /// Ends the calm if somebody came.
    pub(super) fn look_around(&mut self) {
        if self.pulse.is_calm() && !self.is_alone() {
            self.rouse();
        }
    }

    /// Ends the calm: what is known has to be seen anew.
    pub(super) fn rouse(&mut self) {
        if let Some(next) = self.pulse.rouse(self.began, Instant::now()) {
            (self.next, self.roused) = (next, true);
        }
    }

    /// Whether a Node could begin something because it is told this instead of that.
    pub(super) fn is_news(&self, new: &Input) -> bool {
        let ours = |one: &Wanted| one.local.as_ref().is_none_or(|nodes| nodes.contains(&self.settings.node));
        let had: BTreeMap<_, _> = self.input.wanted.iter().map(|one| (one.address, one)).collect();
        new.wanted.iter().any(|one| {
            let before = had.get(&one.address);
            before.is_none_or(|before| before.advertisements != one.advertisements || ours(before) != ours(one))
        })
    }
}
