//! What do events say of a change on its way? Pure: what was seen, to spans.
//!
//! ```text
//! write default/web            |------------------------------|   from the request until the kernel has it: one a Node
//!   commit                        |--|
//!   program                            |----------------------|   since the proxy heard of it
//!     kernel                                             |----|
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::span::Span;

/// So many changes are remembered that no proxy has told of yet.
const MOST: usize = 4096;
/// Where in the store Services and their endpoints are: what else is written reaches no kernel.
const PLACES: [&str; 3] = ["/services/specs/", "/services/endpoints/", "/endpointslices/"];

/// Something that happened to a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) stage: Stage,
    pub(super) revision: u64,
    /// When, in nanoseconds of the epoch.
    pub(super) at: u64,
    /// How long ago it began for who tells, in microseconds: the request came, or the proxy heard of it.
    pub(super) since_us: u64,
    /// How long the last part of it took.
    pub(super) took_us: u64,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the store, under that key.
    Committed { key: String },
    /// In the kernel of this machine, with all that came before it.
    Programmed,
}

/// Changes on their way.
#[derive(Debug)]
pub(super) struct Passages {
    seed: u64,
    /// What no other process has, on this machine or another: containers all have the same number.
    own: u64,
    /// Those written by this process that its own proxy has not told of.
    waiting: Mutex<BTreeMap<u64, ()>>,
}

impl Passages {
    /// Those of a cluster, as a process sees them that has drawn a number of its own.
    pub(super) fn new(cluster: &str, own: u64) -> Passages {
        let seed = cluster.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| mixed(hash ^ u64::from(byte)));
        Passages { seed, own, waiting: Mutex::default() }
    }

    /// The spans that are whole now.
    pub(super) fn take(&self, seen: &Seen) -> Vec<Span> {
        match &seen.stage {
            Stage::Committed { key } => self.committed(seen, key),
            Stage::Programmed => self.programmed(seen),
        }
    }

    fn committed(&self, seen: &Seen, key: &str) -> Vec<Span> {
        let Some(place) = PLACES.iter().find(|place| key.contains(**place)) else { return Vec::new() };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(seen.revision, ());
        if waiting.len() > MOST {
            waiting.pop_first();
        }
        let name = key.split(place).last().unwrap_or_default();
        let about = vec![("fairlead.object", key.to_owned()), ("fairlead.revision", seen.revision.to_string())];
        let write = Span {
            name: format!("write {} {name}", place.trim_matches('/')),
            attributes: about,
            ..self.span(seen, Part::Write, None, seen.since_us)
        };
        let commit =
            Span { name: "commit".to_owned(), ..self.span(seen, Part::Commit, Some(Part::Write), seen.took_us) };
        vec![write, commit]
    }

    /// Of all changes up to the revision: several may go into the kernel at once.
    fn programmed(&self, seen: &Seen) -> Vec<Span> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let later = waiting.split_off(&(seen.revision.saturating_add(1)));
        let mut revisions: Vec<u64> = std::mem::replace(&mut *waiting, later).into_keys().collect();
        // The write was another process's.
        if revisions.last() != Some(&seen.revision) {
            revisions.push(seen.revision);
        }
        drop(waiting);
        revisions.into_iter().flat_map(|revision| self.in_kernel(&Seen { revision, ..seen.clone() })).collect()
    }

    fn in_kernel(&self, seen: &Seen) -> [Span; 2] {
        let about = vec![("fairlead.revision", seen.revision.to_string())];
        let program = Span {
            name: "program".to_owned(),
            attributes: about,
            ..self.span(seen, Part::Program, Some(Part::Write), seen.since_us)
        };
        let kernel =
            Span { name: "kernel".to_owned(), ..self.span(seen, Part::Kernel, Some(Part::Program), seen.took_us) };
        [program, kernel]
    }

    /// A span that ends now and began so many microseconds ago.
    fn span(&self, seen: &Seen, part: Part, parent: Option<Part>, micros: u64) -> Span {
        Span {
            trace: u128::from(self.number(seen.revision, 0)) << 64 | u128::from(self.number(seen.revision, 1)),
            id: self.number(seen.revision, self.salt(part)),
            parent: parent.map(|parent| self.number(seen.revision, self.salt(parent))),
            name: String::new(),
            start: seen.at.saturating_sub(micros.saturating_mul(1000)),
            end: seen.at,
            attributes: Vec::new(),
        }
    }

    /// The spans of several Nodes have to differ where those of one write must not.
    fn salt(&self, part: Part) -> u64 {
        match part {
            Part::Write => 2,
            Part::Commit => 3,
            Part::Program => mixed(self.own) ^ 4,
            Part::Kernel => mixed(self.own) ^ 5,
        }
    }

    /// The same in every process of a cluster for the same salt, and never 0.
    fn number(&self, revision: u64, salt: u64) -> u64 {
        mixed(self.seed ^ mixed(revision) ^ mixed(salt.wrapping_add(0x5a17))).max(1)
    }
}

