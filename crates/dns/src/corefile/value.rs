//! Values of a Corefile: names, numbers, durations, addresses.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use fairlead_zone::Name;

use super::tree::{Line, Word};
use super::{Findings, address};
use crate::settings::{Fallthrough, Listen};

/// The zones that some words name; ranges of addresses are reverse zones. Without words, others.
pub(super) fn zones(plugin: &str, words: &[Word], others: &[Name], found: &mut Findings) -> Vec<Name> {
    if words.is_empty() {
        return others.to_vec();
    }
    let mut zones = Vec::new();
    for word in words {
        match address::zones(&word.text) {
            Some(more) => zones.extend(more),
            None => found.invalid(plugin, word, "name of a zone"),
        }
    }
    zones
}

/// One name.
pub(super) fn name(plugin: &str, word: &Word, found: &mut Findings) -> Option<Name> {
    let name = word.text.parse().map(|name: Name| name.to_lower()).ok();
    if name.is_none() {
        found.invalid(plugin, word, "name");
    }
    name
}

/// `fallthrough [ZONES...]`: without zones, all of them.
pub(super) fn fallthrough(plugin: &str, option: &Line, found: &mut Findings) -> Fallthrough {
    Fallthrough::Zones(zones(plugin, option.arguments(), &[Name::root()], found))
}

/// The only argument of an option.
pub(super) fn only<'a>(plugin: &str, option: &'a Line, found: &mut Findings) -> Option<&'a Word> {
    match option.arguments() {
        [one] => Some(one),
        _ => {
            found.arguments(plugin, option);
            None
        }
    }
}

/// A whole number.
pub(super) fn number<T: FromStr>(plugin: &str, word: &Word, found: &mut Findings) -> Option<T> {
    let number = word.text.parse().ok();
    if number.is_none() {
        found.invalid(plugin, word, "number");
    }
    number
}

/// The only argument of an option, a whole number.
pub(super) fn only_number<T: FromStr>(plugin: &str, option: &Line, found: &mut Findings) -> Option<T> {
    number(plugin, only(plugin, option, found)?, found)
}

/// A duration as Go writes it.
pub(super) fn duration(plugin: &str, word: &Word, found: &mut Findings) -> Option<Duration> {
    let duration = parse_duration(&word.text);
    if duration.is_none() {
        found.invalid(plugin, word, "duration, such as 5s or 1m30s");
    }
    duration
}

/// The only argument of an option, a duration.
pub(super) fn only_duration(plugin: &str, option: &Line, found: &mut Findings) -> Option<Duration> {
    duration(plugin, only(plugin, option, found)?, found)
}

/// `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`.
pub(super) fn listen(plugin: &str, word: &Word, found: &mut Findings) -> Option<Listen> {
    let parsed = parse_listen(&word.text);
    if parsed.is_none() {
        found.invalid(plugin, word, "address to listen at, such as :8080");
    }
    parsed
}

fn parse_listen(text: &str) -> Option<Listen> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let address = match host.trim_start_matches('[').trim_end_matches(']') {
        "" => None,
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        host => Some(host.parse().ok()?),
    };
    Some(Listen { address, port })
}

/// `1h30m`, `1.5s`, `300ms`, `0`. None is longer than a century.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    const LONGEST: f64 = 100.0 * 366.0 * 86400.0;
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut seconds, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let digits = rest.find(|next: char| !next.is_ascii_digit() && next != '.')?;
        let value: f64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let end = unit.find(|next: char| next.is_ascii_digit() || next == '.').unwrap_or(unit.len());
        let scale = match &unit[..end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += value * scale;
        rest = &unit[end..];
    }
    (!text.is_empty() && seconds <= LONGEST).then(|| Duration::from_secs_f64(seconds))
}
