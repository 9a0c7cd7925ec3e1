//! What looked leaked, since when and how often. Another server on the same store may take an address or a port a moment before
//! it writes the Service, so one look decides nothing.

use std::collections::HashMap;

/// Seconds for which a thing must look leaked before it is freed: as long as a request may take.
pub const GRACE: i64 = 60;

/// Something that nobody seems to own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Leak {
    /// An IPAddress object, by name and uid.
    Address(String, String),
    /// A node port.
    Port(u16),
}

impl Leak {
    /// How often it must be seen: the numbers of the reference server, which for addresses goes by time alone.
    fn sightings(&self) -> u32 {
        match self {
            Leak::Address(..) => 2,
            Leak::Port(_) => 3,
        }
    }
}

/// What looked leaked in earlier passes.
#[derive(Debug, Clone, Default)]
pub struct Seen(HashMap<Leak, Sighting>);

#[derive(Debug, Clone, Copy)]
struct Sighting {
    first: i64,
    times: u32,
}

impl Seen {
    /// How many things look leaked.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing looks leaked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A new pass. One that does not see everything frees nothing and counts for nothing.
    pub(super) fn begin(&self, now: i64, counts: bool) -> Leaks<'_> {
        Leaks { before: self, after: Seen::default(), now, counts }
    }
}

/// The leaks of one pass.
#[derive(Debug)]
pub(super) struct Leaks<'a> {
    before: &'a Seen,
    after: Seen,
    now: i64,
    counts: bool,
}

impl Leaks<'_> {
    /// Notes a leak; says whether it may be freed.
    pub(super) fn ripe(&mut self, leak: Leak) -> bool {
        let mut sighting = self.before.0.get(&leak).copied().unwrap_or(Sighting { first: self.now, times: 0 });
        sighting.times += u32::from(self.counts);
        let old = sighting.times >= leak.sightings() && self.now.saturating_sub(sighting.first) >= GRACE;
        self.after.0.insert(leak, sighting);
        old && self.counts
    }

    pub(super) fn end(self) -> Seen {
        self.after
    }
}
