//! What happened between two looks, as a table.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Column, TopFlags};
use crate::objects::table;
use crate::paint::{Paint, Tone};

/// What something was counted for. A Service comes before its endpoints.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Of {
    pub(super) namespace: String,
    pub(super) service: String,
    pub(super) port: String,
    pub(super) endpoint: Option<String>,
}

/// Totals since the proxy began. What is not counted in its mode is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) connections: u64,
    /// Bytes to endpoints.
    pub(super) sent: Option<u64>,
    /// Bytes from them.
    pub(super) received: Option<u64>,
}

/// One look.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    at: Instant,
    counts: BTreeMap<Of, Counted>,
}

impl Sample {
    pub(super) fn new(at: Instant) -> Sample {
        Sample { at, counts: BTreeMap::new() }
    }

    pub(super) fn put(&mut self, of: Of, counted: Counted) {
        self.counts.insert(of, counted);
    }

    pub(super) fn entry(&mut self, of: Of) -> &mut Counted {
        self.counts.entry(of).or_default()
    }

    #[cfg(test)]
    pub(super) fn get(&self, of: &Of) -> Option<&Counted> {
        self.counts.get(of)
    }
}

/// What happened a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rate {
    connections: f64,
    sent: Option<f64>,
    received: Option<f64>,
    /// All connections so far.
    total: u64,
}

impl Rate {
    fn between(before: &Counted, now: &Counted, seconds: f64) -> Rate {
        // A proxy that was started again counts from nothing.
        let rate = |before: u64, now: u64| now.checked_sub(before).unwrap_or(now) as f64 / seconds;
        let both = |before: Option<u64>, now: Option<u64>| now.map(|now| rate(before.unwrap_or(0), now));
        Rate {
            connections: rate(before.connections, now.connections),
            sent: both(before.sent, now.sent),
            received: both(before.received, now.received),
            total: now.connections,
        }
    }

    fn bytes(&self) -> f64 {
        self.sent.unwrap_or(0.0) + self.received.unwrap_or(0.0)
    }

    fn is_idle(&self) -> bool {
        self.connections == 0.0 && self.bytes() == 0.0
    }
}

/// What happened between two looks.
pub(super) struct Rates(BTreeMap<Of, Rate>);

impl Rates {
    pub(super) fn between(before: &Sample, now: &Sample) -> Rates {
        let passed = now.at.saturating_duration_since(before.at).max(Duration::from_millis(1)).as_secs_f64();
        let rate = |(of, counted): (&Of, &Counted)| {
            let earlier = before.counts.get(of).copied().unwrap_or_default();
            (of.clone(), Rate::between(&earlier, counted, passed))
        };
        Rates(now.counts.iter().map(rate).collect())
    }

    /// Those asked for, the busiest first.
    pub(super) fn table(&self, flags: &TopFlags, paint: Paint) -> String {
        let asked = |of: &Of| flags.namespace.as_ref().is_none_or(|namespace| of.namespace == *namespace);
        let services =
            self.0.iter().filter(|(of, rate)| of.endpoint.is_none() && asked(of) && (flags.all || !rate.is_idle()));
        let mut services: Vec<(&Of, &Rate)> = services.collect();
        match flags.sort {
            Column::Name => {}
            Column::Connections => services.sort_by(|(_, a), (_, b)| b.connections.total_cmp(&a.connections)),
            Column::Bytes => services.sort_by(|(_, a), (_, b)| b.bytes().total_cmp(&a.bytes())),
        }
        if services.is_empty() {
            return "No Service has traffic.\n".to_owned();
        }
        let head = ["NAMESPACE", "SERVICE", "PORT", "CONNECTIONS/S", "SENT/S", "RECEIVED/S", "CONNECTIONS"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for (of, rate) in services {
            rows.push(cells(of.namespace.clone(), of.service.clone(), of.port.clone(), rate));
            if flags.endpoints {
                rows.extend(self.endpoints_of(of));
            }
        }
        // What was not counted, and what did not happen, is less important.
        table::lines(&rows, paint, |_, cell| match cell {
            "-" | "0.0" | "0 B" => paint.tone(Tone::Faint, cell),
            _ => cell.to_owned(),
        })
    }

    fn endpoints_of<'a>(&'a self, of: &'a Of) -> impl Iterator<Item = Vec<String>> + 'a {
        let same =
            |other: &Of| (&other.namespace, &other.service, &other.port) == (&of.namespace, &of.service, &of.port);
        let endpoints = self.0.range(of..).take_while(move |(other, _)| same(other));
        endpoints.filter_map(|(other, rate)| {
            let at = other.endpoint.as_ref()?;
            Some(cells(String::new(), format!("  {at}"), String::new(), rate))
        })
    }
}

fn cells(namespace: String, service: String, port: String, rate: &Rate) -> Vec<String> {
    let bytes = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), size);
    vec![
        namespace,
        service,
        port,
        format!("{:.1}", rate.connections),
        bytes(rate.sent),
        bytes(rate.received),
        rate.total.to_string(),
    ]
}

