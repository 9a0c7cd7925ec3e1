//! Random operations against a model: every state the store ever had, kept as plain maps. A failure prints its seed.

#[path = "support/objects.rs"]
mod objects;

use std::collections::BTreeMap;

use fairlead_store::{Backend, Embedded, Error, Event, Guard, Memory, Outcome, Range, Revision, Txn, Watch, Write};
use fastrand::Rng;
use objects::{delete, draft, stored, txn};

const PREFIXES: [&str; 4] =
    ["/registry/pods/", "/registry/pods/a/", "/registry/services/specs/", "/registry/services/endpoints/a/"];

#[tokio::test]
async fn memory_behaves_like_the_model() {
    for seed in seeds(100) {
        let mut run = Run::new(Box::new(Memory::new()), seed);
        for _ in 0..300 {
            run.step().await;
        }
    }
}

#[tokio::test]
async fn embedded_behaves_like_the_model_across_reopening() {
    for seed in seeds(10) {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || Box::new(Embedded::open(dir.path()).expect("it opens"));
        let mut run = Run::new(open(), seed);
        for _ in 0..200 {
            run.step().await;
            if run.rng.u8(..) < 4 {
                // A process has the file alone, so the old store goes before the new one comes.
                run.watches.clear();
                run.store = Box::new(Memory::new());
                run.store = open();
                run.check_everything().await;
            }
        }
    }
}

fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let first = std::env::var("FAIRLEAD_SEED").ok().and_then(|seed| seed.parse().ok());
    let count = if first.is_some() { 1 } else { count };
    let first = first.unwrap_or_else(|| fastrand::u64(..u64::MAX - count));
    first..first + count
}

/// Key to the revision and text of its object.
type Objects = BTreeMap<String, (u64, String)>;

struct Run {
    store: Box<dyn Backend>,
    rng: Rng,
    /// `states[n]` is what was there at revision `n`.
    states: Vec<Objects>,
    watches: Vec<(Watch, &'static str, u64)>,
}

impl Run {
    #[allow(clippy::print_stdout, reason = "a failure is repeated with its seed")]
    fn new(store: Box<dyn Backend>, seed: u64) -> Run {
        println!("FAIRLEAD_SEED={seed}");
        Run { store, rng: Rng::with_seed(seed), states: vec![Objects::new()], watches: Vec::new() }
    }

    async fn step(&mut self) {
        match self.rng.u8(..10) {
            0..=4 => self.commit().await,
            5 => self.get().await,
            6 => self.range().await,
            7 => self.open_watch().await,
            _ => self.read_watch().await,
        }
    }

    async fn commit(&mut self) {
        let txn = self.transaction();
        let now = self.states.last().expect("at least the empty one").clone();
        let expect = txn.guards.iter().position(|guard| match guard {
            Guard::Absent(key) => now.contains_key(&**key),
            Guard::At(key, at) => now.get(&**key).map(|(revision, _)| *revision) != Some(at.0),
        });
        let outcome = self.store.commit(txn.clone()).await.expect("commit");
        if let Some(guard) = expect {
            return assert_eq!(outcome, Outcome::Refused(guard));
        }
        let next = self.states.len() as u64;
        let mut after = now.clone();
        for write in &txn.writes {
            match write {
                Write::Put(key, draft) => drop(after.insert(key.to_string(), (next, said(&draft.json)))),
                Write::Delete(key) => drop(after.remove(&**key)),
            }
        }
        let revision = if after == now { next - 1 } else { next };
        assert_eq!(outcome, Outcome::Done(Revision(revision)));
        if after != now {
            self.states.push(after);
        }
    }

    fn transaction(&mut self) -> Txn {
        let mut keys: Vec<String> = (0..self.rng.usize(1..5)).map(|_| self.key()).collect();
        keys.sort();
        keys.dedup();
        let mut txn = txn([]);
        for key in &keys {
            let text = self.rng.u32(..).to_string();
            txn.writes.push(match self.rng.u8(..3) {
                0 => delete(key),
                _ => Write::Put(key.as_str().into(), draft(&text)),
            });
        }
        for _ in 0..self.rng.usize(..3) {
            let key = self.key();
            let newest = self.states.last().and_then(|state| state.get(&key)).map(|(revision, _)| *revision);
            txn.guards.push(match (newest, self.rng.u8(..8)) {
                (Some(at), 0..=5) => Guard::At(key.into(), Revision(at)),
                (None, 0..=5) | (_, 6) => Guard::Absent(key.into()),
                _ => Guard::At(key.into(), Revision(self.rng.u64(..100))),
            });
        }
        txn
    }

    fn key(&mut self) -> String {
        let resource = ["pods", "services/specs", "services/endpoints"][self.rng.usize(..3)];
        format!("/registry/{resource}/{}/{}", ["a", "b"][self.rng.usize(..2)], self.rng.u8(..6))
    }

