//! `fairlead doctor`: is this machine fit to serve Services, and what stands in the way? It looks, changes nothing, and says for
//! whatever is wrong what to do.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::config::Environment;
use crate::form::Form;
use crate::paint::Paint;
use facts::Facts;

mod facts;
mod look;
mod rules;
mod show;
mod sockets;
#[cfg(test)]
mod tests;

/// What exit codes mean, and how it is used.
pub(crate) const AFTER_HELP: &str = "It exits with 0 if nothing stands in the way, with 1 if something does, and with 2 if \
                                     it could not look.\n\nExamples:\n  fairlead doctor\n  fairlead doctor -o json";

/// The options of `fairlead doctor`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorFlags {
    /// Where everything is kept [default: as with up]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The kubeconfig of the cluster whose node ports are looked at [default: as with other commands, if it answers]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The form of the answer
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value = "text")]
    output: Form,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// It could not be looked at.
    Unknown,
    /// Something will not work, or not for everybody.
    Warn,
    /// Services do not work with it.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    /// The part of the machine it is about.
    area: &'static str,
    state: State,
    /// What was found.
    finding: String,
    /// What to do about it: commands, or a sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remedy: Vec<String>,
}

impl Check {
    fn ok(area: &'static str, finding: impl Into<String>) -> Check {
        Check { area, state: State::Ok, finding: finding.into(), remedy: Vec::new() }
    }

    fn note(area: &'static str, finding: impl Into<String>) -> Check {
        Check { state: State::Note, ..Check::ok(area, finding) }
    }

    fn of(area: &'static str, state: State, finding: impl Into<String>, remedy: &[&str]) -> Check {
        Check { area, state, finding: finding.into(), remedy: remedy.iter().map(|&line| line.to_owned()).collect() }
    }
}

/// Looks and tells, and says with which code to exit.
pub(crate) async fn run(flags: DoctorFlags) -> i32 {
    match answer(flags).await {
        Ok(State::Bad) => 1,
        Ok(_) => 0,
        Err(error) => {
            crate::complain(&error);
            2
        }
    }
}

async fn answer(flags: DoctorFlags) -> anyhow::Result<State> {
    let environment = Environment::read();
    let data_dir = flags.data_dir.map_or_else(|| environment.data_dir(), Ok)?;
    let node_ports = look::node_ports(flags.kubeconfig.as_deref()).await;
    let facts = Facts { node_ports, ..look::machine(environment.root, &data_dir)? };
    let checks = rules::check(&facts);
    let text = match flags.output {
        Form::Text => show::text(&checks, Paint::stdout()),
        Form::Json => format!("{:#}\n", json!({"checks": checks, "worst": worst(&checks)})),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the answer")?;
    Ok(worst(&checks))
}

fn worst(checks: &[Check]) -> State {
    checks.iter().map(|check| check.state).max().unwrap_or(State::Ok)
}
