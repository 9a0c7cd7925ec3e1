//! Logs, to standard error.

use tracing_subscriber::filter::LevelFilter;

use crate::config::LogFormat;

/// Begins to log. A second call changes nothing.
pub(crate) fn start(format: LogFormat, level: LevelFilter) {
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level);
    let _ = match format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().try_init(),
    };
}
