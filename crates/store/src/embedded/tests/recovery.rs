//! What becomes of a store that was not closed, by what is in its files.

use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};

use super::{contents, open, put, refusal, write};
use crate::embedded::{Embedded, log};
use crate::{Backend, Revision, Write};

const KEY: &str = "/registry/pods/ns/a";
const JOURNAL: &str = "store.journal-0";

/// The files of a store that was killed after some writes: revision N says N.
async fn killed(writes: u64) -> TempDir {
    let dir = tempdir().expect("a directory");
    let store = open(&dir.path().join("data"));
    for n in 1..=writes {
        write(&store, vec![put(KEY, &n.to_string())]).await.expect("write");
    }
    copy(&dir.path().join("data"), &dir.path().join("killed"));
    dir
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a directory");
    for file in fs::read_dir(from).expect("a directory") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}

async fn revision(store: &Embedded) -> u64 {
    store.revision().await.expect("read").0
}

#[tokio::test]
async fn what_only_the_journal_has_is_recovered_with_its_history() {
    let dir = killed(5).await;
    let data = dir.path().join("killed");
    for round in 0..3 {
        let store = open(&data);
        assert_eq!(revision(&store).await, 5 + round);
        let then = contents(&store, Some(Revision(3))).await;
        assert_eq!(then, [(KEY.to_owned(), super::draft("3").at(Revision(3)).to_vec())]);
        let mut watch = store.watch("/registry/pods/", Revision(2)).await.expect("it reaches back");
        assert_eq!(watch.next().await.expect("events")[0].revision, Revision(3));
        write(&store, vec![put(KEY, "more")]).await.expect("write");
    }
}

#[tokio::test]
async fn a_store_of_the_format_without_a_journal_goes_on() {
    let dir = killed(0).await;
    let data = dir.path().join("killed");
    drop(open(&data));
    fs::remove_file(data.join(JOURNAL)).expect("removed");
    fs::remove_file(data.join("store.journal-1")).expect("removed");
    let db = redb::Database::open(data.join("store.redb")).expect("a database");
    let txn = db.begin_write().expect("write");
    {
        let mut meta = txn.open_table(log::META).expect("table");
        meta.insert("format", 1).expect("insert");
        meta.remove("store").expect("remove");
        let mut records = txn.open_table(log::LOG).expect("table");
        records.insert((4, KEY), &[&[1, 1, 0, 0, 0][..], b"{}"].concat()[..]).expect("insert");
    }
    txn.commit().expect("commit");
    drop(db);
    let store = open(&data);
    assert_eq!(contents(&store, None).await, [(KEY.to_owned(), b"{\"resourceVersion\":\"4\",}".to_vec())]);
    assert_eq!(write(&store, vec![put(KEY, "more")]).await.expect("write"), Revision(5));
    copy(&data, &dir.path().join("again"));
    assert_eq!(revision(&open(&dir.path().join("again"))).await, 5);
}

/// The names of both journal files.
const FILES: [&str; 2] = [JOURNAL, "store.journal-1"];

#[tokio::test]
async fn a_journal_file_that_is_missing_empty_or_cut_is_named() {
    let dir = killed(3).await;
    let killed = dir.path().join("killed");
    let whole = fs::read(killed.join(JOURNAL)).expect("a journal");
    let ends: Vec<usize> = crate::embedded::journal::frame::all(&whole).map(|frame| frame.end).collect();
    assert_eq!(ends.len(), 3);
    for file in FILES {
        // Without the file, without a byte, before and after the first block, at each end of a
        // frame, and one byte short.
        let cuts = [None, Some(0), Some(40), Some(4096), Some(whole.len() - 1)];
        for cut in cuts.into_iter().chain(ends.iter().copied().map(Some)) {
            let data = dir.path().join("cut");
            copy(&killed, &data);
            let path = data.join(file);
            match cut {
                None => fs::remove_file(&path).expect("removed"),
                Some(len) => {
                    let file = fs::File::options().write(true).open(&path).expect("a file");
                    file.set_len(len as u64).expect("cut");
                }
            }
            // Refusing changes nothing: the second start says it too, and with its file the store
            // opens.
            for _ in 0..2 {
                let why = refusal(Embedded::open(&data));
                assert!(why.contains(file) && why.contains("fairlead restore"), "{cut:?}: {why}");
            }
            assert_eq!(path.exists(), cut.is_some(), "a start that is refused made a file");
            fs::copy(killed.join(file), &path).expect("a copy");
            assert_eq!(revision(&open(&data)).await, 3);
            fs::remove_dir_all(&data).expect("removed");
        }
    }
}

