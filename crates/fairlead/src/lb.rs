//! `fairlead lb`: which load balancers there are, how they do and why, and how to take a backend or a Node out.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use fairlead_cluster::Cluster;
use serde_json::Value;

use crate::cli::examples;
use crate::config::PAGE;

mod describe;
mod drain;
mod list;
pub(crate) mod look;

/// Load balancers as `fairlead lb ls -o json` tells them, with what the balancer of this machine knows of each, for the page.
/// The second is why that is not known.
pub(crate) async fn told(cluster: Cluster, page: &str) -> anyhow::Result<(Vec<Value>, Option<String>)> {
    let known = look::Known::within(cluster, page, None, None).await?;
    let told = known.services.iter().map(|service| {
        let mut row = list::Row::of(&known, service).json();
        let balance = known.balance(service).and_then(|balance| serde_json::to_value(balance).ok());
        if let (Some(row), Some(Value::Object(balance))) = (row.as_object_mut(), balance) {
            // What both tell is told as the list tells it.
            for (field, value) in balance {
                row.entry(field).or_insert(value);
            }
        }
        row
    });
    Ok((told.collect(), known.report.as_ref().err().cloned()))
}

/// Which Node answers for which address, as far as the balancer with that page knows.
pub(crate) async fn owners(page: &str) -> Vec<(String, String)> {
    let report = look::report(page).await.unwrap_or_default();
    let owners = report.balancers.into_iter().flat_map(|balance| balance.owners);
    owners.filter_map(|owner| Some((owner.address, owner.node?))).collect()
}

/// The options of `fairlead lb`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LbFlags {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// List load balancers: where they are, who answers for them, how many backends are healthy, and what is wrong
    #[command(after_help = examples::LB_LS)]
    Ls {
        #[command(flatten)]
        place: Place,
        /// The namespace [default: all]
        #[arg(long, short = 'n', value_name = "NAMESPACE")]
        namespace: Option<String>,
        /// As a table or as json
        #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
        output: Output,
    },
    /// Tell everything about a load balancer: what its Service asks for and where that comes from, its backends, its Events
    #[command(after_help = examples::LB_DESCRIBE)]
    Describe {
        #[command(flatten)]
        place: Place,
        /// The namespace
        #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
        namespace: String,
        /// The Service
        #[arg(value_name = "SERVICE")]
        service: String,
        /// As text or as json
        #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
        output: Output,
    },
    /// Take a backend, or all addresses and backends of a Node, out of load balancing; connections they have go on
    #[command(after_help = examples::LB_DRAIN)]
    Drain {
        #[command(flatten)]
        place: Place,
        /// The namespace
        #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
        namespace: String,
        /// The Service
        #[arg(value_name = "SERVICE", required_unless_present = "node")]
        service: Option<String>,
        /// The backend: a Pod, or an address
        #[arg(value_name = "BACKEND", required_unless_present = "node")]
        backend: Option<String>,
        /// A Node, which answers for no address any more
        #[arg(long, value_name = "NODE", conflicts_with_all = ["service", "backend"])]
        node: Option<String>,
        /// Put it in again
        #[arg(long)]
        undo: bool,
    },
}

/// Where to ask.
#[derive(Debug, Clone, Args)]
struct Place {
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the load balancers of this machine say how they do
    #[arg(long, value_name = "IP:PORT", default_value = PAGE)]
    page: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// Does what the options say.
pub(crate) async fn run(flags: LbFlags) -> anyhow::Result<()> {
    match flags.command {
        Command::Ls { place, namespace, output } => list::run(&place, namespace.as_deref(), output).await,
        Command::Describe { place, namespace, service, output } => {
            describe::run(&place, &namespace, name(&service), output).await
        }
        Command::Drain { place, node: Some(node), undo, .. } => drain::node(&place, &node, undo).await,
        Command::Drain { place, namespace, service, backend, undo, .. } => {
            let (service, backend) = (service.unwrap_or_default(), backend.unwrap_or_default());
            drain::backend(&place, &namespace, name(&service), &backend, undo).await
        }
    }
}

/// The name of a Service as people write it: `web`, `svc/web` or `service/web`.
fn name(text: &str) -> &str {
    ["svc/", "service/", "services/"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text)
}