    async fn get(&mut self) {
        let key = self.key();
        let entry = self.store.get(&key).await.expect("read");
        let seen = entry.map(|entry| (entry.revision.0, said(&entry.json)));
        assert_eq!(seen.as_ref(), self.states.last().and_then(|state| state.get(&key)));
    }

    async fn range(&mut self) {
        let prefix = PREFIXES[self.rng.usize(..4)];
        let at = self.rng.bool().then(|| Revision(self.rng.u64(..self.states.len() as u64 + 2)));
        let after = self.rng.bool().then(|| self.key().into());
        let limit = self.rng.usize(..5);
        self.check_range(Range { prefix: prefix.into(), after, limit, at }).await;
    }

    async fn check_range(&self, range: Range) {
        let newest = self.states.len() as u64 - 1;
        let at = range.at.map_or(newest, |at| at.0);
        let result = self.store.range(range.clone()).await;
        let Some(state) = self.states.get(at as usize) else {
            return assert!(matches!(result, Err(Error::Future { .. })), "{result:?}");
        };
        let page = result.expect("read");
        let wanted = |key: &&String| {
            key.starts_with(&*range.prefix) && range.after.as_deref().is_none_or(|after| key.as_str() > after)
        };
        let keys: Vec<&String> = state.keys().filter(wanted).collect();
        let count = if range.limit == 0 { keys.len() } else { range.limit.min(keys.len()) };
        assert_eq!((page.revision.0, page.remaining), (at, keys.len() - count), "{range:?}");
        assert_eq!(page.entries.iter().map(|entry| &*entry.key).collect::<Vec<_>>(), keys[..count], "{range:?}");
        for entry in &page.entries {
            let (revision, text) = &state[&*entry.key];
            assert_eq!(entry.json, stored(text, Revision(*revision)));
        }
    }

    async fn open_watch(&mut self) {
        let prefix = PREFIXES[self.rng.usize(..4)];
        let after = self.rng.u64(..self.states.len() as u64);
        let watch = self.store.watch(prefix, Revision(after)).await.expect("all of the past is kept");
        self.watches.push((watch, prefix, after));
    }

    async fn read_watch(&mut self) {
        if self.watches.is_empty() {
            return;
        }
        let at = self.rng.usize(..self.watches.len());
        let (watch, prefix, after) = &mut self.watches[at];
        let expect = changes(&self.states, prefix, *after);
        let mut seen = Vec::new();
        while seen.len() < expect.len() {
            seen.extend(watch.next().await.expect("events").iter().map(Seen::from));
        }
        assert_eq!(seen, expect, "{prefix} after {after}");
        *after = self.states.len() as u64 - 1;
        assert_eq!(watch.progress().0, *after);
        if self.rng.bool() {
            self.watches.swap_remove(at);
        }
    }

    async fn check_everything(&mut self) {
        assert_eq!(self.store.revision().await.expect("read").0, self.states.len() as u64 - 1);
        for at in 0..self.states.len() as u64 {
            for prefix in PREFIXES {
                let at = Some(Revision(at));
                self.check_range(Range { prefix: prefix.into(), at, ..Range::default() }).await;
            }
        }
        self.open_watch().await;
        self.read_watch().await;
    }
}

/// An event in the model's words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    revision: u64,
    key: String,
    deleted: bool,
    text: String,
    previous: Option<(u64, String)>,
}

impl From<&Event> for Seen {
    fn from(event: &Event) -> Seen {
        assert_eq!(event.entry.json, stored(&said(&event.entry.json), event.revision));
        Seen {
            revision: event.revision.0,
            key: event.entry.key.to_string(),
            deleted: event.deleted,
            text: said(&event.entry.json),
            previous: event.previous.as_ref().map(|entry| (entry.revision.0, said(&entry.json))),
        }
    }
}

/// What a watch must show: the differences between states, by revision and key. (Transactions are written sorted by key.)
fn changes(states: &[Objects], prefix: &str, after: u64) -> Vec<Seen> {
    let mut all = Vec::new();
    for revision in after + 1..states.len() as u64 {
        let (old, new) = (&states[revision as usize - 1], &states[revision as usize]);
        for (key, (at, text)) in new.iter().filter(|(_, (at, _))| *at == revision) {
            let previous = old.get(key).cloned();
            all.push(Seen { revision: *at, key: key.clone(), deleted: false, text: text.clone(), previous });
        }
        for (key, (at, text)) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
            let previous = Some((*at, text.clone()));
            all.push(Seen { revision, key: key.clone(), deleted: true, text: text.clone(), previous });
        }
    }
    all.retain(|seen| seen.key.starts_with(prefix));
    all.sort();
    all
}

/// The text of an object.
fn said(json: &[u8]) -> String {
    let json = std::str::from_utf8(json).expect("text");
    let (_, text) = json.rsplit_once("\"text\":\"").expect("one of ours");
    text.trim_end_matches("\"}").to_owned()
}
