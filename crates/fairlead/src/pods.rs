//! Pods from the command line: `fairlead run`, `ps`, `logs`, `exec` and `stop`. They are clients of the API like any other.

use std::path::PathBuf;

use clap::Args;
use fairlead_api::{Look, kinds};
use fairlead_cluster::streams::Streams;
use fairlead_cluster::{Cluster, Event, Selection, Step};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;

use crate::door;
pub(crate) use exec::ExecFlags;
pub(crate) use list::PsFlags;
pub(crate) use logs::LogsFlags;
pub(crate) use manifest::RunFlags;
pub(crate) use stop::StopFlags;

pub(crate) mod exec;
pub(crate) mod list;
pub(crate) mod logs;
mod manifest;
pub(crate) mod run;
pub(crate) mod stop;
mod terminal;

/// Where Pods are.
#[derive(Debug, Clone, Args)]
pub(crate) struct Place {
    /// The namespace
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    pub(crate) namespace: String,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl Place {
    async fn cluster(&self) -> anyhow::Result<Cluster> {
        Ok(door::open(self.kubeconfig.as_deref()).await?.managed_by("fairlead-run"))
    }

    async fn streams(&self) -> anyhow::Result<Streams> {
        door::streams(self.kubeconfig.as_deref(), &self.namespace).await
    }

    fn pod(&self, name: &str) -> Selection {
        Selection::all(&kinds::POD).in_namespace(&self.namespace).with_fields(format!("metadata.name={name}"))
    }
}

/// The name of a Pod as people write it: `web-1`, `pod/web-1` or `pods/web-1`.
fn pod_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("pod/").or_else(|| text.strip_prefix("pods/")).unwrap_or(text);
    if name.is_empty() || name.contains('/') { Err("want NAME or pod/NAME".to_owned()) } else { Ok(name.to_owned()) }
}

/// Follows one Pod: as it is, as it becomes, `None` once it is gone.
fn follow(cluster: &Cluster, selection: Selection) -> BoxStream<'static, Option<Value>> {
    let mut seen = false;
    let steps = cluster.follow(selection).flat_map(move |step| {
        let read = |json: &[u8]| serde_json::from_slice(json).ok();
        let states: Vec<Option<Value>> = match step {
            Step::Listing => {
                seen = false;
                Vec::new()
            }
            Step::Objects(objects) => {
                seen |= !objects.is_empty();
                objects.iter().filter_map(|object| read(&object.json)).map(Some).collect()
            }
            Step::Listed(_) if !seen => vec![None],
            Step::Changed(events, _) => events
                .iter()
                .filter_map(|event| match event {
                    Event::Put(object) => read(&object.json).map(Some),
                    Event::Delete(..) => Some(None),
                })
                .collect(),
            Step::Listed(_) | Step::Trouble(_) => Vec::new(),
        };
        futures_util::stream::iter(states)
    });
    steps.boxed()
}

/// The state of the first container: `waiting`, `running` or `terminated`, with what is in it.
fn state(pod: &Value) -> (&'static str, &Value) {
    let state = pod.at("status").list("containerStatuses").first().map_or(&Value::Null, |status| status.at("state"));
    let found = ["terminated", "running", "waiting"].into_iter().find(|name| !state.at(name).is_null());
    found.map_or(("waiting", &Value::Null), |name| (name, state.at(name)))
}
