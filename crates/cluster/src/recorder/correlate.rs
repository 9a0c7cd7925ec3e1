//! What to write for a report: a new Event, a higher count of an old one, or nothing because there were too many. The numbers
//! are client-go's.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{Reference, Report, Severity};

/// So many Events about one object go through at once...
const BURST: f64 = 25.0;
/// ...and then one in so many seconds.
const REFILL_SECONDS: f64 = 300.0;
/// So many different messages of one reason about one object; further ones are counted together.
const SIMILAR: usize = 10;
/// What is older is not similar any more.
const SIMILAR_FOR: SignedDuration = SignedDuration::from_mins(10);
/// So much is remembered of each sort.
const MEMORY: usize = 4096;
/// The longest name of an object.
const NAME_LIMIT: usize = 253;
/// What tells Events of one object apart: a dot and a time in nanoseconds.
const SUFFIX: usize = 17;

/// What to do with a report.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// A new Event.
    Create(Event),
    /// The Event is there already: its count, time and message change.
    Count(Event),
    /// Too many about this object.
    Drop,
}

/// What of an Event is decided here.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) message: String,
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// Remembers what was reported.
#[derive(Debug, Default)]
pub(super) struct Correlator {
    budgets: Memory<Reference, Budget>,
    similar: Memory<Sort, Messages>,
    written: Memory<(Sort, Option<String>), Event>,
}

