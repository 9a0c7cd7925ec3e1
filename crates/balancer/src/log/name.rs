//! When does a file of lines end, and how is it called? By the clock, and as AWS calls it. Pure.

use std::path::{Component, Path};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Destination;

#[cfg(test)]
mod tests;

/// Who owns the load balancers, in names of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    /// Twelve digits.
    pub(super) account: String,
    /// Such as `us-west-2`.
    pub(super) region: String,
}

/// The end of the interval a time is in: at a multiple of it since the epoch, so that 5 minutes end at 1:05, 1:10 and so on.
pub(super) fn end_of_interval(time: Timestamp, interval: Duration) -> Timestamp {
    let interval = i64::try_from(interval.as_secs()).unwrap_or(i64::MAX).max(1);
    let second = time.as_second().div_euclid(interval).saturating_add(1).saturating_mul(interval);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}

/// The name of the file whose interval ends then:
/// `prefix/AWSLogs/ACCOUNT/elasticloadbalancing/REGION/yyyy/mm/dd/ACCOUNT_elasticloadbalancing_REGION_NAME_END_ADDRESS_RANDOM.log`.
pub(super) fn of_file(owner: &Owner, destination: &Destination, end: Timestamp, random: &str) -> String {
    let Owner { account, region } = owner;
    let Destination { name, address, .. } = destination;
    let end = end.to_zoned(TimeZone::UTC);
    let (day, end) = (end.strftime("%Y/%m/%d"), end.strftime("%Y%m%dT%H%MZ"));
    let file = format!("{account}_elasticloadbalancing_{region}_{name}_{end}_{address}_{random}.log");
    let path = format!("AWSLogs/{account}/elasticloadbalancing/{region}/{day}/{file}");
    let prefix = clean(&destination.prefix);
    if prefix.is_empty() { path } else { format!("{prefix}/{path}") }
}

/// A prefix that stays inside its bucket: what a user writes must not lead out of a directory.
pub(super) fn clean(prefix: &str) -> String {
    let normal = |part: Component<'_>| match part {
        Component::Normal(part) => part.to_str().map(str::to_owned),
        _ => None,
    };
    Path::new(prefix).components().filter_map(normal).collect::<Vec<_>>().join("/")
}
