//! The publisher of the certificate authority: every namespace has a ConfigMap `kube-root-ca.crt`,
//! by which Pods know the API server. kube-controller-manager's
//! `root-ca-certificate-publisher-controller` (pkg/controller/certificates/rootcacertpublisher).

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Cluster, Error, Event, Selection, Step};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;

/// Name of the ConfigMap.
const NAME: &str = "kube-root-ca.crt";
/// Key of the certificates in the ConfigMap.
const CERTIFICATES: &str = "ca.crt";
/// Annotation that tells readers what the ConfigMap is for.
const ANNOTATION: &str = "kubernetes.io/description";
/// Value of the annotation, as kube-controller-manager writes it.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal \
    service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
/// Maximum number of namespaces that are written to at the same time.
const AT_ONCE: usize = 8;

/// Keeps the ConfigMap in every namespace until told to stop. `certificates` are in PEM.
pub(crate) async fn run(cluster: Cluster, certificates: String, meter: QueueMeter, stop: CancellationToken) {
    let certificates: Arc<str> = certificates.into();
    let namespaces = cluster.follow(Selection::all(&kinds::NAMESPACE)).map(active_namespaces);
    let maps = Selection::all(&kinds::CONFIG_MAP).with_fields(format!("metadata.name={NAME}"));
    let maps = cluster.follow(maps).map({
        let certificates = certificates.clone();
        move |step| namespaces_to_restore(step, &certificates)
    });
    let mut steps = stream::select(namespaces, maps);
    let mut queue: Queue<Box<str>> = Queue::new(meter);
    let mut tasks = JoinSet::new();
    loop {
        while tasks.len() < AT_ONCE
            && let Some(namespace) = queue.take()
        {
            let cluster = cluster.clone();
            let certificates = certificates.clone();
            tasks.spawn(async move { (publish(&cluster, &namespace, &certificates).await, namespace) });
        }
        let due = queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            Some(changed) = steps.next() => changed.into_iter().for_each(|namespace| queue.add(namespace)),
            Some(ended) = tasks.join_next() => match ended {
                Ok((Ok(()), namespace)) => queue.done(namespace),
                Ok((Err(error), namespace)) => {
                    tracing::warn!(%namespace, %error, "cannot publish the certificate authority in a namespace");
                    queue.failed(namespace);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

/// Returns the namespaces that a step lists or changes, without those that are being deleted.
fn active_namespaces(step: Step) -> Vec<Box<str>> {
    let put = |event| match event {
        Event::Put(object) => Some(object),
        Event::Delete(..) => None,
    };
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

/// Returns the namespaces whose ConfigMap was deleted, or says something else than it should.
fn namespaces_to_restore(step: Step, certificates: &str) -> Vec<Box<str>> {
    let Step::Changed(events, _) = step else { return Vec::new() };
    let to_restore = |event| match event {
        Event::Delete(key, _) => Some(key.namespace),
        Event::Put(object) => {
            let map: Value = serde_json::from_slice(&object.json).unwrap_or_default();
            (!is_published(&map, certificates)).then_some(object.key.namespace)
        }
    };
    events.into_iter().filter_map(to_restore).collect()
}

/// Returns true if a ConfigMap holds the certificates, nothing else, and a description. Whatever
/// the description says counts, as in kube-controller-manager.
fn is_published(map: &Value, certificates: &str) -> bool {
    let data = map.map("data");
    data.is_some_and(|data| data.len() == 1)
        && map.at("data").text(CERTIFICATES) == certificates
        && !map.at("metadata").at("annotations").text(ANNOTATION).is_empty()
}

/// Makes the ConfigMap of a namespace, or restores it.
async fn publish(cluster: &Cluster, namespace: &str, certificates: &str) -> Result<(), Error> {
    let mut map = match cluster.get(&kinds::CONFIG_MAP, namespace, NAME).await {
        Ok(map) => map,
        Err(Error::NotFound(_)) => {
            let metadata = json!({"name": NAME, "namespace": namespace, "annotations": {ANNOTATION: DESCRIPTION}});
            let data = json!({CERTIFICATES: certificates});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
            return match cluster.create(&kinds::CONFIG_MAP, &map).await {
                // A namespace that is gone, or going, needs none.
                Err(Error::NotFound(_)) => Ok(()),
                Err(error) if error.is_namespace_terminating() => Ok(()),
                // Somebody else made one: the watch brings it.
                Err(Error::AlreadyExists(_)) => Ok(()),
                other => other.map(drop),
            };
        }
        Err(error) => return Err(error),
    };
    if is_published(&map, certificates) {
        return Ok(());
    }
    map.set("data", json!({CERTIFICATES: certificates}));
    let mut all = map.at("metadata").map("annotations").cloned().unwrap_or_default();
    all.insert(ANNOTATION.to_owned(), DESCRIPTION.into());
    if let Some(metadata) = map.get_mut("metadata") {
        metadata.set("annotations", Value::Object(all));
    }
    // With the resourceVersion that was read: a conflict means that the watch brings it again.
    cluster.update(&kinds::CONFIG_MAP, &map).await.map(drop)
}