/// What all similar reports share.
type Sort = (Reference, Severity, &'static str);

#[derive(Debug)]
struct Budget {
    left: f64,
    at: Timestamp,
}

#[derive(Debug)]
struct Messages {
    texts: BTreeSet<String>,
    last: Timestamp,
}

impl Correlator {
    pub(super) fn decide(&mut self, report: &Report, now: Timestamp) -> Decision {
        let sort = (anonymous(&report.about), report.severity, report.reason);
        let (key, message) = if self.is_one_too_many(&sort, &report.message, now) {
            ((sort, None), format!("(combined from similar events): {}", report.message))
        } else {
            ((sort, Some(report.message.clone())), report.message.clone())
        };
        let decision = match self.written.find(&key, now) {
            Some(event) => {
                (event.count, event.last, event.message) = (event.count + 1, now, message);
                Decision::Count(event.clone())
            }
            None => {
                let event = Event { name: name(&report.about, now), message, count: 1, first: now, last: now };
                self.written.keep(key, event.clone(), now);
                Decision::Create(event)
            }
        };
        if self.afford(&report.about, now) { decision } else { Decision::Drop }
    }

    /// Whether there were many different messages like this one lately.
    fn is_one_too_many(&mut self, sort: &Sort, message: &str, now: Timestamp) -> bool {
        let known = self.similar.find(sort, now).filter(|messages| now.duration_since(messages.last) <= SIMILAR_FOR);
        if let Some(messages) = known {
            messages.last = now;
            messages.texts.insert(message.to_owned());
            let many = messages.texts.len() >= SIMILAR;
            if many {
                messages.texts.pop_first();
            }
            return many;
        }
        self.similar.keep(sort.clone(), Messages { texts: BTreeSet::from([message.to_owned()]), last: now }, now);
        false
    }

    fn afford(&mut self, about: &Reference, now: Timestamp) -> bool {
        let about = anonymous(about);
        let Some(budget) = self.budgets.find(&about, now) else {
            self.budgets.keep(about, Budget { left: BURST - 1.0, at: now }, now);
            return true;
        };
        let passed = now.duration_since(budget.at).as_secs_f64().max(0.0);
        budget.left = (budget.left + passed / REFILL_SECONDS).min(BURST);
        budget.at = now;
        let enough = budget.left >= 1.0;
        if enough {
            budget.left -= 1.0;
        }
        enough
    }
}

/// The object, whatever its version.
fn anonymous(about: &Reference) -> Reference {
    Reference { resource_version: String::new(), ..about.clone() }
}

fn name(about: &Reference, now: Timestamp) -> String {
    let name = &about.key.name;
    let fits = name.len().min(NAME_LIMIT - SUFFIX);
    let fits = (0..=fits).rev().find(|end| name.is_char_boundary(*end)).unwrap_or_default();
    format!("{}.{:x}", name[..fits].trim_end_matches(['.', '-']), now.as_nanosecond())
}

/// Remembers the newest things of a sort.
#[derive(Debug)]
struct Memory<K, V> {
    things: BTreeMap<K, (Timestamp, V)>,
}

impl<K: Ord + Clone, V> Memory<K, V> {
    fn find(&mut self, key: &K, now: Timestamp) -> Option<&mut V> {
        let (used, value) = self.things.get_mut(key)?;
        *used = now;
        Some(value)
    }

    fn keep(&mut self, key: K, value: V, now: Timestamp) {
        if self.things.len() >= MEMORY {
            let oldest = self.things.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            oldest.map(|key| self.things.remove(&key));
        }
        self.things.insert(key, (now, value));
    }
}

impl<K, V> Default for Memory<K, V> {
    fn default() -> Memory<K, V> {
        Memory { things: BTreeMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use fairlead_api::kinds;
    use fairlead_api::view::Meta;

    use super::*;

    fn report(object: &str, message: &str) -> Report {
        let meta = Meta { name: object.into(), namespace: "default".into(), uid: "u".into(), ..Meta::default() };
        let about = Reference::to(&kinds::SERVICE, &meta);
        Report { about, severity: Severity::Warning, reason: "Broken", message: message.into() }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::new(1_000_000 + seconds, 0).expect("a time")
    }

    /// Plays reports `(second, object, message)` and shows what comes of each: `new 1`, `2` for a count, `-` if dropped.
    fn play(reports: impl IntoIterator<Item = (i64, &'static str, String)>) -> Vec<String> {
        let mut correlator = Correlator::default();
        let show = |(second, object, message): (i64, &str, String)| match correlator
            .decide(&report(object, &message), at(second))
        {
            Decision::Create(event) => format!("new {}", event.message),
            Decision::Count(event) => format!("{}x {}", event.count, event.message),
            Decision::Drop => "-".to_owned(),
        };
        reports.into_iter().map(show).collect()
    }

    #[test]
    fn the_same_again_is_counted() {
        let seen = play([(0, "a", "m".into()), (1, "a", "m".into()), (2, "b", "m".into()), (700, "a", "m".into())]);
        assert_eq!(seen, ["new m", "2x m", "new m", "3x m"]);
    }

    #[test]
    fn many_similar_messages_become_one_event() {
        let seen = play((0..12).map(|number| (number, "a", format!("m{number}"))));
        assert_eq!(seen[8], "new m8");
        assert_eq!(seen[9], "new (combined from similar events): m9");
        assert_eq!(seen[10], "2x (combined from similar events): m10");
        // Ten minutes of silence make them different again.
        let later = play((0..12).map(|number| (number * 601, "a", format!("m{number}"))));
        assert_eq!(later[11], "new m11");
    }

    #[test]
    fn an_object_has_a_budget_of_its_own() {
        let flood = (0..30).map(|_| (0, "a", "m".to_owned()));
        let seen = play(flood.chain([(0, "b", "m".into()), (299, "a", "m".into()), (300, "a", "m".into())]));
        assert_eq!(seen.iter().filter(|seen| *seen == "-").count(), 6);
        assert_eq!(seen[24], "25x m");
        assert_eq!(seen[25], "-");
        assert_eq!(seen[30], "new m");
        assert_eq!(seen[32], "32x m");
    }

    #[test]
    fn memory_is_bounded() {
        let mut memory = Memory::default();
        for number in 0..MEMORY + 100 {
            memory.keep(number, (), at(i64::try_from(number).expect("small")));
        }
        assert_eq!(memory.things.len(), MEMORY);
        assert!(memory.find(&0, at(0)).is_none() && memory.find(&(MEMORY + 99), at(0)).is_some());
    }

    #[test]
    fn names_fit_and_tell_events_apart() {
        let mut about = report("a", "").about;
        assert_eq!(name(&about, at(0)), format!("a.{:x}", at(0).as_nanosecond()));
        about.key.name = "x".repeat(253).into();
        assert!(name(&about, at(0)).len() <= 253);
    }
}
