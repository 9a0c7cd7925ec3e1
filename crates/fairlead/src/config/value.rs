//! Reading values: ranges of addresses and ports, durations, lists.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use ipnet::IpNet;

use super::flags::Text;

/// A value, or what holds without it. A mistake names the flag.
pub(super) fn parse<T: FromStr>(flag: &str, text: Option<&Text>, default: T) -> anyhow::Result<T>
where
    T::Err: Display,
{
    match text {
        None => Ok(default),
        Some(Text(text)) => text.trim().parse().map_err(|error| invalid(flag, text, error)),
    }
}

/// The mistake in a value.
pub(super) fn invalid(flag: &str, text: &str, why: impl Display) -> anyhow::Error {
    anyhow!("invalid argument {text:?} for \"--{flag}\" flag: {why}")
}

/// Where a server listens; an empty text switches it off.
pub(super) fn address(flag: &str, said: &Option<Text>, usual: &str) -> anyhow::Result<Option<SocketAddr>> {
    let text = said.as_ref().map_or(usual, |Text(text)| text);
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| invalid(flag, text, error))
}

/// The items of lists with commas between.
pub(super) fn list(texts: &Option<Vec<Text>>) -> Vec<String> {
    let items = texts.iter().flatten().flat_map(|Text(text)| text.split(',')).map(str::trim);
    items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Ranges of addresses.
pub(super) fn networks(flag: &str, items: &[String]) -> anyhow::Result<Vec<IpNet>> {
    items.iter().map(|item| item.parse::<IpNet>().map_err(|error| invalid(flag, item, error))).collect()
}

/// One range of cluster IPs, or one for each family, the primary first.
pub(super) fn service_ranges(flag: &str, items: &[String]) -> anyhow::Result<Vec<IpNet>> {
    let ranges = networks(flag, items)?;
    match ranges.as_slice() {
        [] => bail!("--{flag} must contain at least one valid cidr"),
        [_] => {}
        [first, second] if first.addr().is_ipv4() != second.addr().is_ipv4() => {}
        [_, _] => bail!("--{flag}[0] and --{flag}[1] must be of different IP family"),
        _ => bail!("--{flag} must not contain more than two entries"),
    }
    for range in &ranges {
        let (low, high) = if range.addr().is_ipv4() { (12, 30) } else { (64, 126) };
        if !(low..=high).contains(&range.prefix_len()) {
            let why = format!("the prefix length must be between {low} and {high}");
            return Err(invalid(flag, &range.to_string(), why));
        }
    }
    Ok(ranges.iter().map(IpNet::trunc).collect())
}

/// `30000-32767`, `30000+2767`, `30000`.
pub(super) fn ports(flag: &str, text: &str) -> anyhow::Result<RangeInclusive<u16>> {
    let port = |text: &str| text.trim().parse::<u16>().map_err(|error| anyhow!("{error}: {:?}", text.trim()));
    let read = || -> anyhow::Result<RangeInclusive<u16>> {
        let (first, last) = if let Some((base, size)) = text.split_once('+') {
            let base = port(base)?;
            (base, base.checked_add(port(size)?).context("the last port is above 65535")?)
        } else if let Some((first, last)) = text.split_once('-') {
            (port(first)?, port(last)?)
        } else {
            (port(text)?, port(text)?)
        };
        if first == 0 {
            bail!("port 0 cannot be given to a Service");
        }
        if last < first {
            bail!("the last port is below the first");
        }
        Ok(first..=last)
    };
    read().map_err(|error| invalid(flag, text, error))
}

/// `1m0s`, `90s`, `1.5h`, `250ms`.
pub(super) fn duration(flag: &str, text: &str) -> anyhow::Result<Duration> {
    let wrong = || invalid(flag, text, "want a duration such as 30s or 1m30s");
    let (mut rest, mut total) = (text.trim(), 0.0f64);
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() && rest != "0" {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = &rest[digits..];
        let end = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
        let seconds = match &unit[..end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return Err(wrong()),
        };
        total += number * seconds;
        rest = &unit[end..];
    }
    Duration::try_from_secs_f64(total).map_err(|_| wrong())
}
