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

/// Whatever byte is damaged, either everything is there, or the store says what is missing, or only the newest write is
/// missing: that one looks like a write that was cut off.
#[tokio::test]
async fn damage_to_any_byte_of_the_journal_is_found() {
    let dir = killed(3).await;
    let whole = fs::read(dir.path().join("killed").join(JOURNAL)).expect("a journal");
    let frames: Vec<usize> = crate::embedded::journal::frame::all(&whole).map(|frame| frame.end).collect();
    assert_eq!(frames.len(), 3);
    // Bytes of one kind are told apart by where they stand in their frame; some of each do.
    for at in (0..frames[2] + 80).step_by(if cfg!(debug_assertions) { 7 } else { 1 }) {
        let data = dir.path().join(format!("damaged{at}"));
        copy(&dir.path().join("killed"), &data);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(data.join(JOURNAL), bytes).expect("write");
        let opened = Embedded::open(&data);
        match at {
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
    let data = ours.path().join("killed");
    drop(open(&data));
    fs::copy(theirs.path().join("killed").join(JOURNAL), data.join(JOURNAL)).expect("a copy");
    let why = refusal(Embedded::open(&data));
    assert!(why.contains("revisions up to 3 of another store, and this one ends at 1"), "{why}");
    // The same with no database at all.
    fs::remove_file(data.join("store.redb")).expect("removed");
    assert!(refusal(Embedded::open(&data)).contains("of another store, and this one ends at 0"));
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
