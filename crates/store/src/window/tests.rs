use std::sync::Arc;

use super::ring::{Limits, Ring};
use super::{Event, Keep, Windows, resource_of};
use crate::{Draft, Entry, Error, Revision};

fn event(key: &str, revision: u64) -> Event {
    let draft = Draft { json: "{\"metadata\":{}}".into(), gap: 13 };
    let entry = Arc::new(Entry::new(key.into(), Revision(revision), &draft));
    Event { revision: Revision(revision), entry, previous: None, deleted: false }
}

#[test]
fn a_key_belongs_to_its_resource() {
    let check = |key, expect| assert_eq!(resource_of(key), expect, "{key}");
    check("/registry/pods/default/web", Some("/registry/pods/"));
    check("/registry/pods/", Some("/registry/pods/"));
    check("/registry/namespaces/default", Some("/registry/namespaces/"));
    check("/registry/services/specs/default/web", Some("/registry/services/specs/"));
    check("/registry/services/endpoints/default/", Some("/registry/services/endpoints/"));
    check("/registry/example.org/widgets/a/b", Some("/registry/example.org/widgets/"));
    check("/registry/services/", None);
    check("/registry/pods", None);
    check("/registry/", None);
    check("", None);
}

#[test]
fn a_ring_is_bounded_by_events_and_by_bytes() {
    let check = |limits, pushed: u64, floor| {
        let mut ring = Ring::new(Revision(0), limits);
        (1..=pushed).for_each(|revision| ring.push(event("/registry/pods/ns/a", revision)));
        assert_eq!(ring.floor(), Revision(floor), "{limits:?}");
        assert!(ring.reaches(Revision(floor)).is_ok());
        assert!(floor == 0 || matches!(ring.reaches(Revision(floor - 1)), Err(Error::Compacted { .. })));
    };
    check(Limits { events: 5, bytes: 1 << 20 }, 5, 0);
    check(Limits { events: 5, bytes: 1 << 20 }, 12, 7);
    check(Limits { events: 1000, bytes: 1500 }, 5, 0);
    check(Limits { events: 1000, bytes: 1500 }, 12, 7);
    check(Limits { events: 1000, bytes: 1 }, 3, 3);
}

#[test]
fn an_old_delete_is_handed_out_as_it_happened_and_kept_once() {
    let mut ring = Ring::new(Revision(0), Limits { events: 1000, bytes: 1 << 20 });
    let created = event("/registry/pods/ns/a", 1);
    let gone = Arc::new(created.entry.at(Revision(2)));
    let made = Arc::downgrade(&gone);
    let previous = Some(created.entry.clone());
    ring.push(created);
    ring.push(Event { revision: Revision(2), entry: gone, previous, deleted: true });
    let check = |ring: &Ring| {
        let found = ring.find("/registry/pods/", Revision(1), Revision(2), 10).expect("it is there");
        let [delete] = &found.events[..] else { panic!("{found:?}") };
        assert!(delete.deleted && delete.revision == Revision(2) && delete.entry.revision == Revision(2));
        assert_eq!(delete.entry.json, "{\"metadata\":{\"resourceVersion\":\"2\",}}");
        assert_eq!(delete.previous.as_ref().map(|entry| entry.revision), Some(Revision(1)));
    };
    check(&ring);
    assert!(made.upgrade().is_some(), "the newest events are at hand");
    (3..300).for_each(|revision| ring.push(event("/registry/pods/ns/b", revision)));
    assert!(made.upgrade().is_none(), "an old delete keeps one object, not two");
    check(&ring);
}

#[tokio::test]
async fn a_watcher_is_not_woken_by_other_resources() {
    let windows = Windows::new(Revision(0), Keep::Everything);
    let mut watch = windows.watch("/registry/services/specs/", Revision(0)).expect("a watch");
    let mut next = by_hand(watch.next());
    assert!(next.poll().is_none());
    windows.publish(vec![event("/registry/pods/ns/a", 1)], Revision(1));
    windows.publish(vec![event("/registry/services/endpoints/ns/a", 2)], Revision(2));
    assert!(!next.woken());
    windows.publish(vec![event("/registry/services/specs/ns/a", 3)], Revision(3));
    assert!(next.woken());
    assert_eq!(next.poll().expect("ready").expect("events").len(), 1);
}

#[tokio::test]
async fn a_slow_watcher_is_told() {
    let windows = Windows::with_limits(Revision(0), Keep::Everything, Limits { events: 2, bytes: 1 << 20 });
    let mut slow = windows.watch("/registry/pods/", Revision(0)).expect("a watch");
    let mut quick = windows.watch("/registry/pods/other/", Revision(0)).expect("a watch");
    for revision in 1..=5 {
        windows.publish(vec![event("/registry/pods/ns/a", revision)], Revision(revision));
        assert!(by_hand(quick.next()).poll().is_none(), "reading moves the cursor though nothing matches");
    }
    assert!(matches!(slow.next().await, Err(Error::Compacted { .. })));
    windows.publish(vec![event("/registry/pods/other/a", 6)], Revision(6));
    assert_eq!(quick.next().await.expect("events").len(), 1);
}

#[tokio::test]
async fn watchers_learn_that_the_store_is_gone() {
    let windows = Windows::new(Revision(0), Keep::Everything);
    let mut watch = windows.watch("/registry/pods/", Revision(0)).expect("a watch");
    drop(windows);
    assert!(matches!(watch.next().await, Err(Error::Unavailable(_))));
}

#[tokio::test]
async fn watchers_learn_that_events_were_missed() {
    let windows = Windows::new(Revision(4), Keep::Watched);
    let mut watch = windows.watch("/registry/pods/", Revision(4)).expect("a watch");
    windows.reset(Revision(9));
    let lost = watch.next().await;
    assert!(matches!(lost, Err(Error::Compacted { oldest: Revision(9), .. })), "{lost:?}");
    assert!(windows.watch("/registry/pods/", Revision(8)).is_err());
    assert!(windows.watch("/registry/pods/", Revision(9)).is_ok());
}

#[test]
fn a_resource_first_watched_while_events_arrive_is_complete_only_after_them() {
    let windows = Windows::new(Revision(1), Keep::Watched);
    let wanted = windows.announce(Revision(5));
    assert!(!wanted("/registry/pods/ns/a"));
    assert!(windows.watch("/registry/pods/", Revision(4)).is_err());
    let watch = windows.watch("/registry/pods/", Revision(5)).expect("a watch");
    windows.publish(Vec::new(), Revision(5));
    assert_eq!(watch.progress(), Revision(5));
    assert!(windows.announce(Revision(6))("/registry/pods/ns/a"));
}

/// A future polled by hand, to see whether it is woken.
struct Polled<F> {
    future: std::pin::Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(std::sync::atomic::AtomicBool);

impl std::task::Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

fn by_hand<F: Future>(future: F) -> Polled<F> {
    Polled { future: Box::pin(future), wakes: Arc::default() }
}

impl<F: Future> Polled<F> {
    fn poll(&mut self) -> Option<F::Output> {
        let waker = self.wakes.clone().into();
        match self.future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }

    fn woken(&self) -> bool {
        self.wakes.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}
