//! `fairlead ui`: a link to the page that signs a browser in, once.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::Args;
use fairlead_api::Look;
use fairlead_cluster::browse::{Ask, Form};
use fairlead_cluster::{Error, Method};
use serde_json::json;

use crate::door;

/// Where links are made.
const LINKS: &str = "/fairlead/v1/links";
/// What is said beside the link.
pub(crate) const AFTER_HELP: &str = "\
Examples:
  fairlead ui                 a link with which a browser on this machine may look at everything but Secrets
  fairlead ui --write         one with which it may change Services, Pods and Nodes, too
  ssh -L 6443:127.0.0.1:6443 HOST    then open the link of that machine here

A link works once, within ten minutes; the session it begins lasts twelve hours.";

/// The options of `fairlead ui`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UiFlags {
    /// Let the session change things, too
    #[arg(long)]
    write: bool,
    /// Open the link in this machine's browser
    #[arg(long)]
    open: bool,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Prints a link.
pub(crate) async fn run(flags: &UiFlags) -> anyhow::Result<()> {
    let cluster = door::open(flags.kubeconfig.as_deref()).await?.managed_by("fairlead-ui");
    let body = json!({"write": flags.write});
    let ask = Ask { method: &Method::POST, path: LINKS, form: Form::Whole, body: Some(("application/json", &body)) };
    let link = match cluster.ask(ask).await {
        Ok(answer) => answer.body,
        Err(Error::NotFound(_)) => bail!("the API server has no page: it is not Fairlead's, or an older one"),
        Err(error) => return Err(error).context("asking for a link"),
    };
    let server = cluster.url().context("the kubeconfig names no server")?.trim_end_matches('/');
    let url = format!("{server}{}", link.text("path"));
    writeln!(std::io::stdout(), "{url}")?;
    if flags.open { open(&url) } else { Ok(()) }
}

/// Hands the link to the browser people have chosen.
fn open(url: &str) -> anyhow::Result<()> {
    let mut command = Command::new("xdg-open");
    let started = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map(drop).context("--open: no browser can be started with xdg-open; open the link yourself")
}
