//! What happens to the history when the program ends and begins again, when changes are missed, and when the store is another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlead_api::source::{Later, List, Selection, Source, Watch};
use fairlead_api::{Failure, kinds};
use fairlead_history::{Bounds, Happened, Item, Wish};
use fairlead_server::Local;
use serde_json::json;
use tempfile::TempDir;

use crate::house::{House, ROOMY, local};

fn gaps(items: &[Item]) -> usize {
    items.iter().filter(|item| item.change == Happened::Gap).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_goes_on_where_the_last_run_ended_and_misses_nothing() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    house.make("web").await;
    kept.settled(&house).await;
    kept.end();
    // Nobody keeps the history of these.
    house.retarget("web", json!(1)).await;
    house.retarget("web", json!(2)).await;
    house.make("late").await;
    let kept = house.keep(dir.path(), ROOMY).await;
    house.retarget("web", json!(3)).await;
    let timeline = kept.until("svc/default/web", |items| items.len() == 4).await;
    let lines: Vec<&str> = timeline.items.iter().map(|item| item.lines[0].as_str()).collect();
    let path = "spec.ports[0].targetPort";
    assert_eq!(lines[..3], [format!("{path}: 2 -> 3"), format!("{path}: 1 -> 2"), format!("{path}: 9376 -> 1")]);
    assert_eq!(gaps(&timeline.items), 0);
    assert!(timeline.items[1].late && timeline.items[2].late && !timeline.items[3].late, "{timeline:#?}");
    kept.until("svc/default/late", |items| items.len() == 1).await;
    kept.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stands_in_an_older_file_is_not_told_again() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let small = Bounds { size: 64 << 10, ..ROOMY };
    let kept = house.keep(dir.path(), small).await;
    kept.settled(&house).await;
    // Another file is begun before a mark covers them.
    for round in 0..40 {
        house.make(&format!("brief-{round}")).await;
        house.remove(&kinds::SERVICE, &format!("brief-{round}")).await;
    }
    kept.settled(&house).await;
    kept.end();
    let files = std::fs::read_dir(dir.path()).expect("it is there").flatten();
    assert!(files.filter(|file| file.path().extension().is_some_and(|end| end == "history")).count() > 1);
    let kept = house.keep(dir.path(), small).await;
    kept.settled(&house).await;
    let all = kept.history.timeline(Wish { subject: None, since: None, limit: 1000 }).await.expect("an answer");
    for round in 0..40 {
        let name = format!("brief-{round}");
        let told: Vec<Happened> = all.items.iter().filter(|item| item.name == name).map(|item| item.change).collect();
        assert_eq!(told, [Happened::Deleted, Happened::Created], "{name}");
    }
    kept.end();
}

/// A source that once says that changes were missed.
struct Forgetful {
    inner: Local,
    forgets: AtomicBool,
}

impl Source for Forgetful {
    fn list<'a>(&'a self, selection: &'a Selection, more: Option<&'a str>) -> Later<'a, Result<List, Failure>> {
        self.inner.list(selection, more)
    }

    fn watch<'a>(&'a self, selection: &'a Selection, after: u64) -> Later<'a, Result<Box<dyn Watch>, Failure>> {
        if *selection.kind == kinds::SERVICE && self.forgets.swap(false, Ordering::Relaxed) {
            return Box::pin(async { Err(Failure::new(410, "Expired", "too old")) });
        }
        self.inner.watch(selection, after)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_store_no_longer_has_is_a_gap_and_the_difference_is_told() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    house.make("web").await;
    house.make("gone").await;
    kept.settled(&house).await;
    kept.end();
    house.retarget("web", json!(1)).await;
    house.retarget("web", json!(2)).await;
    house.remove(&kinds::SERVICE, "gone").await;
    let forgetful = Forgetful { inner: local(&house.server), forgets: AtomicBool::new(true) };
    let kept = house.keep_from(dir.path(), ROOMY, Arc::new(forgetful)).await;
    let timeline = kept.until("svc/default/web", |items| items.len() >= 3).await;
    assert_eq!(gaps(&timeline.items), 1, "{timeline:#?}");
    let told: Vec<&str> = timeline.items.iter().flat_map(|item| item.lines.iter().map(String::as_str)).collect();
    assert!(told.contains(&"spec.ports[0].targetPort: 9376 -> 2"), "{told:#?}");
    let gone = kept.until("svc/default/gone", |items| items.iter().any(|item| item.change == Happened::Deleted)).await;
    assert!(gone.items.iter().any(|item| item.late));
    kept.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_of_another_cluster_is_not_mixed_with_ours() {
    let dir = TempDir::new().expect("a directory");
    let house = House::new().await;
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    house.make("theirs").await;
    kept.until("svc/default/theirs", |items| !items.is_empty()).await;
    kept.end();
    let house = House::new().await;
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    let timeline = kept.until("svc/default/theirs", |_| true).await;
    assert!(timeline.items.is_empty(), "{timeline:#?}");
    kept.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_tail_is_caught_up_with_from_the_store() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    house.make("web").await;
    for port in 1..20 {
        house.retarget("web", json!(port)).await;
    }
    kept.settled(&house).await;
    kept.end();
    let file = std::fs::read_dir(dir.path()).expect("it is there").flatten().map(|entry| entry.path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|it| it == "history")).expect("a file");
    let bytes = std::fs::read(&file).expect("it is there");
    std::fs::write(&file, &bytes[..bytes.len() * 3 / 4]).expect("cut");
    let kept = house.keep(dir.path(), ROOMY).await;
    house.retarget("web", json!(99)).await;
    let timeline =
        kept.until("svc/default/web", |items| items.first().is_some_and(|item| item.lines[0].ends_with("-> 99")));
    let timeline = timeline.await;
    assert_eq!(timeline.items[0].lines, ["spec.ports[0].targetPort: 19 -> 99"], "{timeline:#?}");
    kept.end();
}
