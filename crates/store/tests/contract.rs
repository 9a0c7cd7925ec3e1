//! What every backend promises, asked of each of them: memory, embedded, and a real etcd.

#[path = "support/objects.rs"]
mod objects;

use std::sync::Arc;
use std::time::Duration;

use fairlead_store::{
    Backend, Embedded, Error, Etcd, EtcdOptions, Event, Guard, Memory, Outcome, Range, Revision, Watch,
};
use futures_util::future::join_all;
use objects::{all, decode, delete, guarded, put, stored, txn, write};
use tokio::time::timeout;

const PODS: &str = "/registry/pods/";
const A: &str = "/registry/pods/default/a";
const B: &str = "/registry/pods/default/b";
const C: &str = "/registry/pods/other/c";
const SERVICE: &str = "/registry/services/specs/default/web";

/// A store to ask, and what must live as long as it.
struct Subject {
    store: Store,
    _home: Home,
}

enum Store {
    Memory(Memory),
    Embedded(Embedded),
    Etcd(Etcd),
}

enum Home {
    None,
    Dir { _dir: tempfile::TempDir },
    Process { _etcd: fairlead_testkit::Etcd },
}

impl Subject {
    fn memory() -> Subject {
        Subject { store: Store::Memory(Memory::new()), _home: Home::None }
    }

    fn embedded() -> Subject {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::Embedded(Embedded::open(dir.path()).expect("an empty store"));
        Subject { store, _home: Home::Dir { _dir: dir } }
    }

    async fn etcd() -> Subject {
        let etcd = fairlead_testkit::Etcd::start();
        let options = EtcdOptions { endpoints: vec![etcd.url()], ..EtcdOptions::default() };
        let store = Store::Etcd(Etcd::connect(&options, decode).await.expect("etcd answers"));
        Subject { store, _home: Home::Process { _etcd: etcd } }
    }

    /// Makes the store forget what came before now.
    async fn forget(&self) {
        match &self.store {
            Store::Etcd(etcd) => {
                let now = self.revision().await.expect("etcd answers");
                etcd.compact(now).await.expect("etcd compacts");
            }
            _ => {
                for round in 0..17 {
                    let text = round.to_string();
                    join_all((0..1024).map(|_| write(&**self, [put(A, &text)]))).await;
                }
            }
        }
    }
}

impl std::ops::Deref for Subject {
    type Target = dyn Backend;
    fn deref(&self) -> &(dyn Backend + 'static) {
        match &self.store {
            Store::Memory(store) => store,
            Store::Embedded(store) => store,
            Store::Etcd(store) => store,
        }
    }
}