/// Parts of a passage.
#[derive(Debug, Clone, Copy)]
enum Part {
    Write,
    Commit,
    Program,
    Kernel,
}

/// Every bit of a number depends on every other (the last steps of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(revision: u64, key: &str) -> Seen {
        let stage = Stage::Committed { key: key.to_owned() };
        Seen { stage, revision, at: 9_000_000, since_us: 800, took_us: 300 }
    }

    fn programmed(revision: u64) -> Seen {
        Seen { stage: Stage::Programmed, revision, at: 10_000_000, since_us: 500, took_us: 100 }
    }

    #[test]
    fn a_write_and_its_programming_are_one_trace() {
        let passages = Passages::new("one", 1);
        let written = passages.take(&committed(7, "/registry/services/specs/default/web"));
        let [write, commit] = &written[..] else { panic!("{written:?}") };
        assert_eq!((write.name.as_str(), write.parent), ("write services/specs default/web", None));
        assert_eq!((write.start, write.end), (8_200_000, 9_000_000));
        assert_eq!((commit.parent, commit.start), (Some(write.id), 8_700_000));
        let done = passages.take(&programmed(7));
        let [program, kernel] = &done[..] else { panic!("{done:?}") };
        assert_eq!((program.trace, program.parent), (write.trace, Some(write.id)));
        assert_eq!((kernel.parent, kernel.start, kernel.end), (Some(program.id), 9_900_000, 10_000_000));
    }

    #[test]
    fn nodes_tell_of_one_write_in_spans_of_their_own() {
        let [one, two] = [1, 2].map(|own| Passages::new("one", own).take(&programmed(7)));
        let ids: std::collections::BTreeSet<u64> = one.iter().chain(&two).map(|span| span.id).collect();
        assert_eq!(ids.len(), 4, "{one:?} {two:?}");
        assert_eq!((one[0].trace, one[0].parent), (two[0].trace, two[0].parent), "they are of the same write");
        assert_eq!([one[1].parent, two[1].parent], [Some(one[0].id), Some(two[0].id)]);
    }

    #[test]
    fn what_is_programmed_at_once_belongs_to_every_write_before_it() {
        let passages = Passages::new("one", 1);
        for revision in [3, 5, 9] {
            passages.take(&committed(revision, "/registry/endpointslices/default/web-x"));
        }
        assert_eq!(passages.take(&programmed(5)).len(), 4, "3 and 5");
        assert_eq!(passages.take(&programmed(9)).len(), 2, "9");
        assert_eq!(passages.take(&programmed(9)).len(), 2, "as another process would tell it");
    }

    #[test]
    fn other_objects_reach_no_kernel() {
        assert_eq!(Passages::new("one", 1).take(&committed(1, "/registry/pods/default/web")), []);
    }

    #[test]
    fn clusters_have_traces_of_their_own() {
        let trace = |cluster: &str| Passages::new(cluster, 1).take(&programmed(1))[0].trace;
        assert_ne!(trace("one"), trace("two"));
        assert_eq!(trace("one"), trace("one"));
    }

    #[test]
    fn what_nobody_programs_is_forgotten() {
        let passages = Passages::new("one", 1);
        for revision in 0..2 * MOST as u64 {
            passages.take(&committed(revision, "/registry/services/specs/default/web"));
        }
        assert_eq!(passages.waiting.lock().unwrap().len(), MOST);
    }
}
