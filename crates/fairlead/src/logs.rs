//! Logs, to standard error; and, where somebody follows changes on their way, what is said of them.

use std::io::IsTerminal;
use std::sync::OnceLock;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::LogFormat;
use crate::telemetry::{self, Endpoint};

/// The form that was asked for.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// Whether whatever is said must be for programs.
pub(crate) fn are_for_programs() -> bool {
    FORMAT.get() == Some(&LogFormat::Json)
}

/// Begins to log: our own parts as asked for, those of others only when something is wrong. A second call changes nothing.
pub(crate) fn start(format: LogFormat, level: LevelFilter, traces: Option<Endpoint>) {
    let _ = FORMAT.set(format);
    // Every request that fails is told of by who sent it, and once.
    let requests = if level >= LevelFilter::DEBUG { LevelFilter::WARN } else { LevelFilter::OFF };
    let filter = Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("fairlead", level);
    let filter = filter.with_target("kube_client::client::builder", requests);
    let filter = filter.with_target(telemetry::TARGET, LevelFilter::OFF);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let passages = traces.map(|endpoint| {
        telemetry::follow(endpoint).with_filter(Targets::new().with_target(telemetry::TARGET, LevelFilter::TRACE))
    });
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).with(passages).try_init();
}
