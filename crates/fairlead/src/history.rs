//! `fairlead history`: what became of a Service, of its endpoints and Pods, newest first; or what was there at a time.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use fairlead_api::kinds;
use fairlead_cluster::{Cluster, Error, Method, encode};
use jiff::{Timestamp, Zoned};
use serde_json::Value;

use crate::form::Form;
use crate::paint::Paint;
use crate::{door, subject};

pub(crate) mod answer;
pub(crate) mod difference;
mod show;
#[cfg(test)]
mod tests;
mod times;
mod unified;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fairlead history svc/web                      what became of Service web, its endpoints and Pods
  fairlead history svc/web --since 1h           in the last hour
  fairlead history svc/web --at 12:03:07        which endpoints were in rotation then, and the Service as it was
  fairlead history pod/web-1 -n shop -o json
  fairlead history --limit 20                   whatever happened last in the cluster

The server keeps the last 64Mi or 24h of changes: --history-size and --history-age of `fairlead up`.";

/// The options of `fairlead history`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HistoryFlags {
    /// Whose past: svc/NAME, pod/NAME, node/NAME, or a name alone for a Service [default: everything]
    #[arg(value_name = "OBJECT", num_args = 0..)]
    subject: Vec<String>,
    /// Its namespace
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// Nothing older: a duration such as 10m, or a time such as 12:03:07 or 2026-01-31T12:03:07Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// What was there at this time, instead of what happened: a time, or a duration ago
    #[arg(long, value_name = "TIME", conflicts_with_all = ["since", "limit"], requires = "subject")]
    at: Option<String>,
    /// The most that is shown
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
    /// The form of the answer
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value = "text")]
    output: Form,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Answers.
pub(crate) async fn run(flags: &HistoryFlags) -> anyhow::Result<()> {
    let now = Zoned::now();
    let whose = match flags.subject.is_empty() {
        true => None,
        false => Some(whose(&flags.subject, &flags.namespace)?),
    };
    let at = flags.at.as_ref().map(|at| times::read(at, &now).map_err(|why| anyhow!("--at: {why}"))).transpose()?;
    let since = flags.since.as_ref().map(|since| times::read(since, &now).map_err(|why| anyhow!("--since: {why}")));
    let since = since.transpose()?;
    let cluster = door::open(flags.kubeconfig.as_deref()).await?.managed_by("fairlead-history");
    let answer = match (&whose, at) {
        (Some(whose), Some(at)) => moment(&cluster, whose, Some(at)).await?,
        _ => timeline(&cluster, whose.as_deref(), since, flags.limit).await?,
    };
    let text = match flags.output {
        Form::Json => format!("{answer:#}\n"),
        Form::Text if at.is_some() => show::moment(&answer, now.time_zone(), Paint::stdout()),
        Form::Text => show::timeline(&answer, whose.as_deref(), now.time_zone(), Paint::stdout()),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the answer")
}

/// `svc/default/web` for what somebody typed.
fn whose(words: &[String], namespace: &str) -> anyhow::Result<String> {
    let meant = subject::one(words, &subject::known(), Some(&kinds::SERVICE))?;
    let namespace = meant.namespace.as_deref().unwrap_or(namespace);
    let kind = &meant.resource.name;
    let text = match meant.resource.namespaced {
        true => format!("{kind}/{namespace}/{}", meant.name),
        false => format!("{kind}/{}", meant.name),
    };
    let known: fairlead_history::Subject = text.parse().map_err(|why: String| anyhow!("{why}"))?;
    Ok(known.to_string())
}

async fn timeline(
    cluster: &Cluster,
    whose: Option<&str>,
    since: Option<Timestamp>,
    limit: usize,
) -> anyhow::Result<Value> {
    let mut path = format!("{}?limit={limit}", answer::TIMELINE);
    if let Some(whose) = whose {
        path.push_str(&format!("&subject={}", encode(whose)));
    }
    if let Some(since) = since {
        path.push_str(&format!("&since={}", encode(&since.to_string())));
    }
    cluster.request(Method::GET, &path, None).await.map_err(explained)
}

/// What was there at a time; `None`: what is there now.
async fn moment(cluster: &Cluster, whose: &str, at: Option<Timestamp>) -> anyhow::Result<Value> {
    let at = at.map_or_else(|| "now".to_owned(), |at| at.to_string());
    let path = format!("{}?subject={}&at={}", answer::MOMENT, encode(whose), encode(&at));
    cluster.request(Method::GET, &path, None).await.map_err(explained)
}

/// A server that knows nothing of it is most likely not Fairlead's.
fn explained(error: Error) -> anyhow::Error {
    match &error {
        Error::NotFound(failure) if !failure.message.contains("history") => {
            anyhow::Error::new(error).context("this API server keeps no history; Fairlead's does")
        }
        _ => error.into(),
    }
}
