//! Which cluster does somebody mean who types a command? The one they name, or `$KUBECONFIG` does, or that of `fairlead up` on this
//! machine, or kubectl's.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use fairlead_cluster::streams::Streams;
use fairlead_cluster::{Cluster, OpenError};

use crate::config::Environment;
use crate::wire::KUBECONFIG;

/// The door to the cluster; `said` is the kubeconfig they name.
pub(crate) async fn open(said: Option<&Path>) -> anyhow::Result<Cluster> {
    Cluster::connect(kubeconfig(said).as_deref()).await.map_err(explained)
}

/// The way to the Pods of a namespace of it.
pub(crate) async fn streams(said: Option<&Path>, namespace: &str) -> anyhow::Result<Streams> {
    Streams::connect(kubeconfig(said).as_deref(), namespace).await.map_err(explained)
}

/// The kubeconfig to use; `None`: as kubectl finds it.
fn kubeconfig(said: Option<&Path>) -> Option<PathBuf> {
    if let Some(file) = said {
        return Some(file.to_owned());
    }
    if std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty()) {
        return None;
    }
    let own = Environment::read().data_dir().ok()?.join(KUBECONFIG);
    // One that only others may read is not meant.
    File::open(&own).is_ok().then_some(own)
}

fn explained(error: OpenError) -> anyhow::Error {
    let advice = match error {
        OpenError::Nowhere(_) => "; run `fairlead up` on this machine, or name the cluster's",
        _ => "",
    };
    anyhow!("--kubeconfig: {error}{advice}")
}
