//! `fairlead top`: which Services have traffic now, and how is it spread over their endpoints? Two looks at the counters, and
//! what happened between them.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use fairlead_cluster::Cluster;
use http::Method;

use crate::config::METRICS;
use crate::paint::Paint;
use crate::{door, page};
use rates::{Rates, Sample};

mod rates;
mod read;

/// How it is used.
pub(crate) const AFTER_HELP: &str =
    "Examples:\n  fairlead top\n  fairlead top -n shop --endpoints\n  fairlead top --once --sort bytes";
/// Where the server tells what its machine's proxy counted.
const TRAFFIC: &str = "/fairlead/v1/traffic";
/// Home, and away with all below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The options of `fairlead top`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TopFlags {
    /// Services of one namespace alone
    #[arg(long, short = 'n', value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Show endpoints too
    #[arg(long, short = 'e')]
    endpoints: bool,
    /// What has most of it comes first
    #[arg(long, value_name = "COLUMN", value_enum, default_value = "connections")]
    sort: Column,
    /// Show those without traffic too
    #[arg(long)]
    all: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print one table and end, as it does where there is no terminal
    #[arg(long)]
    once: bool,
    /// Where the proxy of this machine has its metrics, for a cluster whose server does not tell
    #[arg(long, value_name = "IP:PORT", default_value = METRICS)]
    metrics: String,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// What to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    Connections,
    Bytes,
    Name,
}

/// Shows tables until interrupted, or one.
pub(crate) async fn run(flags: &TopFlags) -> anyhow::Result<()> {
    let source = Source::find(flags).await?;
    let again = std::io::stdout().is_terminal() && !flags.once;
    let mut before = source.sample().await?;
    loop {
        tokio::time::sleep(Duration::from_secs(flags.interval)).await;
        let now = source.sample().await?;
        let table = Rates::between(&before, &now).table(flags, Paint::stdout());
        let clear = if again { CLEAR } else { "" };
        let mut out = std::io::stdout();
        write!(out, "{clear}{table}").and_then(|()| out.flush()).context("writing the table")?;
        if !again {
            return Ok(());
        }
        before = now;
    }
}

/// Who tells what was counted.
enum Source {
    /// The API server, of its own machine.
    Server(Cluster),
    /// The proxy of this machine.
    Proxy(String),
}

impl Source {
    /// The server, if it tells; else the proxy of this machine.
    async fn find(flags: &TopFlags) -> anyhow::Result<Source> {
        let server = match door::open(flags.kubeconfig.as_deref()).await {
            Ok(cluster) => match cluster.request(Method::GET, TRAFFIC, None).await {
                Ok(_) => return Ok(Source::Server(cluster)),
                Err(error) => anyhow!(error),
            },
            Err(error) => error,
        };
        let proxy = Source::Proxy(flags.metrics.clone());
        match proxy.sample().await {
            Ok(_) => Ok(proxy),
            Err(error) => Err(anyhow!(
                "nobody tells what traffic there is: the API server: {server:#}; the proxy of this machine: {error:#}; \
                 run `fairlead up` or `fairlead proxy` here, or name its --metrics"
            )),
        }
    }

    async fn sample(&self) -> anyhow::Result<Sample> {
        match self {
            Source::Server(cluster) => {
                let answer = cluster.request(Method::GET, TRAFFIC, None).await.context("asking for traffic")?;
                Ok(read::traffic(&answer))
            }
            Source::Proxy(address) => {
                let text = page::get(address, "/metrics").await?;
                Ok(read::metrics(&String::from_utf8_lossy(&text)))
            }
        }
    }
}