#[tokio::test]
async fn files_of_a_journal_in_each_others_place_lose_nothing() {
    let dir = killed(3).await;
    let data = dir.path().join("killed");
    fs::rename(data.join(FILES[0]), data.join("aside")).expect("renamed");
    fs::rename(data.join(FILES[1]), data.join(FILES[0])).expect("renamed");
    fs::rename(data.join("aside"), data.join(FILES[1])).expect("renamed");
    assert_eq!(revision(&open(&data)).await, 3);
}

/// The files of an earlier opening of the same store have its number and revisions that are too old
/// to be missed.
#[tokio::test]
async fn a_journal_file_of_an_earlier_opening_is_refused() {
    let dir = killed(3).await;
    let (first, second) = (dir.path().join("killed"), dir.path().join("second"));
    let store = open(&dir.path().join("data"));
    write(&store, vec![put(KEY, "4")]).await.expect("write");
    copy(&dir.path().join("data"), &second);
    for file in FILES {
        let data = dir.path().join("mixed");
        copy(&second, &data);
        fs::copy(first.join(file), data.join(file)).expect("a copy");
        let why = refusal(Embedded::open(&data));
        assert!(why.contains(file) && why.contains("an older or newer copy"), "{why}");
        fs::remove_dir_all(&data).expect("removed");
    }
    // Nor does a database of an earlier opening go with them.
    fs::copy(first.join("store.redb"), second.join("store.redb")).expect("a copy");
    assert!(refusal(Embedded::open(&second)).contains("an older or newer copy"));
}

#[tokio::test]
async fn a_journal_without_its_database_is_refused() {
    let dir = killed(0).await;
    let data = dir.path().join("killed");
    fs::remove_file(data.join("store.redb")).expect("removed");
    let why = refusal(Embedded::open(&data));
    assert!(why.contains("store.journal-0 is of another store") && why.contains("store.redb is empty"), "{why}");
}

#[tokio::test]
async fn the_database_of_a_store_that_lost_its_journal_is_restored() {
    let dir = killed(3).await;
    let (killed, data) = (dir.path().join("killed"), dir.path().join("again"));
    let store = open(&killed);
    let large = "x".repeat(600 << 10);
    for n in 0..5 {
        write(&store, vec![put(KEY, &format!("{n}{large}"))]).await.expect("write");
    }
    copy(&killed, &dir.path().join("old"));
    let from = dir.path().join("old").join("store.redb");
    let before = fs::read(&from).expect("a database");
    super::restore(&from, &data).expect("restored");
    assert_eq!(fs::read(&from).expect("a database"), before);
    let names: Vec<_> = fs::read_dir(&data).expect("read").map(|file| file.expect("read").file_name()).collect();
    assert_eq!(names, ["store.redb"], "a copy was left behind");
    let store = open(&data);
    assert_eq!(contents(&store, None).await.len(), 1);
    assert!(revision(&store).await > 1_000_000_000, "clients take new revisions for lost ones");
}

/// Format 2: frames from the first byte on, no mark, nothing in the database about them.
#[tokio::test]
async fn a_store_of_the_format_without_generations_is_recovered() {
    let dir = killed(3).await;
    let data = dir.path().join("killed");
    let whole = fs::read(data.join(JOURNAL)).expect("a journal");
    let mut old = Vec::new();
    for frame in crate::embedded::journal::frame::all(&whole) {
        let at = old.len();
        let start = frame.end - frame.len();
        old.extend_from_slice(&whole[start..frame.end]);
        crate::embedded::journal::frame::seal(&mut old[at..], at as u64);
    }
    old.resize(256 << 10, 0);
    fs::write(data.join(JOURNAL), old).expect("write");
    fs::write(data.join(FILES[1]), "").expect("write");
    let db = redb::Database::open(data.join("store.redb")).expect("a database");
    let txn = db.begin_write().expect("write");
    {
        let mut meta = txn.open_table(log::META).expect("table");
        meta.insert("format", 2).expect("insert");
        meta.remove("generation").expect("remove");
    }
    txn.commit().expect("commit");
    drop(db);
    let store = open(&data);
    assert_eq!(revision(&store).await, 3);
    write(&store, vec![put(KEY, "4")]).await.expect("write");
    copy(&data, &dir.path().join("again"));
    assert_eq!(revision(&open(&dir.path().join("again"))).await, 4);
}

