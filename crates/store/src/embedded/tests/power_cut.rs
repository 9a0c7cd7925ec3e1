//! A disk that forgets, when the power fails, any of the blocks that were not synced.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use redb::{Builder, StorageBackend};

use super::{contents, draft, write};
use crate::embedded::Embedded;
use crate::embedded::log::{self, Meta};
use crate::{Backend, Error, Revision, Write};

const BLOCK: usize = 512;

/// What is on the platter, and what is only in the cache.
#[derive(Debug, Default)]
struct Disk {
    durable: Vec<u8>,
    cached: BTreeMap<usize, Vec<u8>>,
    len: usize,
    /// Calls until everything fails.
    budget: Option<u32>,
}

#[derive(Debug, Clone, Default)]
struct Power(Arc<Mutex<Disk>>);

impl Power {
    fn with<T>(&self, io: impl FnOnce(&mut Disk) -> T) -> Result<T, io::Error> {
        let mut disk = self.0.lock().expect("no panics");
        match &mut disk.budget {
            Some(0) => return Err(io::Error::other("no power")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(io(&mut disk))
    }

    /// Power is off: of the cached blocks some are on the disk, some are not.
    fn cut(&self, rng: &mut fastrand::Rng) {
        let mut disk = self.0.lock().expect("no panics");
        let cached = std::mem::take(&mut disk.cached);
        for (block, bytes) in cached {
            if rng.bool() {
                disk.keep(block, &bytes);
            }
        }
        disk.len = disk.durable.len();
        disk.budget = None;
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
        self.with(|disk| disk.write(offset as usize, data))
    }
}

fn open(disk: &Power) -> Result<Embedded, Error> {
    Embedded::start(Builder::new().create_with_backend(disk.clone()).expect("a database"), "disk")
}

fn make(disk: &Power) {
    let db = Builder::new().create_with_backend(disk.clone()).expect("a database");
    log::initialize(&db, Meta::EMPTY).expect("it has power");
}

#[tokio::test]
#[allow(clippy::print_stdout, reason = "a failure is repeated with its seed")]
async fn what_was_acknowledged_survives_a_power_cut() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..10 {
        let disk = Power::default();
        let (mut acknowledged, mut count) = (Vec::new(), Revision(0));
        make(&disk);
        for _ in 0..10 {
            let store = open(&disk).expect("it opens after a power cut");
            // A transaction under way when the power failed may be there, but only as a whole.
            let now = contents(&store, None).await;
            assert!(store.revision().await.expect("read") >= count, "revisions went back");
            assert!(now == acknowledged || store.revision().await.expect("read").0 == count.0 + 1);
            acknowledged = now;
            disk.0.lock().expect("no panics").budget = Some(rng.u32(..200));
            while let Ok(revision) = write(&store, random_writes(&mut rng)).await {
                count = revision;
                acknowledged = contents(&store, None).await;
            }
            assert!(matches!(write(&store, random_writes(&mut rng)).await, Err(Error::Unavailable(_))));
            drop(store);
            disk.cut(&mut rng);
        }
        let pairs = acknowledged.iter().filter(|(key, _)| key.contains("/pair/")).count();
        assert!(pairs == 0 || pairs == 2, "a part of a transaction");
    }
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