/// Bytes as people read them.
fn size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: TopFlags,
    }

    fn of(service: &str, endpoint: Option<&str>) -> Of {
        let endpoint = endpoint.map(str::to_owned);
        Of { namespace: "default".into(), service: service.into(), port: "http".into(), endpoint }
    }

    fn samples() -> (Sample, Sample) {
        let start = Instant::now();
        let mut before = Sample::new(start);
        before.put(of("web", None), Counted { connections: 10, sent: Some(1000), received: Some(0) });
        before.put(of("idle", None), Counted { connections: 7, sent: Some(7), received: Some(7) });
        let mut now = Sample::new(start + Duration::from_secs(2));
        now.put(of("web", None), Counted { connections: 30, sent: Some(5096), received: Some(0) });
        now.put(of("web", Some("10.0.0.1:80")), Counted { connections: 20, sent: None, received: None });
        now.put(of("idle", None), Counted { connections: 7, sent: Some(7), received: Some(7) });
        now.put(of("again", None), Counted { connections: 200, sent: Some(0), received: Some(4 << 20) });
        (before, now)
    }

    #[track_caller]
    fn check(line: &str, wanted: &str) {
        let (before, now) = samples();
        let flags = Line::parse_from(format!("top {line}").split_whitespace()).flags;
        assert_eq!(Rates::between(&before, &now).table(&flags, Paint::NEVER), wanted, "{line}");
    }

    #[test]
    fn the_busiest_come_first_and_the_idle_not_at_all() {
        check(
            "",
            "NAMESPACE   SERVICE   PORT   CONNECTIONS/S   SENT/S    RECEIVED/S   CONNECTIONS\n\
             default     again     http   100.0           0 B       2.0 MiB      200\n\
             default     web       http   10.0            2.0 KiB   0 B          30\n",
        );
    }

    #[test]
    fn endpoints_stand_below_their_service() {
        check(
            "--endpoints --sort name --all",
            "NAMESPACE   SERVICE         PORT   CONNECTIONS/S   SENT/S    RECEIVED/S   CONNECTIONS\n\
             default     again           http   100.0           0 B       2.0 MiB      200\n\
             default     idle            http   0.0             0 B       0 B          7\n\
             default     web             http   10.0            2.0 KiB   0 B          30\n\
             \x20             10.0.0.1:80          10.0            -         -            20\n",
        );
    }

    #[test]
    fn names_of_columns_stand_out_where_somebody_looks() {
        let (before, now) = samples();
        let flags = Line::parse_from(["top"]).flags;
        let table = Rates::between(&before, &now).table(&flags, Paint::ALWAYS);
        assert!(table.starts_with("\u{1b}[1mNAMESPACE\u{1b}[0m   \u{1b}[1mSERVICE\u{1b}[0m   "), "{table:?}");
        assert!(table.contains("\u{1b}[2m0 B\u{1b}[0m       2.0 MiB      200\n"), "{table:?}");
    }

    #[test]
    fn another_namespace_has_nothing() {
        check("-n other", "No Service has traffic.\n");
    }
}
