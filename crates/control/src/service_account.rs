//! Creates the ServiceAccount `default` in every namespace. Pods that name no account use it
//! (kubernetes.io/docs/concepts/security/service-accounts).

use fairlead_api::view::{Meta, Namespace, View};
use fairlead_api::{Kind, kinds};
use fairlead_cluster::controller::{Action, Controller, Outcome, Settings, WorkQueue};
use fairlead_cluster::{Changes, Cluster, Error, Mirror, Selection};
use serde_json::json;

/// Name of the account.
const DEFAULT: &str = "default";

pub(crate) const SETTINGS: Settings = Settings { concurrency: 8, ..Settings::new("serviceaccount") };

/// The metadata of a ServiceAccount. No other field is read.
#[derive(serde::Deserialize)]
struct ServiceAccount {
    metadata: Meta,
}

impl View for ServiceAccount {
    const KIND: &'static Kind = &kinds::SERVICE_ACCOUNT;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Caches all namespaces and the accounts called `default`.
pub(crate) fn cache(cluster: &Cluster) -> Mirror {
    let accounts = Selection::all(&kinds::SERVICE_ACCOUNT).with_fields(format!("metadata.name={DEFAULT}"));
    Mirror::builder(cluster).with::<Namespace>().with_only::<ServiceAccount>(accounts).build()
}

pub(crate) struct ServiceAccountController {
    pub(crate) cluster: Cluster,
}

impl Controller for ServiceAccountController {
    /// Name of a namespace.
    type Key = Box<str>;

    fn enqueue(&mut self, _cache: &Mirror, changes: &Changes, queue: &mut WorkQueue<Box<str>>) {
        for change in changes.of::<Namespace>() {
            queue.add(change.key.name.clone());
        }
        // A deleted account is created again.
        for change in changes.of::<ServiceAccount>().iter().filter(|change| change.new.is_none()) {
            queue.add(change.key.namespace.clone());
        }
    }

    fn reconcile(&mut self, cache: &Mirror, namespace: &Box<str>) -> Action {
        let found = cache.get::<Namespace>("", namespace);
        let is_active = found.is_some_and(|object| object.metadata.deletion_timestamp.is_none());
        if !is_active || cache.get::<ServiceAccount>(namespace, DEFAULT).is_some() {
            return Action::None;
        }
        let cluster = self.cluster.clone();
        let metadata = json!({"name": DEFAULT, "namespace": namespace});
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        Action::run(async move {
            match cluster.create(&kinds::SERVICE_ACCOUNT, &account).await {
                // Created by another client, or the namespace is being deleted or gone.
                Err(Error::AlreadyExists(_) | Error::NotFound(_) | Error::Forbidden(_)) => Outcome::unchanged(),
                result => Outcome::of_write(&kinds::SERVICE_ACCOUNT, result),
            }
        })
    }
}
