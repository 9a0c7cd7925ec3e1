//! The time, in the forms the API writes it.

use jiff::Timestamp;

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    Timestamp::now().as_second()
}

/// `2026-01-02T03:04:05Z`.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The same, some seconds later.
pub(crate) fn in_seconds(seconds: i64) -> String {
    let later = Timestamp::from_second(self::seconds().saturating_add(seconds)).unwrap_or(Timestamp::MAX);
    later.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
