use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fairlead_api::source::{Event, Later, List, Object, Selection, Source, Watch};
use fairlead_api::view::{Namespace, View};
use fairlead_api::{Failure, kinds};
use http::{Request, Response};
use http_body_util::Full;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use super::*;
use crate::Cluster;

/// A source whose watch hands out the events that a test sends.
struct TestSource {
    listed: Vec<Object>,
    events: Mutex<Option<mpsc::UnboundedReceiver<Event>>>,
}

struct TestWatch {
    events: mpsc::UnboundedReceiver<Event>,
    revision: u64,
}

impl Source for TestSource {
    fn list<'a>(&'a self, _: &'a Selection, _: Option<&'a str>) -> Later<'a, Result<List, Failure>> {
        Box::pin(async { Ok(List { objects: self.listed.clone(), revision: 10, more: None }) })
    }

    fn watch<'a>(&'a self, _: &'a Selection, after: u64) -> Later<'a, Result<Box<dyn Watch>, Failure>> {
        let events = self.events.lock().expect("no test panics here").take().expect("one watch");
        Box::pin(async move { Ok(Box::new(TestWatch { events, revision: after }) as Box<dyn Watch>) })
    }
}

impl Watch for TestWatch {
    fn next(&mut self) -> Later<'_, Result<Vec<Event>, Failure>> {
        Box::pin(async {
            let Some(event) = self.events.recv().await else { return std::future::pending().await };
            if let Event::Put(object) = &event {
                self.revision = object.revision;
            }
            Ok(vec![event])
        })
    }

    fn progress(&self) -> u64 {
        self.revision
    }
}

fn namespace(name: &str, revision: u64) -> Object {
    let json = format!(r#"{{"metadata": {{"name": "{name}", "resourceVersion": "{revision}"}}}}"#);
    Object { key: Key::new("", name), revision, json: Bytes::from(json) }
}

/// Reports the revision at which each Namespace is reconciled, and "writes" version 20 of it the first time.
struct TestController {
    reconciled: mpsc::UnboundedSender<(String, u64)>,
    finished: mpsc::UnboundedSender<String>,
    release: Arc<Notify>,
    written: bool,
}

impl Controller for TestController {
    type Key = String;

    fn enqueue(&mut self, cache: &Mirror, changes: &Changes, queue: &mut WorkQueue<String>) {
        assert!(cache.synced());
        for change in changes.of::<Namespace>() {
            queue.add_for_version(change.key.name.to_string(), ObjectVersion::of_change(change));
        }
    }

    fn reconcile(&mut self, cache: &Mirror, key: &String) -> Action {
        let object = cache.get::<Namespace>("", key);
        let revision = object.map_or(0, |object| object.meta().resource_version.parse().expect("a number"));
        self.reconciled.send((key.clone(), revision)).expect("the test listens");
        if std::mem::replace(&mut self.written, true) {
            return Action::None;
        }
        let (release, key) = (self.release.clone(), Key::new("", key.as_str()));
        Action::run(async move {
            release.notified().await;
            let written = vec![ObjectVersion { kind: &kinds::NAMESPACE, key, revision: Some(20) }];
            Outcome { written, ..Outcome::default() }
        })
    }

    fn finished(&mut self, _: &Mirror, key: &String, _: &Outcome, _: &mut WorkQueue<String>) {
        self.finished.send(key.clone()).expect("the test listens");
    }
}

/// Limit for events that take a moment.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_controller_sees_its_own_writes_before_it_reconciles_again() {
    let (send, events) = mpsc::unbounded_channel();
    let source = TestSource { listed: vec![namespace("a", 5)], events: Mutex::new(Some(events)) };
    let service = tower::service_fn(|_: Request<Full<Bytes>>| async {
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let cluster = Cluster::new(service, Arc::new(source));
    let cache = Mirror::builder(&cluster).with::<Namespace>().build();
    let (reconciled, mut reconciliations) = mpsc::unbounded_channel();
    let (finished, mut ends) = mpsc::unbounded_channel();
    let (release, stop) = (Arc::new(Notify::new()), CancellationToken::new());
    let controller = TestController { reconciled, finished, release: release.clone(), written: false };
    let task = tokio::spawn(run(controller, cache, Settings::new("test"), QueueMetrics::none(), stop.clone()));
    let mut next = async || timeout(LIMIT, reconciliations.recv()).await.expect("in time").expect("running");

    assert_eq!(next().await, ("a".to_owned(), 5), "the listed objects are enqueued");
    // Another client changes the object while the action runs: the key is reconciled again, but not before the cache shows
    // what the action wrote.
    send.send(Event::Put(namespace("a", 15))).expect("followed");
    send.send(Event::Put(namespace("b", 16))).expect("followed");
    assert_eq!(next().await, ("b".to_owned(), 16), "other keys go on meanwhile");
    release.notify_one();
    assert_eq!(timeout(LIMIT, ends.recv()).await.expect("in time").as_deref(), Some("a"));
    send.send(Event::Put(namespace("c", 17))).expect("followed");
    assert_eq!(next().await, ("c".to_owned(), 17), "the write of a is not visible yet");
    send.send(Event::Put(namespace("a", 20))).expect("followed");
    send.send(Event::Put(namespace("a", 21))).expect("followed");
    let (key, revision) = next().await;
    assert!(key == "a" && revision >= 20, "{key} at {revision}");
    stop.cancel();
    timeout(LIMIT, task).await.expect("it ends").expect("without a panic");
}

#[tokio::test]
async fn an_action_in_progress_is_completed_when_the_controller_stops() {
    let (_send, events) = mpsc::unbounded_channel();
    let source = TestSource { listed: vec![namespace("a", 5)], events: Mutex::new(Some(events)) };
    let service = tower::service_fn(|_: Request<Full<Bytes>>| async {
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let cluster = Cluster::new(service, Arc::new(source));
    let cache = Mirror::builder(&cluster).with::<Namespace>().build();
    let (reconciled, mut reconciliations) = mpsc::unbounded_channel();
    let (finished, _ends) = mpsc::unbounded_channel();
    let (release, stop) = (Arc::new(Notify::new()), CancellationToken::new());
    let controller = TestController { reconciled, finished, release: release.clone(), written: false };
    let task = tokio::spawn(run(controller, cache, Settings::new("test"), QueueMetrics::none(), stop.clone()));
    timeout(LIMIT, reconciliations.recv()).await.expect("in time");
    stop.cancel();
    tokio::task::yield_now().await;
    assert!(!task.is_finished());
    release.notify_one();
    timeout(LIMIT, task).await.expect("it ends").expect("without a panic");
}
