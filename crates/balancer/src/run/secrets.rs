//! Where certificates in Secrets come from: all of them are followed, or, on machines that may not read all, those that load
//! balancers name are asked for now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::Key;
use fairlead_cluster::{Cluster, Error, Mirror};
use tokio::time::{Instant, sleep_until};

use super::Provisioning;
use crate::provision::certificates;
use crate::tls::{Secret, Secrets};

/// How often Secrets that cannot be followed are asked for.
const ASK: Duration = Duration::from_secs(5);

/// Secrets with certificates.
pub(super) enum Store {
    /// All there are.
    Followed(Box<Mirror>),
    /// Those that are named.
    Asked(Asked),
}

/// Secrets that are asked for one by one.
pub(super) struct Asked {
    cluster: Cluster,
    wanted: BTreeSet<Key>,
    known: BTreeMap<Key, Arc<Secret>>,
    next: Instant,
}

impl Store {
    /// Those that whoever has such a part in the cluster may read.
    pub(super) fn new(cluster: &Cluster, part: Provisioning) -> Store {
        match part {
            Provisioning::Here | Provisioning::Elected => {
                Store::Followed(Box::new(Mirror::builder(cluster).with_only::<Secret>(certificates()).build()))
            }
            Provisioning::Elsewhere => Store::Asked(Asked {
                cluster: cluster.clone(),
                wanted: BTreeSet::new(),
                known: BTreeMap::new(),
                next: Instant::now() + ASK,
            }),
        }
    }

    /// These are named by load balancers.
    pub(super) fn want(&mut self, wanted: impl FnOnce() -> BTreeSet<Key>) {
        let Store::Asked(asked) = self else { return };
        let wanted = wanted();
        if wanted != asked.wanted {
            asked.known.retain(|key, _| wanted.contains(key));
            (asked.wanted, asked.next) = (wanted, Instant::now());
        }
    }

    /// Waits until some are others. A call that is dropped before it is ready has lost nothing.
    pub(super) async fn next(&mut self) {
        match self {
            Store::Followed(mirror) => drop(mirror.next().await),
            Store::Asked(asked) => asked.next().await,
        }
    }
}

impl Asked {
    async fn next(&mut self) {
        loop {
            if self.wanted.is_empty() {
                std::future::pending::<()>().await;
            }
            sleep_until(self.next).await;
            let mut found = BTreeMap::new();
            for key in &self.wanted {
                if let Some(secret) = self.ask(key).await {
                    found.insert(key.clone(), secret);
                }
            }
            self.next = Instant::now() + ASK;
            let version = |secret: &Arc<Secret>| secret.metadata.resource_version.clone();
            if !found
                .iter()
                .map(|(key, one)| (key, version(one)))
                .eq(self.known.iter().map(|(key, one)| (key, version(one))))
            {
                self.known = found;
                return;
            }
        }
    }

    /// One that cannot be asked for at the moment is as it was.
    async fn ask(&self, key: &Key) -> Option<Arc<Secret>> {
        match self.cluster.get(&kinds::SECRET, &key.namespace, &key.name).await {
            Ok(object) => serde_json::from_value(object).ok().map(Arc::new),
            Err(Error::NotFound(_)) => None,
            Err(error) => {
                tracing::debug!(secret = %key, %error, "a certificate cannot be read");
                self.known.get(key).cloned()
            }
        }
    }
}

impl Secrets for Store {
    fn secret(&self, key: &Key) -> Option<Arc<Secret>> {
        match self {
            Store::Followed(mirror) => mirror.secret(key),
            Store::Asked(asked) => asked.known.secret(key),
        }
    }

    fn secrets_in(&self, namespace: &str) -> Vec<Arc<Secret>> {
        match self {
            Store::Followed(mirror) => mirror.secrets_in(namespace),
            Store::Asked(asked) => asked.known.secrets_in(namespace),
        }
    }
}
