//! The namespace controller: a Namespace that is deleted is emptied, Pods first, and let go when nothing is left in it.
//!
//! What stands in the way is written into its status, so that `kubectl describe` tells what it waits for.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::view::Namespace;
use fairlead_api::{Look, kinds};
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Backoff, Cluster, Error, Event, Mirror, Selection};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;
use content::{Findings, Waiting};

mod conditions;
mod content;

/// Ours, of the finalizers in a Namespace's spec.
const FINALIZER: &str = "kubernetes";
/// So many namespaces are emptied at a time; others that only wait for something are not counted.
const AT_ONCE: usize = 8;
/// What remains is looked at again soon at first: most things are gone in a moment.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(5), tries: u32::MAX };
/// Objects seldom go alone: once one has gone, a moment is left to the others.
const TOGETHER: Duration = Duration::from_millis(50);
/// A Namespace that changes while it is let go is read again so often.
const TRIES: usize = 5;

/// Runs until told to stop.
pub(crate) async fn run(cluster: Cluster, meter: QueueMeter, stop: CancellationToken) {
    let mut mirror = Mirror::builder(&cluster).with::<Namespace>().build();
    let (mut queue, mut tasks) = (Queue::new(meter), JoinSet::new());
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        while let Some(name) = queue.take() {
            tasks.spawn(finish(cluster.clone(), name, turns.clone()));
        }
        let due = queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            changes = mirror.next() => {
                let changed = changes.of::<Namespace>().iter().filter_map(|change| change.new.as_ref());
                changed.filter(|namespace| is_ours(namespace)).for_each(|namespace| queue.add(namespace.metadata.name.clone()));
            }
            Some(ended) = tasks.join_next() => match ended {
                Ok((name, Ok(()))) => queue.done(name),
                Ok((name, Err(error))) => {
                    tracing::warn!(namespace = name, %error, "a namespace cannot be emptied yet");
                    queue.failed(name);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

fn is_ours(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some() && namespace.spec.finalizers.iter().any(|name| name == FINALIZER)
}

/// Empties a namespace, waits for what takes its time, and lets it go.
async fn finish(cluster: Cluster, name: String, turns: Arc<Semaphore>) -> (String, Result<(), Error>) {
    let mut tries = 0;
    loop {
        let turn = turns.acquire().await.expect("the semaphore is never closed");
        let pass = pass(&cluster, &name).await;
        drop(turn);
        match pass {
            Ok(None) => return (name, Ok(())),
            Ok(Some(waiting)) => wait(&cluster, &name, &waiting, BACKOFF.wait(tries)).await,
            Err(error) => return (name, Err(error)),
        }
        tries += 1;
    }
}

/// Deletes what can be deleted and says so. `None`: there is nothing left to do.
async fn pass(cluster: &Cluster, name: &str) -> Result<Option<Waiting>, Error> {
    let namespace = match cluster.get(&kinds::NAMESPACE, "", name).await {
        Err(Error::NotFound(_)) => return Ok(None),
        other => other?,
    };
    if !holds(&namespace) {
        return Ok(None);
    }
    let findings = content::empty(cluster, name).await;
    let namespace = tell(cluster, namespace, &findings).await;
    match (findings.error, findings.first) {
        (Some(error), _) => Err(error),
        (None, Some(waiting)) => Ok(Some(waiting)),
        (None, None) => release(cluster, namespace).await.map(|()| None),
    }
}

fn holds(namespace: &Value) -> bool {
    !namespace.at("metadata").text("deletionTimestamp").is_empty()
        && namespace.at("spec").texts("finalizers").contains(&FINALIZER)
}

/// Writes into the status how far it is. The work itself does not depend on it.
async fn tell(cluster: &Cluster, mut namespace: Value, findings: &Findings) -> Value {
    let now = format!("{:.0}", Timestamp::now());
    if !conditions::set(namespace.map_mut("status"), findings, &now) {
        return namespace;
    }
    match cluster.update_status(&kinds::NAMESPACE, &namespace).await {
        Ok(written) => written,
        Err(error) => {
            tracing::debug!(namespace = namespace.at("metadata").text("name"), %error, "conditions were not written");
            namespace
        }
    }
}

/// Takes our finalizer off an empty Namespace.
async fn release(cluster: &Cluster, mut namespace: Value) -> Result<(), Error> {
    let name = namespace.at("metadata").text("name").to_owned();
    let mut last = Ok(());
    for _ in 0..TRIES {
        if !holds(&namespace) {
            return Ok(());
        }
        let mut finalizers = namespace.at("spec").list("finalizers").to_vec();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        namespace.map_mut("spec").insert("finalizers".to_owned(), finalizers.into());
        last = match cluster.finalize(&kinds::NAMESPACE, &namespace).await {
            Ok(_) | Err(Error::NotFound(_)) => return Ok(()),
            Err(error) if error.is_conflict() => Err(error),
            Err(error) => return Err(error),
        };
        namespace = match cluster.get(&kinds::NAMESPACE, "", &name).await {
            Err(Error::NotFound(_)) => return Ok(()),
            other => other?,
        };
    }
    last
}

/// Waits until something that was in the way has gone, or for a time if that cannot be seen.
async fn wait(cluster: &Cluster, namespace: &str, waiting: &Waiting, time: Duration) {
    let until = Instant::now() + time;
    if timeout_at(until, gone(cluster, namespace, waiting)).await.is_ok_and(|seen| seen) {
        return sleep(TOGETHER).await;
    }
    sleep_until(until).await;
}

/// Whether an object was seen to go.
async fn gone(cluster: &Cluster, namespace: &str, waiting: &Waiting) -> bool {
    let Some((kind, revision)) = waiting.followable() else { return false };
    let selection = Selection::all(kind).in_namespace(namespace);
    let Ok(mut watch) = cluster.source().watch(&selection, revision).await else { return false };
    loop {
        let Ok(events) = watch.next().await else { return false };
        if events.iter().any(|event| matches!(event, Event::Delete(..))) {
            return true;
        }
    }
}