macro_rules! contract {
    ($($fact:ident)*) => {
        mod memory {
            $(#[tokio::test] async fn $fact() { super::$fact(super::Subject::memory()).await })*
        }
        mod embedded {
            $(#[tokio::test] async fn $fact() { super::$fact(super::Subject::embedded()).await })*
        }
        mod etcd {
            $(#[tokio::test] async fn $fact() {
                if fairlead_testkit::need(concat!("etcd::", stringify!($fact)), "etcd") {
                    super::$fact(super::Subject::etcd().await).await
                }
            })*
        }
    };
}

contract! {
    a_put_is_read_back_with_its_revision
    a_write_replaces_and_a_delete_removes
    every_commit_has_a_revision_of_its_own
    deleting_what_is_not_there_takes_no_revision
    writes_of_one_transaction_share_a_revision
    an_absent_guard_refuses_what_is_there
    a_revision_guard_refuses_any_other
    the_first_guard_that_fails_is_named
    a_refused_transaction_writes_nothing
    guarded_writers_lose_no_update
    a_list_is_sorted_and_ends_with_its_prefix
    pages_follow_each_other_and_count_the_rest
    a_list_of_everything_is_whole
    an_older_revision_is_shown_as_it_was
    pages_of_an_older_revision_follow_each_other
    a_list_of_the_future_is_refused
    a_list_of_the_forgotten_is_refused
    a_watch_sees_every_change_in_order
    a_watch_of_the_past_catches_up
    a_watch_sees_only_its_prefix
    a_watch_hands_out_transactions_whole
    a_watch_begins_after_a_future_revision
    a_watch_of_the_forgotten_is_refused
    a_watch_survives_dropped_calls
    a_watch_of_several_resources_is_refused
    progress_grows_though_the_prefix_rests
    progress_never_runs_ahead
    many_watchers_see_the_same
}

async fn a_put_is_read_back_with_its_revision(store: Subject) {
    assert!(store.get(A).await.expect("read").is_none());
    let revision = write(&*store, [put(A, "größe")]).await;
    let entry = store.get(A).await.expect("read").expect("there");
    assert_eq!((&*entry.key, entry.revision), (A, revision));
    assert_eq!(std::str::from_utf8(&entry.json).expect("text"), stored("größe", revision));
    assert!(entry.index.get().is_none());
}

async fn a_write_replaces_and_a_delete_removes(store: Subject) {
    write(&*store, [put(A, "1")]).await;
    let second = write(&*store, [put(A, "2")]).await;
    assert_eq!(texts(&*store, PODS).await, [stored("2", second)]);
    write(&*store, [delete(A)]).await;
    assert!(store.get(A).await.expect("read").is_none());
    assert!(texts(&*store, PODS).await.is_empty());
}

async fn every_commit_has_a_revision_of_its_own(store: Subject) {
    let start = store.revision().await.expect("read");
    let mut revisions: Vec<u64> =
        join_all((0..20).map(|_| write(&*store, [put(A, "x")]))).await.iter().map(|revision| revision.0).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (start.0 + 1..=start.0 + 20).collect::<Vec<_>>());
    assert_eq!(store.revision().await.expect("read").0, start.0 + 20);
}

async fn deleting_what_is_not_there_takes_no_revision(store: Subject) {
    let before = write(&*store, [put(A, "1")]).await;
    assert_eq!(write(&*store, [delete(B)]).await, before);
    assert_eq!(store.revision().await.expect("read"), before);
    let mixed = write(&*store, [delete(B), put(C, "1")]).await;
    assert_eq!(mixed.0, before.0 + 1);
}

async fn writes_of_one_transaction_share_a_revision(store: Subject) {
    write(&*store, [put(B, "old")]).await;
    let revision = write(&*store, [put(A, "1"), delete(B), put(SERVICE, "2")]).await;
    for key in [A, SERVICE] {
        assert_eq!(store.get(key).await.expect("read").expect("there").revision, revision);
    }
    assert!(store.get(B).await.expect("read").is_none());
}

async fn an_absent_guard_refuses_what_is_there(store: Subject) {
    let create = || guarded([Guard::Absent(A.into())], [put(A, "1")]);
    let first = store.commit(create()).await.expect("commit");
    assert!(matches!(first, Outcome::Done(_)));
    assert_eq!(store.commit(create()).await.expect("commit"), Outcome::Refused(0));
    write(&*store, [delete(A)]).await;
    assert!(matches!(store.commit(create()).await.expect("commit"), Outcome::Done(_)));
}

async fn a_revision_guard_refuses_any_other(store: Subject) {
    let first = write(&*store, [put(A, "1")]).await;
    let update = |at| guarded([Guard::At(A.into(), at)], [put(A, "2")]);
    let Outcome::Done(second) = store.commit(update(first)).await.expect("commit") else { panic!("refused") };
    for stale in [first, Revision(second.0 + 1), Revision(0)] {
        assert_eq!(store.commit(update(stale)).await.expect("commit"), Outcome::Refused(0), "at {stale}");
    }
    write(&*store, [delete(A)]).await;
    assert_eq!(store.commit(update(second)).await.expect("commit"), Outcome::Refused(0));
}

