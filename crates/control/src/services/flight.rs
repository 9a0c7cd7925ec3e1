//! Writes under way, and those that are done but not seen in the mirror yet.

use std::collections::HashMap;

use fairlead_api::kinds;
use fairlead_api::view::{EndpointSlice, Endpoints, View};
use fairlead_cluster::{Key, Mirror};

use super::Work;
use super::concern::Touched;

/// All that is under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: HashMap<Work, Flight>,
}

#[derive(Debug, Default)]
struct Flight {
    /// Objects of this Service that changed meanwhile, as they were heard of last.
    heard: HashMap<(&'static str, Key), Option<u64>>,
    landed: Option<End>,
}

/// How the writes ended.
#[derive(Debug)]
struct End {
    written: Vec<Touched>,
    failed: bool,
}

/// A flight that is over: the mirror shows what was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) work: Work,
    /// Not all was written.
    pub(super) failed: bool,
    /// Somebody else wrote meanwhile.
    pub(super) disturbed: bool,
}

impl Flights {
    pub(super) fn len(&self) -> usize {
        self.flights.len()
    }

    pub(super) fn start(&mut self, work: Work) {
        self.flights.insert(work, Flight::default());
    }

    /// The writes have ended.
    pub(super) fn landed(&mut self, work: &Work, written: Vec<Touched>, failed: bool) {
        if let Some(flight) = self.flights.get_mut(work) {
            flight.landed = Some(End { written, failed });
        }
    }

    /// Hears of a change of an object that is written here. True if it may be our own doing: whether it was is seen when
    /// the writes are done.
    pub(super) fn heard(&mut self, work: &Work, touched: &Touched) -> bool {
        let Some(flight) = self.flights.get_mut(work) else { return false };
        flight.heard.insert((touched.kind, touched.key.clone()), touched.revision);
        true
    }

    /// Takes out what is over.
    pub(super) fn settled(&mut self, mirror: &Mirror) -> Vec<Settled> {
        let over = |(_, flight): &(&Work, &mut Flight)| {
            let shown = |end: &End| end.written.iter().all(|written| shows(mirror, written));
            flight.landed.as_ref().is_some_and(shown)
        };
        let over: Vec<Work> = self.flights.iter_mut().filter(over).map(|(work, _)| work.clone()).collect();
        over.into_iter().filter_map(|work| Some(self.flights.remove(&work)?.settle(work))).collect()
    }
}

impl Flight {
    fn settle(self, work: Work) -> Settled {
        let End { written, failed } = self.landed.expect("only what has landed settles");
        let ours = |(kind, key): &(&str, Key), revision: &Option<u64>| {
            let last = written.iter().rfind(|written| written.kind == *kind && written.key == *key);
            last.is_some_and(|last| last.revision == *revision)
        };
        let disturbed = !self.heard.iter().all(|(object, revision)| ours(object, revision));
        Settled { work, failed, disturbed }
    }
}

/// Whether the mirror shows what was written, or something later.
fn shows(mirror: &Mirror, written: &Touched) -> bool {
    match written.kind {
        kind if kind == kinds::ENDPOINTS.kind => shows_in::<Endpoints>(mirror, written),
        _ => shows_in::<EndpointSlice>(mirror, written),
    }
}

fn shows_in<T: View>(mirror: &Mirror, written: &Touched) -> bool {
    match written.revision {
        Some(revision) => mirror.revision::<T>() >= revision,
        // One that is held by a finalizer is as good as gone.
        None => {
            let found = mirror.get::<T>(&written.key.namespace, &written.key.name);
            found.is_none_or(|object| object.meta().deletion_timestamp.is_some())
        }
    }
}
