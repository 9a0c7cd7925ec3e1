//! Disks that forget, when the power fails, any of the blocks that were not synced.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redb::{Builder, StorageBackend};

use super::{contents, draft, write};
use crate::embedded::Embedded;
use crate::embedded::disk::Place;
use crate::embedded::journal::Medium;
use crate::embedded::log::{self, Meta};
use crate::{Backend, Error, Revision, Write};

const BLOCK: usize = 512;

const ENOSPC: i32 = 28;

/// So small that the journal's files take turns, and the database is written, every few transactions.
const CAPACITY: usize = 12 << 10;

/// What is on the platter, and what is only in the cache.
#[derive(Debug, Default, Clone)]
struct Disk {
    durable: Vec<u8>,
    cached: BTreeMap<usize, Vec<u8>>,
    len: usize,
}

/// The database and the two files of the journal, on one plug.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine(Arc<Mutex<Room>>);

#[derive(Debug, Default)]
struct Room {
    disks: [Disk; 3],
    /// Calls until everything fails.
    budget: Option<u32>,
    /// Error of calls beyond the budget. `None`: there is no power.
    errno: Option<i32>,
    /// Calls that fail before the fault ends by itself.
    failures: Option<u32>,
    calls: u32,
}

/// One disk of a machine.
#[derive(Debug)]
struct Power(Machine, usize);

impl Power {
    fn with<T>(&self, io: impl FnOnce(&mut Disk) -> T) -> Result<T, io::Error> {
        self.with_partly(io, |_| ())
    }

    /// Makes a call. If it fails with an error, and not for want of power, `partly` is done first.
    fn with_partly<T>(&self, io: impl FnOnce(&mut Disk) -> T, partly: impl FnOnce(&mut Disk)) -> Result<T, io::Error> {
        let mut room = self.0.0.lock().expect("no panics");
        match (room.budget, room.errno) {
            (Some(0), None) => return Err(io::Error::other("no power")),
            (Some(0), Some(errno)) => {
                partly(&mut room.disks[self.1]);
                if let Some(failures) = &mut room.failures {
                    *failures -= 1;
                    if *failures == 0 {
                        room.budget = None;
                    }
                }
                return Err(io::Error::from_raw_os_error(errno));
            }
            (Some(left), _) => room.budget = Some(left - 1),
            (None, _) => {}
        }
        room.calls += 1;
        Ok(io(&mut room.disks[self.1]))
    }
}

impl Machine {
    /// Power is off: of the cached blocks some are on the disk, some are not.
    pub(super) fn cut(&self, rng: &mut fastrand::Rng) {
        let mut room = self.0.lock().expect("no panics");
        for disk in &mut room.disks {
            let cached = std::mem::take(&mut disk.cached);
            for (block, bytes) in cached {
                if rng.bool() {
                    disk.keep(block, &bytes);
                }
            }
            disk.len = disk.durable.len();
        }
        room.budget = None;
    }

    fn allow(&self, calls: u32) {
        self.0.lock().expect("no panics").budget = Some(calls);
    }

    fn calls(&self) -> u32 {
        self.0.lock().expect("no panics").calls
    }

    pub(super) fn open(&self) -> Result<Embedded, Error> {
        let machine = self.clone();
        let open = move || {
            let db = Builder::new().create_with_backend(Power(machine.clone(), 0));
            let db = db.map_err(|error| Error::Unusable(error.to_string()))?;
            Ok((db, [1, 2].map(|disk| Box::new(Power(machine.clone(), disk)) as Medium)))
        };
        let (name, retry) = ("disk".to_owned(), Duration::from_millis(2));
        Embedded::start(Place { open: Box::new(open), capacity: CAPACITY, name, retry })
    }

    /// After so many calls there is no room, until [`Machine::empty`].
    fn fill(&self, calls: u32) {
        let mut room = self.0.lock().expect("no panics");
        room.budget = Some(calls);
        room.errno = Some(ENOSPC);
    }

    /// After so many calls, the next ones fail with an error. A write that fails has written half
    /// of its bytes.
    pub(super) fn fail(&self, calls: u32, errno: i32, failures: u32) {
        let mut room = self.0.lock().expect("no panics");
        room.budget = Some(calls);
        room.errno = Some(errno);
        room.failures = Some(failures);
    }

    /// Returns true once all failures that were asked for have happened.
    pub(super) fn has_failed(&self) -> bool {
        self.0.lock().expect("no panics").failures == Some(0)
    }

    fn empty(&self) {
        let mut room = self.0.lock().expect("no panics");
        room.budget = None;
        room.errno = None;
    }

    pub(super) fn make() -> Machine {
        let machine = Machine::default();
        let db = Builder::new().create_with_backend(Power(machine.clone(), 0)).expect("a database");
        log::initialize(&db, Meta::at(Revision(0))).expect("it has power");
        machine
    }
}

impl Disk {
    fn keep(&mut self, block: usize, bytes: &[u8]) {
        let at = block * BLOCK;
        if self.durable.len() < at + BLOCK {
            self.durable.resize(at + BLOCK, 0);
        }
        self.durable[at..at + BLOCK].copy_from_slice(bytes);
    }