async fn the_first_guard_that_fails_is_named(store: Subject) {
    let at = write(&*store, [put(A, "1")]).await;
    let check = async |guards: Vec<Guard>, expect| {
        let outcome = store.commit(guarded(guards, [put(C, "x")])).await.expect("commit");
        assert_eq!(outcome, Outcome::Refused(expect));
    };
    let holds = || Guard::At(A.into(), at);
    let fails = || Guard::Absent(A.into());
    check(vec![holds(), fails()], 1).await;
    check(vec![fails(), holds(), fails()], 0).await;
    check(vec![holds(), Guard::Absent(B.into()), Guard::At(B.into(), at)], 2).await;
}

async fn a_refused_transaction_writes_nothing(store: Subject) {
    let before = write(&*store, [put(A, "1")]).await;
    let refused = guarded([Guard::Absent(A.into())], [put(B, "x"), delete(A)]);
    assert_eq!(store.commit(refused).await.expect("commit"), Outcome::Refused(0));
    assert_eq!(store.revision().await.expect("read"), before);
    assert_eq!(texts(&*store, PODS).await, [stored("1", before)]);
}

async fn guarded_writers_lose_no_update(store: Subject) {
    write(&*store, [put(A, "0")]).await;
    let add = async || {
        loop {
            let old = store.get(A).await.expect("read").expect("there");
            let text = String::from_utf8(old.json.to_vec()).expect("text");
            let count: u32 = text
                .rsplit("\"text\":\"")
                .next()
                .and_then(|end| end.strip_suffix("\"}"))
                .expect("ours")
                .parse()
                .expect("a number");
            let update = guarded([Guard::At(A.into(), old.revision)], [put(A, &(count + 1).to_string())]);
            if matches!(store.commit(update).await.expect("commit"), Outcome::Done(_)) {
                return;
            }
        }
    };
    join_all((0..16).map(|_| add())).await;
    let end = store.get(A).await.expect("read").expect("there");
    assert_eq!(end.json, stored("16", end.revision));
}

async fn a_list_is_sorted_and_ends_with_its_prefix(store: Subject) {
    let keys =
        ["/registry/pods/b/1", "/registry/pods/a/2", "/registry/pods/a/1", "/registry/pods/ab/1", "/registry/pod/x"];
    write(&*store, keys.map(|key| put(key, key))).await;
    let check =
        async |prefix: &str, expect: &[&str]| assert_eq!(keys_of(&*store, all(prefix)).await, expect, "{prefix}");
    check("/registry/pods/a/", &["/registry/pods/a/1", "/registry/pods/a/2"]).await;
    let pods = ["/registry/pods/a/1", "/registry/pods/a/2", "/registry/pods/ab/1", "/registry/pods/b/1"];
    check(PODS, &pods).await;
    check("/registry/pods/c/", &[]).await;
}

async fn pages_follow_each_other_and_count_the_rest(store: Subject) {
    let keys: Vec<String> = (0..7).map(|n| format!("{PODS}ns/{n}")).collect();
    write(&*store, keys.iter().map(|key| put(key, "x")).collect::<Vec<_>>()).await;
    write(&*store, [put(SERVICE, "x")]).await;
    let check = async |after: Option<&str>, limit, expect: &[String], remaining| {
        let range = Range { prefix: PODS.into(), after: after.map(Into::into), limit, at: None };
        let page = store.range(range).await.expect("read");
        assert_eq!(page.entries.iter().map(|entry| &*entry.key).collect::<Vec<_>>(), expect);
        assert_eq!(page.remaining, remaining);
    };
    check(None, 3, &keys[..3], 4).await;
    check(Some(&keys[2]), 3, &keys[3..6], 1).await;
    check(Some(&keys[5]), 3, &keys[6..], 0).await;
    check(Some(&keys[6]), 3, &[], 0).await;
    check(Some("/registry/pods/ns/25"), 2, &keys[3..5], 2).await;
    check(None, 7, &keys, 0).await;
    check(None, 0, &keys, 0).await;
}

