//! `fairlead logs`: what a Pod has said.

use anyhow::Context;
use clap::Args;
use fairlead_cluster::streams::Log;

use super::{Place, pod_name, terminal};

/// The options of `fairlead logs`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogsFlags {
    #[command(flatten)]
    place: Place,
    /// The Pod: NAME or pod/NAME
    #[arg(value_name = "POD", value_parser = pod_name)]
    pod: String,
    /// The container [default: the first]
    #[arg(long, short = 'c', value_name = "NAME")]
    container: Option<String>,
    /// Go on showing what it says
    #[arg(long, short = 'f')]
    follow: bool,
    /// Of the run before this one
    #[arg(long, short = 'p')]
    previous: bool,
    /// The last so many lines
    #[arg(long, value_name = "LINES")]
    tail: Option<i64>,
    /// With the time of each line
    #[arg(long)]
    timestamps: bool,
}

/// Prints the log.
pub(crate) async fn run(flags: LogsFlags) -> anyhow::Result<()> {
    let LogsFlags { place, pod, container, follow, previous, tail, timestamps } = flags;
    let log = Log { container, follow, previous, tail, since_seconds: None, timestamps };
    let text = place.streams().await?.log(&pod, &log).await?;
    terminal::show(text, &mut tokio::io::stdout()).await.context("printing")
}
