//! Whose heart beats? Every Node renews a Lease of its own, and this judges what a watch of all of them shows. No clock is read
//! here, and clocks of different machines are never compared: only the time between what *we* saw counts.
//!
//! The silence of another proves nothing while the API does not answer. So a Node counts as silent only when a write of our own,
//! begun after its time was over, has come back by the same watch: had it renewed its Lease in time, that would have come first.
//! Time in which our own writes did not come back is not counted against others.
//!
//! A Node that is alone beats slowly, and its Lease says so (`leaseDurationSeconds`): who comes later waits that long for it, or until it
//! has beaten as usual, which it does as soon as it sees that somebody came.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::beat::Beat;
use crate::owner::{Attachment, Presence};

/// How hearts beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How often a Node renews its Lease.
    pub interval: Duration,
    /// After how long without a renewal it is silent. At least two intervals; more, so that one may be late.
    pub limit: Duration,
    /// How often a Node renews its Lease while nobody is there who could take over.
    pub alone: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            interval: Duration::from_millis(400),
            limit: Duration::from_millis(1100),
            alone: Duration::from_secs(10),
        }
    }
}

/// What is known of the heartbeats of all Nodes.
#[derive(Debug)]
pub(super) struct Pulse {
    me: String,
    times: Times,
    heard: BTreeMap<String, Heard>,
    /// When the newest write of ours began that came back by the watch.
    proof: Option<Instant>,
    /// Nobody else was there then, and nothing has come up since: what is known is good for longer.
    calm: bool,
}

#[derive(Debug)]
struct Heard {
    beat: Beat,
    /// When it changed last.
    at: Instant,
}

impl Pulse {
    pub(super) fn new(me: &str, mut times: Times) -> Pulse {
        times.limit = times.limit.max(times.interval * 2);
        Pulse { me: me.to_owned(), times, heard: BTreeMap::new(), proof: None, calm: false }
    }

    /// A Lease as it is now. Whether that changes what is known of the Node, beside that it lives.
    pub(super) fn hear(&mut self, node: &str, beat: Beat, now: Instant) -> bool {
        let before = self.presence(node);
        let Some(heard) = self.heard.get_mut(node) else {
            self.heard.insert(node.to_owned(), Heard { beat, at: now });
            return true;
        };
        if heard.beat == beat {
            return false;
        }
        let moved = heard.beat.attachments != beat.attachments || heard.beat.guarded != beat.guarded;
        *heard = Heard { beat, at: now };
        moved || before != self.presence(node)
    }

    /// A Lease is gone.
    pub(super) fn forget(&mut self, node: &str) -> bool {
        self.heard.remove(node).is_some()
    }

    /// The Leases there are.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &String> {
        self.heard.keys()
    }

    /// A write of ours that began then came back. Whether that makes somebody silent.
    pub(super) fn prove(&mut self, began: Instant) -> bool {
        let Some(before) = self.proof else {
            // Whatever was heard until now was not watched before.
            self.heard.values_mut().for_each(|heard| heard.at = heard.at.max(began));
            self.proof = Some(began);
            return true;
        };
        if began <= before {
            return false;
        }
        let late = began.duration_since(before).saturating_sub(self.times.interval);
        // A little lateness is usual, and would add up.
        if late > self.times.interval / 4 {
            self.heard.values_mut().for_each(|heard| heard.at = (heard.at + late).min(began).max(heard.at));
        }
        let silent =
            |pulse: &Pulse| pulse.heard.keys().filter(|&node| pulse.presence(node) == Presence::Silent).count();
        let already = silent(self);
        self.proof = Some(began);
        silent(self) != already
    }

    /// Whether a Node's heart beats.
    pub(super) fn presence(&self, node: &str) -> Presence {
        match self.heard.get(node) {
            None => Presence::Unheard,
            Some(heard) if heard.beat.left => Presence::Left,
            Some(_) if node == self.me => Presence::Live,
            Some(heard) if self.proof.is_some_and(|proof| proof >= self.over(heard)) => Presence::Silent,
            Some(_) => Presence::Live,
        }
    }

    /// The links a Node says it has.
    pub(super) fn attachments(&self, node: &str) -> &[Attachment] {
        self.heard.get(node).map_or(&[], |heard| &heard.beat.attachments)
    }

    /// True unless a Node says that its addresses cannot be guarded.
    pub(super) fn is_guarded(&self, node: &str) -> bool {
        self.heard.get(node).is_none_or(|heard| heard.beat.guarded)
    }

    /// When a proof is wanted: the time of the first of those that still live is over then.
    pub(super) fn next_suspicion(&self) -> Option<Instant> {
        let others = self.heard.iter().filter(|(node, _)| **node != self.me);
        let live = others.filter(|(node, _)| self.presence(node) == Presence::Live);
        live.map(|(_, heard)| self.over(heard)).min()
    }

    /// When the time of a Node is over.
    fn over(&self, heard: &Heard) -> Instant {
        heard.at + heard.beat.lasts.map_or(self.times.limit, |lasts| lasts.max(self.times.limit))
    }

    /// Whether the heart of another Node beats.
    pub(super) fn hears_others(&self) -> bool {
        self.heard.keys().any(|node| *node != self.me && self.presence(node) == Presence::Live)
    }

    /// Nobody else is there. Whether the next beat may come later: only if our Lease says so, as others go by that.
    pub(super) fn rest(&mut self) -> bool {
        self.calm = self.heard.get(&self.me).is_some_and(|heard| heard.beat.lasts.is_some());
        self.calm
    }

    /// Something came up. When the next beat is due if it was calm until now, and our last one began then: at once, but no sooner than
    /// usual. Anybody on the LAN can make something come up, as often as they like.
    pub(super) fn rouse(&mut self, began: Option<Instant>, now: Instant) -> Option<Instant> {
        let usual = began.map_or(now, |began| began + self.times.interval);
        std::mem::take(&mut self.calm).then(|| usual.max(now))
    }

    /// Whether beats are slow.
    pub(super) fn is_calm(&self) -> bool {
        self.calm
    }

    /// Until when what is known is good enough to begin something.
    pub(super) fn sighted_until(&self) -> Option<Instant> {
        let rest = if self.calm { self.times.alone } else { Duration::ZERO };
        self.proof.map(|proof| proof + rest + self.times.limit)
    }

    /// Whether what is known is good enough to begin something.
    pub(super) fn sighted(&self, now: Instant) -> bool {
        self.sighted_until().is_some_and(|until| now < until)
    }
}
