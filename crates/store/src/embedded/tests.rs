use std::path::Path;

use redb::Database;
use tempfile::tempdir;

use super::log::META;
use super::{Embedded, restore};
use crate::{Backend, Draft, Error, Outcome, Range, Revision, Txn, Write};

mod faults;
mod power_cut;
mod recovery;

pub(super) fn draft(text: &str) -> Draft {
    Draft { json: format!("{{\"metadata\":{{\"name\":\"{text}\"}}}}").into(), gap: "{\"metadata\":{".len() }
}

pub(super) async fn write(store: &Embedded, writes: Vec<Write>) -> Result<Revision, Error> {
    match store.commit(Txn { guards: Vec::new(), writes }).await? {
        Outcome::Done(revision) => Ok(revision),
        Outcome::Refused(guard) => panic!("guard {guard} of none refused"),
    }
}

pub(super) async fn contents(store: &Embedded, at: Option<Revision>) -> Vec<(String, Vec<u8>)> {
    let range = Range { prefix: "/registry/".into(), at, ..Range::default() };
    let page = store.range(range).await.expect("read");
    page.entries.iter().map(|entry| (entry.key.to_string(), entry.json.to_vec())).collect()
}

fn put(key: &str, text: &str) -> Write {
    Write::Put(key.into(), draft(text))
}

fn open(path: &Path) -> Embedded {
    Embedded::open(path).expect("it opens")
}

fn refusal<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Unusable(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn a_store_in_use_is_refused() {
    let dir = tempdir().expect("a directory");
    let first = open(dir.path());
    assert!(refusal(Embedded::open(dir.path())).ends_with("store.redb is in use by another process"));
    drop(first);
    open(dir.path());
}

#[test]
fn a_newer_format_is_refused_with_both_versions() {
    let dir = tempdir().expect("a directory");
    drop(open(dir.path()));
    let db = Database::open(dir.path().join("store.redb")).expect("a database");
    let txn = db.begin_write().expect("write");
    txn.open_table(META).expect("table").insert("format", 7).expect("insert");
    txn.commit().expect("commit");
    drop(db);
    let why = refusal(Embedded::open(dir.path()));
    assert!(why.contains("has format 7") && why.contains("reads up to format 3"), "{why}");
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let dir = tempdir().expect("a directory");
    std::fs::write(dir.path().join("store.redb"), "something else entirely").expect("write");
    assert!(refusal(Embedded::open(dir.path())).contains("cannot be read"));
}

#[test]
fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().expect("a directory");
    let data = dir.path().join("data");
    drop(open(&data));
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for name in ["store.redb", "store.journal-0", "store.journal-1"] {
        assert_eq!(mode(&data.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn history_is_forgotten_in_portions_and_survives_reopening() {
    let dir = tempdir().expect("a directory");
    let store = open(dir.path());
    write(&store, vec![put("/registry/pods/ns/gone", "x")]).await.expect("write");
    write(&store, vec![Write::Delete("/registry/pods/ns/gone".into())]).await.expect("write");
    for round in 0..130 {
        let writes = (0..100).map(|n| put(&format!("/registry/pods/ns/{n}"), &round.to_string())).collect();
        write(&store, writes).await.expect("write");
    }
    let (now, before) = (store.revision().await.expect("read"), contents(&store, None).await);
    drop(store);
    let records = || {
        use redb::{ReadableDatabase, ReadableTableMetadata};
        let db = Database::open(dir.path().join("store.redb")).expect("a database");
        db.begin_read().expect("read").open_table(super::log::LOG).expect("table").len().expect("length")
    };
    assert!((10_000..10_500).contains(&records()), "{} records", records());
    let store = open(dir.path());
    assert_eq!((store.revision().await.expect("read"), contents(&store, None).await), (now, before));
    // What is kept is complete; what is not is refused.
    let old = contents(&store, Some(Revision(now.0 - 50))).await;
    let expect = draft("79").at(Revision(now.0 - 50));
    assert!(old.len() == 100 && old.iter().all(|(_, json)| *json == expect));
    let range = Range { prefix: "/registry/".into(), at: Some(Revision(5)), ..Range::default() };
    assert!(matches!(store.range(range).await, Err(Error::Compacted { .. })));
    assert!(matches!(store.watch("/registry/pods/", Revision(5)).await, Err(Error::Compacted { .. })));
    assert!(store.watch("/registry/pods/", Revision(now.0 - 50)).await.is_ok());
}

#[tokio::test]
async fn a_backup_taken_while_running_is_restored_whole() {
    let dir = tempdir().expect("a directory");
    let (data, copy, second) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("second"));
    let store = open(&data);
    for n in 0..50 {
        write(&store, vec![put(&format!("/registry/pods/ns/{n}"), "x")]).await.expect("write");
    }
    let (now, before) = (store.revision().await.expect("read"), contents(&store, None).await);
    store.backup(&copy).expect("a copy");
    write(&store, vec![put("/registry/pods/ns/later", "x")]).await.expect("write");

    assert!(refusal(store.backup(&copy)).contains("exists"));
    restore(&copy, &second).expect("restored");
    let restored = open(&second);
    assert_eq!(contents(&restored, None).await, before);
    assert!(restored.revision().await.expect("read") > store.revision().await.expect("read"));
    // Clients of the old store start over.
    assert!(matches!(restored.watch("/registry/pods/", now).await, Err(Error::Compacted { .. })));
    let next = write(&restored, vec![put("/registry/pods/ns/new", "x")]).await.expect("write");
    drop(restored);
    assert_eq!(open(&second).revision().await.expect("read"), next);
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).expect("read").map(|e| e.expect("read").file_name()).collect();
    names.sort();
    assert_eq!(names, ["copy", "data", "second"], "nothing half-made stays behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_one_moment() {
    let dir = tempdir().expect("a directory");
    let store = std::sync::Arc::new(open(&dir.path().join("data")));
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 0..2000 {
                let pair = ["a", "b"].map(|name| put(&format!("/registry/pods/ns/{name}"), &n.to_string()));
                write(&store, pair.into()).await.expect("write");
            }
        }
    });
    for round in 0..5 {
        let (copy, data) = (dir.path().join(format!("copy{round}")), dir.path().join(format!("data{round}")));
        let source = store.clone();
        let made = tokio::task::spawn_blocking(move || source.backup(&copy).and_then(|()| restore(&copy, &data)));
        made.await.expect("no panic").expect("a copy");
        let all = contents(&open(&dir.path().join(format!("data{round}"))), None).await;
        assert!(all.is_empty() || all.len() == 2 && all[0].1 == all[1].1, "a part of a transaction");
    }
    writer.await.expect("no panic");
}

#[test]
fn a_restore_overwrites_nothing_and_takes_no_rubbish() {
    let dir = tempdir().expect("a directory");
    let (data, copy, rubbish) = (dir.path().join("data"), dir.path().join("copy"), dir.path().join("rubbish"));
    open(&data).backup(&copy).expect("a copy");
    assert!(refusal(restore(&copy, &data)).contains("exists"));
    std::fs::write(&rubbish, "rubbish").expect("write");
    assert!(refusal(restore(&rubbish, &dir.path().join("new"))).contains("cannot be read"));
    assert!(refusal(restore(&dir.path().join("absent"), &dir.path().join("new"))).contains("cannot be read"));
    assert!(!dir.path().join("new").exists());
}
