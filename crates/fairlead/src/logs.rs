//! Logs, to standard error.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::LogFormat;

/// Begins to log: our own parts as asked for, those of others only when something is wrong. A second call changes nothing.
pub(crate) fn start(format: LogFormat, level: LevelFilter) {
    // Every request that fails is told of by who sent it, and once.
    let requests = if level >= LevelFilter::DEBUG { LevelFilter::WARN } else { LevelFilter::OFF };
    let filter = Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("fairlead", level);
    let filter = filter.with_target("kube_client::client::builder", requests);
    let logs = tracing_subscriber::registry().with(filter);
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let _ = match format {
        LogFormat::Text => logs.with(layer).try_init(),
        LogFormat::Json => logs.with(layer.json()).try_init(),
    };
}
