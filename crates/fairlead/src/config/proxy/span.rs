//! Durations as Go reads and writes them: `15m0s`, `1h30m`, `250ms`, `-5s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// A duration in nanoseconds. It may be negative, so that the mistake can be told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span(i64);

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;

impl Span {
    pub(super) const ZERO: Span = Span(0);

    pub(super) const fn seconds(seconds: i64) -> Span {
        Span(seconds * SECOND)
    }

    /// Nothing below zero.
    pub(super) fn duration(self) -> Duration {
        Duration::from_nanos(self.0.max(0).unsigned_abs())
    }

    /// Nothing where it is zero, as most parameters mean "leave it as it is" by it.
    pub(super) fn some(self) -> Option<Duration> {
        Some(self.duration()).filter(|duration| !duration.is_zero())
    }
}

impl FromStr for Span {
    type Err = ();

    fn from_str(text: &str) -> Result<Span, ()> {
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Ok(Span(0));
        }
        let mut total = 0.0f64;
        if rest.is_empty() {
            return Err(());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(())?;
            let number: f64 = rest[..digits].parse().map_err(|_| ())?;
            let unit = &rest[digits..];
            let end = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
            total += number * unit_of(&unit[..end])? as f64;
            rest = &unit[end..];
        }
        if !total.is_finite() || total >= i64::MAX as f64 {
            return Err(());
        }
        Ok(Span((sign * total).round() as i64))
    }
}

fn unit_of(name: &str) -> Result<i64, ()> {
    Ok(match name {
        "h" => 3600 * SECOND,
        "m" => 60 * SECOND,
        "s" => SECOND,
        "ms" => MILLI,
        "us" | "µs" | "μs" => MICRO,
        "ns" => 1,
        _ => return Err(()),
    })
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span(nanos) = *self;
        if nanos < 0 {
            f.write_str("-")?;
        }
        let whole = nanos.unsigned_abs();
        let second = SECOND.unsigned_abs();
        if whole == 0 {
            return f.write_str("0s");
        }
        if whole < second {
            let (unit, name) = match whole {
                0..1_000 => (1, "ns"),
                1_000..1_000_000 => (MICRO, "µs"),
                _ => (MILLI, "ms"),
            };
            return write!(f, "{}{name}", whole as f64 / unit as f64);
        }
        let (hours, minutes) = (whole / (3600 * second), whole / (60 * second) % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}s", (whole % (60 * second)) as f64 / second as f64)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
