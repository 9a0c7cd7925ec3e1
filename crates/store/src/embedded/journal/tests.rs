use std::sync::Arc;

use redb::backends::InMemoryBackend;

use super::frame::{self, Record, START};
use super::{Journal, Medium, read};
use crate::embedded::log;
use crate::{Draft, Entry, Event, Revision};

const STORE: u64 = 7;
const CAPACITY: usize = START + 1024;

fn event(revision: u64, key: &str, deleted: bool) -> Event {
    let draft = Draft { json: format!("{{\"of\":\"{key}\"}}").into(), gap: 1 };
    let revision = Revision(revision);
    Event { revision, entry: Arc::new(Entry::new(key.into(), revision, &draft)), previous: None, deleted }
}

fn journal() -> Journal {
    let media = [0, 1].map(|_| Box::new(InMemoryBackend::new()) as Medium);
    Journal::new(media, STORE, CAPACITY).expect("memory")
}

fn append(journal: &mut Journal, events: &[Event]) {
    if !journal.prepare(events) {
        journal.turn();
    }
    journal.append().expect("memory");
}

fn file(journal: &Journal, number: usize) -> Vec<u8> {
    read(&*journal.files[number].medium).expect("memory")
}

/// The last revision of each frame in a file.
fn revisions(file: &[u8]) -> Vec<u64> {
    frame::all(file).map(|frame| frame.last.0).collect()
}

#[test]
fn a_frame_is_read_as_it_was_written() {
    let mut journal = journal();
    let events = [event(3, "/a", false), event(3, "/b", true), event(4, "/c", false)];
    append(&mut journal, &events);
    let file = file(&journal, 0);
    let frame = frame::read(&file, START).expect("a frame");
    assert_eq!((frame.store, frame.first, frame.last), (STORE, Revision(3), Revision(4)));
    let mut records = frame.records();
    for event in &events {
        let mut value = vec![0; log::encoded_len(event)];
        log::encode(event, &mut value);
        let expect = Record { revision: event.revision, key: &event.entry.key, value: &value };
        assert_eq!(records.next(), Some(Some(expect)));
    }
    assert_eq!(records.next(), None);
}

#[test]
fn files_take_turns_and_are_written_over() {
    let mut journal = journal();
    let mut revision = 0;
    let mut fill = |journal: &mut Journal, to: usize| {
        while journal.active != to {
            revision += 1;
            append(journal, &[event(revision, "/registry/pods/ns/a", false)]);
        }
        revision
    };
    let second = fill(&mut journal, 1);
    assert_eq!(revisions(&file(&journal, 0)), (1..second).collect::<Vec<_>>());
    let third = fill(&mut journal, 0);
    assert_eq!(revisions(&file(&journal, 1)), (second..third).collect::<Vec<_>>());
    // The zeros after the new frame end the second one of before; those further on are still there, and known by revision.
    let over = revisions(&file(&journal, 0));
    assert_eq!((over[0], &over[1..]), (third, &(3..second).collect::<Vec<_>>()[..]));
    assert_eq!(file(&journal, 0).len(), CAPACITY, "it has not grown");
}

#[test]
fn a_frame_larger_than_a_file_has_one_to_itself() {
    let mut journal = journal();
    append(&mut journal, &[event(1, "/a", false)]);
    append(&mut journal, &[event(2, &"b".repeat(5 * CAPACITY), false)]);
    append(&mut journal, &[event(3, "/c", false)]);
    assert_eq!((revisions(&file(&journal, 0)), revisions(&file(&journal, 1))), (vec![3], vec![2]));
}

#[test]
fn a_frame_with_any_bit_changed_is_none() {
    let mut journal = journal();
    append(&mut journal, &[event(1, "/a", false), event(1, "/b", false)]);
    let whole = file(&journal, 0);
    let end = frame::read(&whole, START).expect("a frame").end;
    for bit in START * 8..end * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(revisions(&damaged), [0; 0], "bit {bit}");
    }
}

#[test]
fn a_frame_elsewhere_or_cut_off_is_none() {
    let mut journal = journal();
    append(&mut journal, &[event(1, "/a", false)]);
    let whole = file(&journal, 0);
    let end = frame::read(&whole, START).expect("a frame").end;
    for cut in START..end {
        assert_eq!(revisions(&whole[..cut]), [0; 0], "the first {cut} bytes");
    }
    let moved = [vec![0; 8], whole].concat();
    assert_eq!(revisions(&moved), [0; 0]);
}

#[test]
fn any_bytes_can_be_read() {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut journal = journal();
    append(&mut journal, &[event(1, "/a", false)]);
    for _ in 0..5000 {
        let mut bytes = file(&journal, 0);
        for _ in 0..rng.usize(1..20) {
            let at = START + rng.usize(..frame::HEAD + 40);
            bytes[at] = rng.u8(..);
        }
        bytes.truncate(rng.usize(..=bytes.len()));
        frame::all(&bytes).for_each(|frame| assert!(frame.records().count() < 100));
    }
}
