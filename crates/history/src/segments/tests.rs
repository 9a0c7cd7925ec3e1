use std::fs;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use super::{Bounds, Found, Segments, read};
use crate::Followed;
use crate::batch::Batch;
use crate::frame::Frames;
use crate::record::{Body, Change, Record};

const DAY: Duration = Duration::from_secs(86400);

fn open(dir: &TempDir, size: u64) -> (Segments, Found) {
    Segments::open(dir.path(), Bounds { size, age: DAY }).expect("it opens")
}

/// Changes of these sizes.
fn changes<const N: usize>(at: Timestamp, sizes: [usize; N]) -> Batch {
    let mut batch = Batch::default();
    sizes.iter().for_each(|size| batch.push(&change(at, *size)));
    batch
}

fn change(at: Timestamp, size: usize) -> Record {
    Record::Change(Change {
        at,
        late: false,
        kind: Followed::Service,
        revision: 1,
        namespace: "default".into(),
        name: "web".into(),
        by: String::new(),
        body: Body::Whole(vec![b'x'; size]),
    })
}

fn on_disk(dir: &TempDir) -> u64 {
    fs::read_dir(dir.path()).expect("it is there").flatten().map(|entry| entry.metadata().expect("it is").len()).sum()
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let dir = TempDir::new().expect("a directory");
    let now = Timestamp::from_second(1000).expect("a time");
    let (mut segments, found) = open(&dir, 1 << 20);
    assert_eq!((found, segments.newest()), (Found::default(), 0));
    segments.begin(now, &Batch::default()).expect("begun");
    segments.append(now, &changes(now, [10, 20])).expect("written");
    let before = segments.all().to_vec();
    drop(segments);
    let (segments, found) = open(&dir, 1 << 20);
    assert_eq!(found, Found::default());
    assert_eq!(segments.all(), before);
    assert_eq!(segments.all()[0].changes, 2);
}

#[test]
fn a_torn_tail_is_cut_and_told_and_writing_goes_on_behind_it() {
    let dir = TempDir::new().expect("a directory");
    let now = Timestamp::from_second(1000).expect("a time");
    let (mut segments, _) = open(&dir, 1 << 20);
    segments.begin(now, &Batch::default()).expect("begun");
    segments.append(now, &changes(now, [10, 20])).expect("written");
    let file = segments.all()[0].clone();
    drop(segments);
    let whole = fs::read(&file.path).expect("it is there");
    fs::write(&file.path, &whole[..whole.len() - 3]).expect("cut");
    let (mut segments, found) = open(&dir, 1 << 20);
    assert!(found.cut > 0, "{found:?}");
    assert_eq!(segments.all()[0].changes, 1);
    segments.append(now, &changes(now, [30])).expect("written");
    let bytes = read(&segments.all()[0]).expect("read");
    assert_eq!(Frames::new(&bytes).count(), 3, "the head and two changes");
}

#[test]
fn a_damaged_file_takes_nothing_with_it_but_its_own_rest() {
    let dir = TempDir::new().expect("a directory");
    let now = Timestamp::from_second(1000).expect("a time");
    let (mut segments, _) = open(&dir, 1 << 20);
    for _ in 0..2 {
        segments.begin(now, &Batch::default()).expect("begun");
        segments.append(now, &changes(now, [10, 10])).expect("written");
    }
    let first = segments.all()[0].path.clone();
    drop(segments);
    let mut bytes = fs::read(&first).expect("it is there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&first, bytes).expect("damaged");
    let (segments, found) = open(&dir, 1 << 20);
    assert_eq!(found, Found { damaged: vec![first], ..Found::default() });
    let changes: Vec<u64> = segments.all().iter().map(|segment| segment.changes).collect();
    assert_eq!(changes, [1, 2]);
}

#[test]
fn files_that_cannot_be_read_are_removed_but_not_those_of_a_newer_format() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("000000000001.history");
    fs::write(&path, b"nonsense").expect("written");
    let (segments, found) = open(&dir, 1 << 20);
    assert_eq!((found.cut, segments.all().len(), path.exists()), (8, 0, false));
    let of_format = |format| {
        let mut file = Batch::default();
        file.push(&Record::Head(Timestamp::UNIX_EPOCH, format));
        fs::write(&path, file.bytes()).expect("written");
    };
    of_format(1);
    let (segments, found) = open(&dir, 1 << 20);
    assert_eq!((found, segments.all().len()), (Found { outdated: true, ..Found::default() }, 0));
    assert!(!path.exists());
    of_format(99);
    let error = Segments::open(dir.path(), Bounds { size: 1 << 20, age: DAY }).expect_err("it is newer");
    assert!(error.to_string().contains("format 99"), "{error}");
    assert!(path.exists());
}

#[test]
fn the_size_is_bounded() {
    let dir = TempDir::new().expect("a directory");
    let size = 64 << 10;
    let (mut segments, _) = open(&dir, size);
    let mut copies = Batch::default();
    copies.extend(&[vec![1; 2000]]);
    let now = Timestamp::from_second(1000).expect("a time");
    for _ in 0..2000 {
        if segments.full(now) {
            segments.begin(now, &copies).expect("begun");
        }
        segments.append(now, &changes(now, [100])).expect("written");
        assert!(on_disk(&dir) <= size, "{}", on_disk(&dir));
    }
    assert!(on_disk(&dir) >= size / 2, "most of the room is used: {}", on_disk(&dir));
}

#[test]
fn what_is_too_old_goes_and_the_newest_stays() {
    let dir = TempDir::new().expect("a directory");
    let (mut segments, _) = open(&dir, 1 << 20);
    let mut now = Timestamp::from_second(1000).expect("a time");
    for _ in 0..10 {
        if segments.full(now) {
            segments.begin(now, &Batch::default()).expect("begun");
        }
        segments.append(now, &changes(now, [10])).expect("written");
        now = now.checked_add(SignedDuration::from_hours(7)).expect("in range");
        segments.trim(now).expect("trimmed");
    }
    let oldest = now.duration_since(segments.all()[0].ends);
    assert!(oldest <= SignedDuration::from_hours(24), "{oldest}");
    assert!(segments.all().len() >= 3, "a day of 7 hours each");
    segments.trim(now.checked_add(SignedDuration::from_hours(900)).expect("in range")).expect("trimmed");
    assert_eq!(segments.all().len(), 1);
}

#[test]
fn files_are_of_a_cluster_only_once_they_are_claimed_for_it() {
    let dir = TempDir::new().expect("a directory");
    let (mut segments, _) = open(&dir, 1 << 20);
    assert!(!segments.is_of("a"));
    segments.claim("a").expect("claimed");
    let now = Timestamp::from_second(1000).expect("a time");
    segments.begin(now, &Batch::default()).expect("begun");
    assert!(segments.is_of("a") && !segments.is_of("b"));
    segments.forget().expect("forgotten");
    let (segments, _) = open(&dir, 1 << 20);
    assert!(segments.is_of("a") && segments.newest() == 0, "a crash at this moment mixes nothing");
}