async fn a_list_of_everything_is_whole(store: Subject) {
    for part in 0..50 {
        let keys: Vec<String> = (0..100).map(|n| format!("{PODS}ns/{:05}", part * 100 + n)).collect();
        write(&*store, keys.iter().map(|key| put(key, "x")).collect::<Vec<_>>()).await;
    }
    let keys = keys_of(&*store, all(PODS)).await;
    assert_eq!(keys.len(), 5000);
    assert!(keys.is_sorted());
    let range = Range { limit: 4500, ..all(PODS) };
    let page = store.range(range).await.expect("read");
    assert_eq!((page.entries.len(), page.remaining), (4500, 500));
}

async fn an_older_revision_is_shown_as_it_was(store: Subject) {
    let mut past = Vec::new();
    for writes in [
        vec![put(A, "1"), put(B, "1")],
        vec![put(A, "2")],
        vec![delete(B)],
        vec![put(SERVICE, "1")],
        vec![put(C, "1"), delete(A)],
        vec![put(A, "3")],
    ] {
        let revision = write(&*store, writes).await;
        past.push((revision, texts(&*store, PODS).await));
    }
    for (revision, expect) in past {
        let page = store.range(Range { at: Some(revision), ..all(PODS) }).await.expect("still kept");
        assert_eq!(page.revision, revision);
        assert_eq!(page.entries.iter().map(|entry| text(&entry.json)).collect::<Vec<_>>(), expect, "at {revision}");
    }
}

async fn pages_of_an_older_revision_follow_each_other(store: Subject) {
    let keys: Vec<String> = (0..6).map(|n| format!("{PODS}ns/{n}")).collect();
    let at = write(&*store, keys.iter().map(|key| put(key, "x")).collect::<Vec<_>>()).await;
    write(&*store, [delete(&keys[1]), delete(&keys[2]), put(&keys[4], "y"), put("/registry/pods/ns/35", "new")]).await;
    let mut seen = Vec::new();
    let mut after: Option<Box<str>> = None;
    for remaining in [4, 2, 0] {
        let page = store.range(Range { prefix: PODS.into(), after, limit: 2, at: Some(at) }).await.expect("read");
        assert_eq!((page.remaining, page.revision), (remaining, at));
        seen.extend(page.entries.iter().map(|entry| entry.key.to_string()));
        after = page.entries.last().map(|entry| entry.key.clone());
    }
    assert_eq!(seen, keys);
}

async fn a_list_of_the_future_is_refused(store: Subject) {
    let now = write(&*store, [put(A, "1")]).await;
    let requested = Revision(now.0 + 1);
    let error = store.range(Range { at: Some(requested), ..all(PODS) }).await.expect_err("not yet");
    assert!(matches!(error, Error::Future { requested: r, current } if r == requested && current == now), "{error}");
}

async fn a_list_of_the_forgotten_is_refused(store: Subject) {
    let old = write(&*store, [put(A, "1")]).await;
    write(&*store, [put(A, "2")]).await;
    store.forget().await;
    let error = store.range(Range { at: Some(old), ..all(PODS) }).await.expect_err("forgotten");
    assert!(matches!(error, Error::Compacted { requested, oldest } if requested == old && oldest > old), "{error}");
}

async fn a_watch_sees_every_change_in_order(store: Subject) {
    let start = store.revision().await.expect("read");
    let mut watch = store.watch(PODS, start).await.expect("watch");
    let created = write(&*store, [put(A, "1")]).await;
    let updated = write(&*store, [put(A, "2")]).await;
    let deleted = write(&*store, [delete(A)]).await;
    let events = collect(&mut watch, 3).await;
    let seen: Vec<_> = events.iter().map(describe).collect();
    assert_eq!(
        seen,
        [
            (created, false, stored("1", created), None),
            (updated, false, stored("2", updated), Some(stored("1", created))),
            (deleted, true, stored("2", deleted), Some(stored("2", updated))),
        ]
    );
    assert!(events.iter().all(|event| event.entry.revision == event.revision && &*event.entry.key == A));
}