    fn block(&self, block: usize) -> Vec<u8> {
        if let Some(bytes) = self.cached.get(&block) {
            return bytes.clone();
        }
        let mut bytes = vec![0; BLOCK];
        let from = self.durable.get(block * BLOCK..).unwrap_or_default();
        let count = from.len().min(BLOCK);
        bytes[..count].copy_from_slice(&from[..count]);
        bytes
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        assert!(offset + data.len() <= self.len, "a write beyond the end");
        for (block, at, part) in blocks(offset, data.len()) {
            let mut bytes = self.block(block);
            bytes[at..at + part.len()].copy_from_slice(&data[part]);
            self.cached.insert(block, bytes);
        }
    }
}

/// The blocks a span touches: which, from where in it, and which part of the span.
fn blocks(offset: usize, len: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let (block, at) = ((offset + done) / BLOCK, (offset + done) % BLOCK);
        let part = done..(done + BLOCK - at).min(len);
        done = part.end;
        (!part.is_empty()).then_some((block, at, part))
    })
}

impl StorageBackend for Power {
    fn len(&self) -> Result<u64, io::Error> {
        self.with(|disk| disk.len as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.with(|disk| {
            for (block, at, part) in blocks(offset as usize, out.len()) {
                let count = part.len();
                out[part].copy_from_slice(&disk.block(block)[at..at + count]);
            }
        })
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.with(|disk| {
            disk.len = len as usize;
            disk.durable.resize(disk.len, 0);
            disk.cached.retain(|block, _| block * BLOCK < len as usize);
        })
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        self.with(|disk| {
            for (block, bytes) in std::mem::take(&mut disk.cached) {
                disk.keep(block, &bytes);
            }
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let offset = offset as usize;
        self.with_partly(|disk| disk.write(offset, data), |disk| disk.write(offset, &data[..data.len() / 2]))
    }
}

/// What somebody who was told of every write knows.
#[derive(Debug, Default)]
pub(super) struct Told {
    contents: Vec<(String, Vec<u8>)>,
    revision: Revision,
}

impl Told {
    /// A transaction under way when the power failed may be there, but only as a whole.
    pub(super) async fn check(&mut self, store: &Embedded) {
        let (now, revision) = (contents(store, None).await, store.revision().await.expect("read"));
        assert!(revision >= self.revision, "revisions went back from {} to {revision}", self.revision);
        assert!(now == self.contents || revision.0 == self.revision.0 + 1, "an acknowledged write is gone");
        let pair: Vec<_> = now.iter().filter(|(key, _)| key.contains("/pair/")).collect();
        let whole = pair.is_empty() || pair.len() == 2 && pair[0].1.len() == pair[1].1.len();
        assert!(whole, "a part of a transaction");
        *self = Told { contents: now, revision };
    }

    /// Writes until it fails, or so many times.
    pub(super) async fn write(&mut self, store: &Embedded, rng: &mut fastrand::Rng, times: usize) -> Result<(), Error> {
        for _ in 0..times {
            let revision = write(store, random_writes(rng)).await?;
            *self = Told { contents: contents(store, None).await, revision };
        }
        Ok(())
    }
}

pub(super) fn seeded() -> fastrand::Rng {
    let seed = fastrand::u64(..);
    #[allow(clippy::print_stdout, reason = "a failure is repeated with its seed")]
    {
        println!("seed {seed}");
    }
    fastrand::Rng::with_seed(seed)
}

#[tokio::test]
async fn what_was_acknowledged_survives_power_cuts_at_random() {
    let mut rng = seeded();
    for _ in 0..10 {
        let (machine, mut told) = (Machine::make(), Told::default());
        for _ in 0..10 {
            let store = machine.open().expect("it opens after a power cut");
            told.check(&store).await;
            assert!(store.health().await.is_ok());
            machine.allow(rng.u32(..200));
            told.write(&store, &mut rng, usize::MAX).await.expect_err("no power");
            assert!(matches!(write(&store, random_writes(&mut rng)).await, Err(Error::Unavailable(_))));
            assert!(matches!(store.health().await, Err(Error::Unavailable(_))), "a store that takes no writes says so");
            drop(store);
            machine.cut(&mut rng);
        }
    }
}

/// From the opening of a store whose journal must be recovered, over several turns of the journal, to its closing.
#[tokio::test]
async fn what_was_acknowledged_survives_a_power_cut_at_every_call() {
    let mut rng = seeded();
    let rounds = if std::env::var_os("FAIRLEAD_FULL").is_some_and(|value| value == "1") { 10 } else { 1 };
    for _ in 0..rounds {
        let mut cut_after = 0;
        while cut_and_look(&mut rng, cut_after).await {
            cut_after += 1;
        }
        assert!(cut_after > 100, "{cut_after} calls are not the whole story");
    }
}

/// Cuts the power after so many calls; returns whether that was before the end.
async fn cut_and_look(rng: &mut fastrand::Rng, calls: u32) -> bool {
    let (machine, mut told) = (Machine::make(), Told::default());
    leave_a_journal(&machine, &mut told, rng).await;
    machine.allow(calls);
    if let Ok(store) = machine.open() {
        told.check(&store).await;
        let _ = told.write(&store, rng, 12).await;
        drop(store);
    }
    let interrupted = machine.0.lock().expect("no panics").budget == Some(0);
    machine.cut(rng);
    // And once more while it recovers, so that the second recovery begins from a half-made first one.
    machine.allow(rng.u32(..60));
    if let Ok(store) = machine.open() {
        told.check(&store).await;
    }
    machine.cut(rng);
    let store = machine.open().unwrap_or_else(|error| panic!("after {calls} calls: {error}"));
    told.check(&store).await;
    told.write(&store, rng, 3).await.expect("it has power");
    drop(store);
    told.check(&machine.open().expect("it opens after it was closed")).await;
    interrupted
}

/// Once the database has taken over what one file of the journal had, it knows that the other one
/// is being filled.
#[tokio::test]
async fn a_journal_of_earlier_in_the_same_opening_is_refused() {
    let mut rng = seeded();
    let machine = Machine::make();
    let mut told = Told::default();
    let store = machine.open().expect("it opens");
    told.write(&store, &mut rng, 1).await.expect("it has power");
    let early = machine.0.lock().expect("no panics").disks.clone();
    told.write(&store, &mut rng, 60).await.expect("it has power");
    machine.allow(0);
    drop(store);
    machine.cut(&mut rng);
    let late = machine.0.lock().expect("no panics").disks.clone();
    let replace = |which: &[usize]| {
        let mut room = machine.0.lock().expect("no panics");
        room.disks = late.clone();
        for &disk in which {
            room.disks[disk] = early[disk].clone();
        }
    };
    for which in [&[1, 2][..], &[0], &[0, 1], &[0, 2]] {
        replace(which);
        let error = machine.open().expect_err("disks of two moments");
        assert!(error.to_string().contains("fairlead restore"), "{which:?}: {error}");
    }
    // One file alone may have had nothing that the database has not.
    for disk in [1, 2] {
        replace(&[disk]);
        if let Ok(store) = machine.open() {
            assert!(store.revision().await.expect("read").0 > 40, "disk {disk}");
        }
    }
    replace(&[]);
    told.check(&machine.open().expect("it opens")).await;
}

/// From the opening of a store to its closing, the disk is full after every call once, and then has room again.
#[tokio::test]
async fn a_disk_that_was_full_is_written_again_when_there_is_room() {
    let mut rng = seeded();
    let mut full_after = 0;
    while fill_and_empty(&mut rng, full_after).await {
        full_after += 1;
    }
    assert!(full_after > 30, "{full_after} calls are not the whole story");
}

/// Fills the disk after so many calls; returns whether a write was refused.
async fn fill_and_empty(rng: &mut fastrand::Rng, calls: u32) -> bool {
    let (machine, mut told) = (Machine::make(), Told::default());
    let store = machine.open().expect("it opens");
    machine.fill(calls);
    let refused = told.write(&store, rng, 20).await;
    if let Err(error) = &refused {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        // What is there can be read, and who tries again too early changes nothing.
        assert_eq!(contents(&store, None).await, told.contents);
        machine.fill(rng.u32(..10));
        let _ = told.write(&store, rng, 1).await;
    }
    machine.empty();
    let began = Instant::now();
    // Even where none was refused so far: that the database was not written is noticed with the next write.
    while let Err(error) = told.write(&store, rng, 10).await {
        assert!(began.elapsed() < Duration::from_secs(10), "after {calls} calls: {error}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(store.health().await.is_ok());
    assert_eq!(
        (contents(&store, None).await, store.revision().await.expect("read")),
        (told.contents.clone(), told.revision)
    );
    drop(store);
    let store = machine.open().expect("it opens after it was closed");
    assert_eq!((contents(&store, None).await, store.revision().await.expect("read")), (told.contents, told.revision));
    refused.is_err()
}

/// A store that was not closed: its journal has what the database has not.
pub(super) async fn leave_a_journal(machine: &Machine, told: &mut Told, rng: &mut fastrand::Rng) {
    let store = machine.open().expect("it opens");
    told.write(&store, rng, 5).await.expect("it has power");
    // First the power: what is taken over into the database in the background may still write until then.
    machine.allow(0);
    let before = machine.calls();
    drop(store);
    assert_eq!(machine.calls(), before, "closing it wrote to a disk without power");
    machine.cut(rng);
}

fn random_writes(rng: &mut fastrand::Rng) -> Vec<Write> {
    let text = "x".repeat(rng.usize(1..3000));
    let mut writes = vec![Write::Put(format!("/registry/pods/ns/{}", rng.u8(..20)).into(), draft(&text))];
    if rng.bool() {
        for name in ["a", "b"] {
            writes.push(Write::Put(format!("/registry/pods/pair/{name}").into(), draft(&text)));
        }
    }
    if rng.u8(..4) == 0 {
        writes.push(Write::Delete(format!("/registry/services/specs/ns/{}", rng.u8(..3)).into()));
    }
    writes
}
