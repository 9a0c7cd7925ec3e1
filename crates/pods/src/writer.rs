//! Writes a Pod's status, the newest there is, for as long as it takes: a slow API must not keep a Pod from being restarted.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Error, Patch};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long to wait after a write that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// The status of one Pod on its way.
pub(crate) struct Writer {
    wanted: watch::Sender<Arc<Value>>,
    written: watch::Receiver<Arc<Value>>,
    task: JoinHandle<()>,
}

impl Writer {
    /// For a Pod with this metadata.
    pub(crate) fn new(cluster: &Cluster, pod: &Value) -> Writer {
        let nothing = Arc::new(Value::Null);
        let (wanted, wants) = watch::channel(nothing.clone());
        let (done, written) = watch::channel(nothing);
        let task = tokio::spawn(write_all(cluster.clone(), pod.at("metadata").clone(), wants, done));
        Writer { wanted, written, task }
    }

    /// This is the status now. Nothing is written if it was before.
    pub(crate) fn set(&self, status: Value) {
        self.wanted.send_if_modified(|known| {
            let news = **known != status;
            if news {
                *known = Arc::new(status);
            }
            news
        });
    }

    /// Writes it once more, though it is the same.
    pub(crate) fn again(&self) {
        if *self.wanted.borrow() == *self.written.borrow() && !self.wanted.borrow().is_null() {
            self.wanted.send_modify(|_| {});
        }
    }

    /// Waits until what was set last is written.
    pub(crate) async fn flush(&mut self) {
        loop {
            let (wanted, written) = (self.wanted.borrow().clone(), self.written.borrow_and_update().clone());
            if wanted == written || self.written.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn write_all(
    cluster: Cluster,
    meta: Value,
    mut wants: watch::Receiver<Arc<Value>>,
    done: watch::Sender<Arc<Value>>,
) {
    while wants.changed().await.is_ok() {
        let mut status = wants.borrow_and_update().clone();
        while let Err(error) = write(&cluster, &meta, &status).await {
            if error.is_not_found() || error.is_conflict() {
                // The Pod is gone, or another has its name: there is nobody to tell about.
                break;
            }
            if error.is_transient() {
                tracing::debug!(%error, pod = meta.text("name"), "the status of a Pod was not written");
            } else {
                tracing::warn!(%error, pod = meta.text("name"), "the status of a Pod was refused");
            }
            tokio::time::sleep(AGAIN).await;
            status = wants.borrow_and_update().clone();
        }
        done.send_replace(status);
    }
}

async fn write(cluster: &Cluster, meta: &Value, status: &Value) -> Result<(), Error> {
    // With the uid: another Pod of that name has a status of its own.
    let patch = Patch::Strategic(json!({"metadata": {"uid": meta.text("uid")}, "status": status}));
    cluster.patch_status(&kinds::POD, meta.text("namespace"), meta.text("name"), &patch).await.map(drop)
}
