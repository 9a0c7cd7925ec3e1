//! How a Pod's last traces go: after its containers have ended for good, and after the Pod itself is to go.

use std::fs;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Backoff, Delete, Error, retry};
use tokio::time::timeout;

use super::Worker;
use crate::network::{self, Names};
use crate::shim::pause;
use crate::unit::{Role, State};
use crate::{cgroup, volumes};

/// The last status is not waited for longer.
const LAST_STATUS: Duration = Duration::from_secs(10);

impl Worker {
    /// The Pod is over: what still runs ends, and its network goes. Its status and logs stay.
    pub(super) async fn wind_up(&mut self) {
        // They would only find what the end of the Pod does to its containers.
        self.restarting_probes.clear();
        // An evicted Pod has a second, whatever grace period it asks for
        // (pkg/kubelet/eviction/eviction_manager.go, immediateEvictionGracePeriodSeconds).
        let grace = self.is_evicted().then_some(1);
        let running: Vec<usize> =
            (0..self.record.units.len()).filter(|at| self.record.units[*at].is_running()).collect();
        if grace.is_some() || running.is_empty() {
            self.storage = None;
        }
        for place in &running {
            self.stop(*place, "", grace);
        }
        if running.is_empty() {
            pause::kill(&self.node.folder(self.record.uid()));
        }
        if running.is_empty() && self.network {
            // What was never started never will be.
            self.unplug().await;
        }
    }

    async fn unplug(&mut self) {
        self.node.plugged.lock().await.remove(self.record.uid());
        if !self.record.addresses.is_empty() {
            let names = Names::of(&self.node.settings.data, self.record.uid());
            let done = tokio::task::spawn_blocking(move || network::unplug(&names)).await;
            if let Ok(Err(error)) = done {
                tracing::warn!(%error, "the network of a Pod was not removed");
            }
            self.node.release_addresses(&self.record.addresses);
            self.record.addresses.clear();
        }
        self.network = false;
    }

    /// All containers have ended, and the Pod is to go.
    pub(super) async fn finish(mut self) {
        for unit in self.record.units.iter_mut().filter(|unit| matches!(unit.state, State::Waiting { .. })) {
            unit.ready = false;
        }
        self.set_order();
        let mains = || self.record.units.iter().filter(|unit| unit.role == Role::Main && unit.runs > 0);
        if self.order.over.is_none() && mains().next().is_some() {
            self.order.over = Some(mains().all(|unit| unit.ended().is_some_and(|ended| ended.code == 0)));
            self.order.held_back.clear();
        }
        self.publish();
        self.unplug().await;
        if !self.gone {
            let _ = timeout(LAST_STATUS, self.writer.flush()).await;
            self.delete().await;
        }
        let uid = self.record.uid();
        pause::kill(&self.node.folder(uid));
        cgroup::remove(&self.node.settings.data, uid);
        let _ = fs::remove_dir_all(self.node.logs(&self.pod));
        volumes::unmount(&self.node.folder(uid));
        if let Err(error) = fs::remove_dir_all(self.node.folder(uid)) {
            tracing::debug!(%error, "the state of a Pod was not removed");
        }
        if let Some(user) = self.record.user {
            self.node.release_user(user);
        }
        tracing::info!(pod = self.pod.at("metadata").text("name"), "a Pod has gone");
    }

    /// Tells the API that nothing is left of it.
    async fn delete(&self) {
        let meta = self.pod.at("metadata");
        let how = Delete { uid: Some(meta.text("uid").to_owned()), grace_seconds: Some(0), ..Delete::default() };
        let patient = Backoff { tries: u32::MAX, ..Backoff::default() };
        let delete = || self.node.cluster.delete(&kinds::POD, meta.text("namespace"), meta.text("name"), &how);
        match retry(patient, Error::is_transient, delete).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => tracing::warn!(%error, pod = meta.text("name"), "a Pod that has ended is still in the API"),
        }
    }
}
