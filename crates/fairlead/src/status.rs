//! `fairlead status`: what runs where, and how is it? One screen, from whatever answers; what does not is said.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use fairlead_cluster::Cluster;
use serde::Serialize;

use crate::config::{METRICS, PAGE};
use crate::form::Form;
use crate::paint::Paint;
use crate::{door, explain};
use look::{Leader, NodeState, Part, Tally};

mod look;
mod show;

/// What exit codes mean, and how it is used.
pub(crate) const AFTER_HELP: &str = "It exits with 0 if all is well, with 1 if something is not, and with 2 if no cluster \
                                     answers.\n\nExamples:\n  fairlead status\n  fairlead status -o json";

/// The options of `fairlead status`.
#[derive(Debug, Clone, Args)]
pub(crate) struct StatusFlags {
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the proxy of this machine has its metrics
    #[arg(long, value_name = "IP:PORT", default_value = METRICS)]
    metrics: String,
    /// Where the load balancers of this machine say how they do
    #[arg(long, value_name = "IP:PORT", default_value = PAGE)]
    page: String,
    /// The form of the answer
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value = "text")]
    output: Form,
}

/// Everything that is told.
#[derive(Debug, Clone, Serialize)]
struct Status {
    /// What the API server says it is.
    server: String,
    services: Tally,
    nodes: Vec<NodeState>,
    /// Who writes for a controller of which only one may.
    leaders: Vec<Leader>,
    /// Parts on this machine.
    here: Vec<Part>,
}

impl Status {
    fn is_well(&self) -> bool {
        self.services.broken.is_empty() && self.nodes.iter().all(NodeState::is_well)
    }
}

/// Tells, and says with which code to exit.
pub(crate) async fn run(flags: &StatusFlags) -> i32 {
    match answer(flags).await {
        Ok(well) => i32::from(!well),
        Err(error) => {
            crate::complain(&error);
            2
        }
    }
}

async fn answer(flags: &StatusFlags) -> anyhow::Result<bool> {
    let cluster = door::open(flags.kubeconfig.as_deref()).await?.managed_by("fairlead-status");
    let status = gather(&cluster, flags).await?;
    let text = match flags.output {
        Form::Text => show::text(&status, Paint::stdout()),
        Form::Json => format!("{:#}\n", serde_json::to_value(&status)?),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the answer")?;
    Ok(status.is_well())
}

async fn gather(cluster: &Cluster, flags: &StatusFlags) -> anyhow::Result<Status> {
    let server = look::server(cluster).await?;
    let objects = explain::read::objects(cluster).await?;
    Ok(Status {
        server,
        services: Tally::of(&objects),
        nodes: look::nodes(cluster, &objects).await,
        leaders: look::leaders(cluster).await,
        here: look::here(&flags.metrics, &flags.page).await,
    })
}
