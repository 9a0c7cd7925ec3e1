//! Heartbeats: ours, which is given in time, and those of others, which are heard.

use std::time::Instant;

use fairlead_api::source::{Event, Key};
use fairlead_cluster::{Error, Step};
use tokio::time::timeout;

use super::super::beat::{self, Beat, Heart};
use super::{SENT, Work};

impl Work {
    /// Renews our Lease when it is time to, or when only that can show whether somebody is gone.
    pub(super) fn beat_if_due(&mut self) {
        let now = Instant::now();
        let due = self.next <= now || self.suspicion().is_some_and(|when| when <= now);
        if self.writing.is_some() || !due || self.is_idle() {
            return;
        }
        let last = self.sent.back().map(|(stamp, _)| stamp.as_str()).unwrap_or_default();
        let stamp = Heart::stamp(last);
        self.sent.push_back((stamp.clone(), now));
        while self.sent.len() > SENT {
            self.sent.pop_front();
        }
        let links = self.lan.attachments.borrow_and_update().clone();
        let beat = Beat {
            stamp,
            left: false,
            lasts: self.lasts(),
            attachments: links,
            guarded: self.lan.unguarded.borrow().is_none(),
        };
        let (limit, beat) = (self.settings.times.limit, self.heart().beat(beat));
        self.writing = Some(Box::pin(async move {
            let late = || Error::Unavailable { message: "no answer in time".to_owned(), retry_after: None };
            timeout(limit, beat).await.unwrap_or_else(|_| Err(late()))
        }));
        (self.began, self.next) = (Some(now), now + self.settings.times.interval);
    }

    /// Whether there is nothing to answer for: then nobody needs to know who lives, and nothing is written.
    pub(super) fn is_idle(&self) -> bool {
        self.input.wanted.is_empty()
    }

    /// When a beat is wanted to see whether somebody is gone. One that began since then will show it.
    pub(super) fn suspicion(&self) -> Option<Instant> {
        self.pulse.next_suspicion().filter(|when| self.began.is_none_or(|began| began < *when))
    }

    pub(super) fn heart(&self) -> Heart {
        let node = &self.settings.node;
        let found = self.input.nodes.iter().find(|one| one.metadata.name == *node);
        let uid = found.map(|node| node.metadata.uid.clone()).filter(|uid| !uid.is_empty());
        Heart { cluster: self.cluster.clone(), node: node.clone(), uid }
    }

    pub(super) fn written(&mut self, done: Result<(), Error>) -> bool {
        self.writing = None;
        let now = Instant::now();
        match done {
            Ok(()) => {
                self.figures.beats.add(1);
                if std::mem::take(&mut self.silent) {
                    tracing::info!("the heartbeat of this node is heard again");
                }
                // The API answers, and the watch is silent: it is broken, or waits longer than we would.
                let limit = self.settings.times.limit;
                let lost = self.sent.front().is_some_and(|(_, began)| *began + limit < now);
                if lost && self.stepped + limit < now {
                    self.steps = self.cluster.follow(beat::selection());
                    self.stepped = now;
                }
            }
            Err(error) => {
                self.figures.failures.add(1);
                if !std::mem::replace(&mut self.silent, true) {
                    tracing::warn!(%error, "the heartbeat of this node is not heard; it goes on with the addresses it holds");
                }
                // Whatever else is so, it is not calm.
                self.roused = false;
                self.next = self.next.min(now + self.settings.times.interval / 4);
            }
        }
        false
    }

    pub(super) fn take_step(&mut self, step: Step) -> bool {
        let now = Instant::now();
        match step {
            Step::Listing => {
                self.listing.clear();
                false
            }
            Step::Objects(objects) => {
                let mut changed = false;
                for object in objects {
                    self.listing.extend(beat::node(&object.key).map(str::to_owned));
                    changed |= self.heard(&object.key, &object.json, now);
                }
                changed
            }
            Step::Listed(_) => {
                (self.stepped, self.listed) = (now, true);
                let gone: Vec<String> =
                    self.pulse.nodes().filter(|node| !self.listing.contains(*node)).cloned().collect();
                gone.iter().filter(|node| self.pulse.forget(node)).count() > 0
            }
            Step::Changed(events, _) => {
                self.stepped = now;
                events.iter().fold(false, |changed, event| {
                    let one = match event {
                        Event::Put(object) => self.heard(&object.key, &object.json, now),
                        Event::Delete(key, _) => beat::node(key).is_some_and(|node| self.pulse.forget(node)),
                    };
                    one || changed
                })
            }
            Step::Trouble(failure) => {
                tracing::debug!(error = failure.message, "cannot follow heartbeats");
                false
            }
        }
    }

    pub(super) fn heard(&mut self, key: &Key, json: &[u8], now: Instant) -> bool {
        let (Some(node), Some(beat)) = (beat::node(key), Beat::read(json)) else { return false };
        let ours = node == self.settings.node;
        let came_back = self.sent.iter().position(|(stamp, _)| ours && *stamp == beat.stamp);
        let changed = self.pulse.hear(node, beat, now);
        let proven = came_back.is_some_and(|at| {
            let began = self.sent[at].1;
            self.sent.drain(..=at);
            self.proven(began)
        });
        changed || proven
    }
}