async fn a_watch_of_the_past_catches_up(store: Subject) {
    let first = write(&*store, [put(A, "1")]).await;
    for n in 2..=600 {
        write(&*store, [put(A, &n.to_string())]).await;
    }
    let mut watch = store.watch(PODS, first).await.expect("watch");
    let old = collect(&mut watch, 599).await;
    write(&*store, [delete(A)]).await;
    let events = [old, collect(&mut watch, 1).await].concat();
    assert_eq!(events.len(), 600);
    assert!(events.iter().zip(first.0 + 1..).all(|(event, revision)| event.revision.0 == revision));
    assert!(events[599].deleted);
}

async fn a_watch_sees_only_its_prefix(store: Subject) {
    let start = store.revision().await.expect("read");
    let mut default = store.watch("/registry/pods/default/", start).await.expect("watch");
    let mut specs = store.watch("/registry/services/specs/", start).await.expect("watch");
    write(&*store, [put(C, "other")]).await;
    write(&*store, [put("/registry/services/endpoints/default/web", "endpoints")]).await;
    write(&*store, [put("/registry/pods/default2/x", "neighbour")]).await;
    write(&*store, [put(A, "mine"), put(SERVICE, "mine"), put(C, "other")]).await;
    for (watch, key) in [(&mut default, A), (&mut specs, SERVICE)] {
        let events = collect(watch, 1).await;
        assert_eq!(events.iter().map(|event| &*event.entry.key).collect::<Vec<_>>(), [key]);
    }
}

async fn a_watch_hands_out_transactions_whole(store: Subject) {
    let start = store.revision().await.expect("read");
    for round in 0..20 {
        let writes: Vec<_> = (0..50).map(|n| put(&format!("{PODS}ns/{n}"), &round.to_string())).collect();
        write(&*store, writes).await;
    }
    let mut watch = store.watch(PODS, start).await.expect("watch");
    let mut seen = 0;
    while seen < 1000 {
        let events = in_time(watch.next()).await.expect("events");
        assert_eq!(events.len() % 50, 0);
        seen += events.len();
    }
}

async fn a_watch_begins_after_a_future_revision(store: Subject) {
    let now = write(&*store, [put(A, "1")]).await;
    let mut watch = store.watch(PODS, Revision(now.0 + 2)).await.expect("watch");
    for n in 2..=4 {
        write(&*store, [put(A, &n.to_string())]).await;
    }
    let events = collect(&mut watch, 1).await;
    assert_eq!(events[0].revision.0, now.0 + 3);
}

async fn a_watch_of_the_forgotten_is_refused(store: Subject) {
    let old = write(&*store, [put(A, "1")]).await;
    let mut slow = store.watch(PODS, old).await.expect("watch");
    write(&*store, [put(A, "2")]).await;
    write(&*store, [put(A, "3")]).await;
    store.forget().await;
    let error = store.watch(PODS, old).await;
    match (&store.store, error) {
        (_, Err(Error::Compacted { requested, oldest })) => assert!(requested == old && oldest > old),
        (Store::Etcd(_), Ok(watch)) => shows_both_or_says_so(watch, old).await,
        (_, other) => panic!("{other:?}"),
    }
    if !matches!(store.store, Store::Etcd(_)) {
        let error = in_time(slow.next()).await.expect_err("too slow");
        assert!(matches!(error, Error::Compacted { .. }), "{error}");
    }
    let now = store.revision().await.expect("read");
    assert!(store.watch(PODS, now).await.is_ok());
}

