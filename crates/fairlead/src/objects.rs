//! Objects from the command line, for machines without kubectl: `fairlead get`, `describe`, `apply`, `delete`, `watch` and `events`.
//! They work with our API server and with any other of Kubernetes.

use std::path::PathBuf;

use clap::Args;
use fairlead_cluster::Cluster;

use crate::door;
pub(crate) use apply::ApplyFlags;
pub(crate) use delete::DeleteFlags;
pub(crate) use describe::DescribeFlags;
pub(crate) use events::EventsFlags;
pub(crate) use get::GetFlags;
pub(crate) use watch::WatchFlags;

pub(crate) mod apply;
mod asked;
mod columns;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod events;
pub(crate) mod get;
mod kinds;
mod manifest;
mod print;
mod progress;
pub(crate) mod table;
pub(crate) mod watch;
pub(crate) mod yaml;

/// Where objects are.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// The namespace [default: the kubeconfig's, else default]
    #[arg(long, short = 'n', value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl Place {
    /// The cluster.
    pub(crate) async fn cluster(&self) -> anyhow::Result<Cluster> {
        door::open(self.kubeconfig.as_deref()).await
    }

    /// The namespace that is meant.
    pub(crate) fn namespace(&self, cluster: &Cluster) -> String {
        self.namespace.clone().unwrap_or_else(|| cluster.namespace().to_owned())
    }
}

/// Which of the objects of a kind.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Selectors {
    /// Only objects whose labels match: app=web, 'tier in (a,b)'
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// Only objects whose fields match: metadata.name=web
    #[arg(long, value_name = "FIELDS")]
    pub(crate) field_selector: Option<String>,
}
