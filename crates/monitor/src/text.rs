//! Metrics as text: OpenMetrics for who asks for it, else the older format, which kube-proxy and CoreDNS write.

use std::borrow::Cow;
use std::fmt::Write;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// A way to write metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The one a client wants most, by its `Accept` header.
    pub fn wanted(accept: &str) -> Format {
        let open = accept.split(',').any(|media| media.trim_start().starts_with("application/openmetrics-text"));
        if open { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// Its media type.
    pub fn media(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All metrics.
pub fn write(registry: &Registry, format: Format) -> String {
    let mut open = String::new();
    // Writing to a String cannot fail.
    let _ = text::encode(&mut open, registry);
    match format {
        Format::OpenMetrics => open,
        Format::Prometheus => older(&open),
    }
}

/// A whole number as the bound of a bucket has no fraction there, and queries compare bounds as texts.
fn whole_bound(line: &str) -> Cow<'_, str> {
    let bound = line.find("{le=\"").and_then(|at| Some((at, line[at..].find(".0\"")? + at)));
    match bound {
        Some((at, end)) if line[at + 5..end].bytes().all(|byte| byte.is_ascii_digit()) => {
            Cow::Owned(format!("{}{}", &line[..end], &line[end + 2..]))
        }
        _ => Cow::Borrowed(line),
    }
}

/// In the older format the name of a counter ends in `_total` wherever it stands, and a text has no end mark.
fn older(open: &str) -> String {
    let mut out = String::with_capacity(open.len());
    let mut lines = open.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else {
            let _ = writeln!(out, "{}", whole_bound(line));
            continue;
        };
        let kind = lines.next_if(|next| next.starts_with("# TYPE ")).and_then(|line| line.rsplit(' ').next());
        let (kind, total) = match kind.unwrap_or("untyped") {
            "counter" => ("counter", "_total"),
            // A [`crate::PlainCounter`].
            "unknown" => ("counter", ""),
            kind => (kind, ""),
        };
        let help = help.strip_suffix('.').unwrap_or(help);
        let _ = writeln!(out, "# HELP {name}{total} {help}\n# TYPE {name}{total} {kind}");
    }
    out
}

#[cfg(test)]
mod tests;
