//! `fairlead exec`: a command beside a Pod's process, in its namespaces.

use anyhow::bail;
use clap::Args;
use fairlead_cluster::streams::Wanted;

use super::{Place, pod_name, terminal};

/// The options of `fairlead exec`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExecFlags {
    #[command(flatten)]
    place: Place,
    /// The Pod: NAME or pod/NAME
    #[arg(value_name = "POD", value_parser = pod_name)]
    pod: String,
    /// The container [default: the first]
    #[arg(long, short = 'c', value_name = "NAME")]
    container: Option<String>,
    /// Pass what is typed here on to it
    #[arg(long, short = 'i')]
    stdin: bool,
    /// Give it a terminal
    #[arg(long, short = 't')]
    tty: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command. The exit code is its own.
pub(crate) async fn run(flags: ExecFlags) -> anyhow::Result<i32> {
    let tty = flags.tty && terminal::is_one();
    let wanted = Wanted { container: flags.container, stdin: flags.stdin, tty };
    let streams = flags.place.streams().await?;
    let attached = streams.exec(&flags.pod, &flags.command, &wanted).await?;
    match terminal::join(attached, tty).await? {
        Some(ended) => match ended.code {
            Some(code) => Ok(code),
            None => bail!("{}", ended.message),
        },
        None => bail!("the connection to pod/{} broke", flags.pod),
    }
}
