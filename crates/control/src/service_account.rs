//! The service account controller: every namespace has an account `default`, which Pods have that name none.

use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Error, Event, Selection, Step};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::metrics::QueueMeter;
use crate::queue::Queue;

/// The account.
const DEFAULT: &str = "default";
/// So much is done at a time.
const AT_ONCE: usize = 8;

/// Runs until told to stop.
pub(crate) async fn run(cluster: Cluster, meter: QueueMeter, stop: CancellationToken) {
    let namespaces = cluster.follow(Selection::all(&kinds::NAMESPACE)).map(of_namespaces);
    let accounts = Selection::all(&kinds::SERVICE_ACCOUNT).with_fields(format!("metadata.name={DEFAULT}"));
    let accounts = cluster.follow(accounts).map(of_accounts);
    let mut steps = stream::select(namespaces, accounts);
    let mut queue: Queue<Box<str>> = Queue::new(meter);
    let mut tasks = JoinSet::new();
    loop {
        while tasks.len() < AT_ONCE
            && let Some(namespace) = queue.take()
        {
            let cluster = cluster.clone();
            tasks.spawn(async move { (ensure(&cluster, &namespace).await, namespace) });
        }
        let due = queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            Some(wanting) = steps.next() => wanting.into_iter().for_each(|namespace| queue.add(namespace)),
            Some(ended) = tasks.join_next() => match ended {
                Ok((Ok(()), namespace)) => queue.done(namespace),
                Ok((Err(error), namespace)) => {
                    tracing::warn!(%namespace, %error, "cannot make the account of a namespace");
                    queue.failed(namespace);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

/// Namespaces that may want an account: those that are there and not on their way out.
fn of_namespaces(step: Step) -> Vec<Box<str>> {
    let objects = match step {
        Step::Objects(objects) => objects,
        Step::Changed(events, _) => events.into_iter().filter_map(put).collect(),
        Step::Listing | Step::Listed(_) | Step::Trouble(_) => Vec::new(),
    };
    let active = |json: &[u8]| {
        let namespace: Value = serde_json::from_slice(json).unwrap_or_default();
        namespace.at("metadata").text("deletionTimestamp").is_empty()
    };
    objects.into_iter().filter(|object| active(&object.json)).map(|object| object.key.name).collect()
}

fn put(event: Event) -> Option<fairlead_cluster::Object> {
    match event {
        Event::Put(object) => Some(object),
        Event::Delete(..) => None,
    }
}

/// Namespaces that have lost theirs.
fn of_accounts(step: Step) -> Vec<Box<str>> {
    let Step::Changed(events, _) = step else { return Vec::new() };
    let lost = |event: Event| match event {
        Event::Delete(key, _) => Some(key.namespace),
        Event::Put(_) => None,
    };
    events.into_iter().filter_map(lost).collect()
}

/// Makes the account unless it is there. A namespace that is gone by now needs none.
async fn ensure(cluster: &Cluster, namespace: &str) -> Result<(), Error> {
    let metadata = json!({"name": DEFAULT, "namespace": namespace});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    match cluster.create(&kinds::SERVICE_ACCOUNT, &account).await {
        Err(Error::AlreadyExists(_) | Error::NotFound(_) | Error::Forbidden(_)) => Ok(()),
        other => other.map(drop),
    }
}