/// What a window still holds may be served although etcd has forgotten it; if etcd forgot before the window had it, the watch
/// says so once it runs. Either way nothing is left out silently.
async fn shows_both_or_says_so(mut watch: Watch, old: Revision) {
    let mut seen = Vec::new();
    while seen.len() < 2 {
        match in_time(watch.next()).await {
            Ok(events) => seen.extend(events.iter().map(|event| event.revision)),
            Err(Error::Compacted { oldest, .. }) => return assert!(oldest > old),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(seen.len(), 2);
}

async fn a_watch_survives_dropped_calls(store: Subject) {
    let start = store.revision().await.expect("read");
    let mut watch = store.watch(PODS, start).await.expect("watch");
    let writer = async {
        for n in 0..200 {
            write(&*store, [put(A, &n.to_string())]).await;
        }
    };
    let reader = async {
        let mut seen = Vec::new();
        while seen.len() < 200 {
            if let Ok(events) = timeout(Duration::from_micros(50), watch.next()).await {
                seen.extend(events.expect("events"));
            }
            tokio::task::yield_now().await;
        }
        seen
    };
    let (seen, ()) = in_time(async { tokio::join!(reader, writer) }).await;
    assert!(seen.iter().zip(start.0 + 1..).all(|(event, revision)| event.revision.0 == revision));
}

async fn a_watch_of_several_resources_is_refused(store: Subject) {
    for prefix in ["/registry/", "/registry/services/", "/"] {
        let error = store.watch(prefix, Revision(0)).await.expect_err(prefix);
        assert!(matches!(error, Error::Unusable(_)), "{error}");
    }
}

async fn progress_grows_though_the_prefix_rests(store: Subject) {
    let start = store.revision().await.expect("read");
    let watch = store.watch(PODS, start).await.expect("watch");
    assert!(watch.progress() >= start);
    let later = write(&*store, [put(SERVICE, "1")]).await;
    in_time(async {
        while watch.progress() < later {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(watch.progress(), later);
}

async fn progress_never_runs_ahead(store: Subject) {
    let start = store.revision().await.expect("read");
    let mut watch = store.watch(PODS, start).await.expect("watch");
    let first = write(&*store, [put(A, "1")]).await;
    write(&*store, [put(SERVICE, "1")]).await;
    assert!(watch.progress() < first);
    collect(&mut watch, 1).await;
    assert!(watch.progress() >= first);
}

async fn many_watchers_see_the_same(store: Subject) {
    let start = store.revision().await.expect("read");
    let store = Arc::new(store);
    let mut watchers = Vec::new();
    for _ in 0..100 {
        let mut watch = store.watch(PODS, start).await.expect("watch");
        watchers
            .push(tokio::spawn(async move { collect(&mut watch, 50).await.iter().map(describe).collect::<Vec<_>>() }));
    }
    for n in 0..50 {
        write(&**store, [put(A, &n.to_string())]).await;
    }
    let mut seen = Vec::new();
    for watcher in watchers {
        seen.push(watcher.await.expect("a watcher"));
    }
    assert!(seen.iter().all(|events| *events == seen[0] && events.len() == 50));
}

/// Reads until there are so many events; more is a failure.
async fn collect(watch: &mut Watch, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < count {
        events.extend(in_time(watch.next()).await.expect("events"));
    }
    assert_eq!(events.len(), count);
    events
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), future).await.expect("within half a minute")
}

fn describe(event: &Event) -> (Revision, bool, String, Option<String>) {
    let previous = event.previous.as_ref().map(|entry| text(&entry.json));
    (event.revision, event.deleted, text(&event.entry.json), previous)
}

async fn texts(store: &dyn Backend, prefix: &str) -> Vec<String> {
    store.range(all(prefix)).await.expect("read").entries.iter().map(|entry| text(&entry.json)).collect()
}

async fn keys_of(store: &dyn Backend, range: Range) -> Vec<String> {
    store.range(range).await.expect("read").entries.iter().map(|entry| entry.key.to_string()).collect()
}

fn text(json: &[u8]) -> String {
    String::from_utf8(json.to_vec()).expect("text")
}

#[tokio::test]
async fn an_empty_transaction_is_done_at_once() {
    let store = Memory::new();
    assert_eq!(store.commit(txn([])).await.expect("commit"), Outcome::Done(Revision(0)));
}