/// Whatever byte is damaged, either everything is there, or the store says what is missing, or only the newest write is
/// missing: that one looks like a write that was cut off.
#[tokio::test]
async fn damage_to_any_byte_of_the_journal_is_found() {
    let dir = killed(3).await;
    let whole = fs::read(dir.path().join("killed").join(JOURNAL)).expect("a journal");
    let frames: Vec<usize> = crate::embedded::journal::frame::all(&whole).map(|frame| frame.end).collect();
    assert_eq!(frames.len(), 3);
    let start = frames[0] - crate::embedded::journal::frame::all(&whole).next().expect("a frame").len();
    // Bytes of one kind are told apart by where they stand in their frame; some of each do.
    for at in (0..100).chain(start - 8..frames[2] + 80).step_by(if cfg!(debug_assertions) { 7 } else { 1 }) {
        let data = dir.path().join(format!("damaged{at}"));
        copy(&dir.path().join("killed"), &data);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(data.join(JOURNAL), bytes).expect("write");
        let opened = Embedded::open(&data);
        match at {
            _ if at < 40 => assert!(refusal(opened).contains("store.journal-0 is "), "byte {at}"),
            _ if at < start => assert_eq!(revision(&opened.expect("it opens")).await, 3, "byte {at}"),
            _ if at < frames[1] => {
                let why = refusal(opened);
                assert!(why.contains("is damaged: revision") && why.contains("is missing"), "byte {at}: {why}");
            }
            _ if at < frames[2] => {
                assert_eq!(revision(&opened.expect("it opens")).await, 2, "byte {at}");
                let after = fs::read(data.join(JOURNAL)).expect("a journal");
                assert!(after[frames[1]..][..40].iter().all(|byte| *byte == 0), "byte {at}: it was not noticed");
            }
            _ => assert_eq!(revision(&opened.expect("it opens")).await, 3, "byte {at}"),
        }
        fs::remove_dir_all(&data).expect("removed");
    }
}

#[tokio::test]
async fn the_journal_of_another_store_is_refused() {
    let (ours, theirs) = (killed(1).await, killed(3).await);
    for file in FILES {
        let data = ours.path().join("mixed");
        copy(&ours.path().join("killed"), &data);
        fs::copy(theirs.path().join("killed").join(file), data.join(file)).expect("a copy");
        let why = refusal(Embedded::open(&data));
        assert!(why.contains(&format!("{file} is of another store")), "{why}");
        fs::remove_dir_all(&data).expect("removed");
    }
    // After it was closed, a store needs no journal: only writes that it does not have are refused.
    let data = ours.path().join("killed");
    drop(open(&data));
    fs::copy(theirs.path().join("killed").join(JOURNAL), data.join(JOURNAL)).expect("a copy");
    let why = refusal(Embedded::open(&data));
    assert!(why.contains("revisions up to 3 of another store, and this one ends at 1"), "{why}");
    // The same with no database at all.
    fs::remove_file(data.join("store.redb")).expect("removed");
    assert!(refusal(Embedded::open(&data)).contains("store.journal-0 is of another store"));
}

#[tokio::test]
async fn many_turns_of_the_journal_lose_nothing() {
    let dir = tempdir().expect("a directory");
    let (data, copied) = (dir.path().join("data"), dir.path().join("copy"));
    let store = open(&data);
    let large = "x".repeat(400 << 10);
    for n in 0..30 {
        let name = format!("/registry/pods/ns/{}", n % 7);
        write(&store, vec![put(&name, &format!("{n}{large}"))]).await.expect("write");
    }
    write(&store, vec![Write::Delete("/registry/pods/ns/3".into())]).await.expect("write");
    let before = contents(&store, None).await;
    drop(store);
    copy(&data, &copied);
    assert_eq!(contents(&open(&copied), None).await, before);
    // Closed, a store needs its journal no more.
    fs::remove_file(data.join(JOURNAL)).expect("removed");
    fs::remove_file(data.join("store.journal-1")).expect("removed");
    let store = open(&data);
    assert_eq!((contents(&store, None).await, revision(&store).await), (before, 31));
}
