//! How old an object is, as `kubectl get` shows it: two or three digits, the coarser the older.

/// The age at `now` (seconds since 1970) of something created at an RFC 3339 time; `<unknown>` without one.
pub fn age(created: &str, now: i64) -> String {
    match created.parse::<jiff::Timestamp>() {
        Ok(created) => elapsed(now.saturating_sub(created.as_second())),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// A number of seconds in the same form.
pub fn elapsed(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    match seconds {
        // Clocks may differ by a moment; more than that is a mistake worth seeing.
        _ if seconds < -1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => parts(seconds, (MINUTE, "m"), (1, "s")),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => parts(seconds, (HOUR, "h"), (MINUTE, "m")),
        _ if seconds < 48 * HOUR => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => parts(seconds, (DAY, "d"), (HOUR, "h")),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => parts(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// `5m30s`, or `5m` when nothing is left over.
fn parts(seconds: i64, (large, l): (i64, &str), (small, s): (i64, &str)) -> String {
    match seconds % large / small {
        0 => format!("{}{l}", seconds / large),
        rest => format!("{}{l}{rest}{s}", seconds / large),
    }
}

#[cfg(test)]
mod tests;
