//! Times as people say them: `10m` ago, `12:03:07` today (or yesterday, if that is still to come), or a whole one.

use jiff::civil::{DateTime, Time};
use jiff::{Span, Timestamp, ToSpan, Zoned};

/// The time that is meant.
pub(super) fn read(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let text = text.trim();
    if text == "now" {
        return Ok(now.timestamp());
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    let wrong = || format!("{text:?} is no time: want 10m, 12:03:07, or 2026-01-31T12:03:07Z");
    if let Ok(moment) = text.parse::<DateTime>() {
        return moment.to_zoned(now.time_zone().clone()).map(|moment| moment.timestamp()).map_err(|_| wrong());
    }
    if text.contains(':')
        && let Ok(time) = text.parse::<Time>()
    {
        let today = now.with().time(time).build().map_err(|_| wrong())?;
        let meant = if today <= *now { today } else { today.checked_sub(1.day()).map_err(|_| wrong())? };
        return Ok(meant.timestamp());
    }
    let span: Span = text.parse().map_err(|_| wrong())?;
    let earlier = now.checked_sub(span).map_err(|_| wrong())?;
    if earlier > *now {
        return Err(format!("{text:?} lies ahead; say how long ago, as in 10m"));
    }
    Ok(earlier.timestamp())
}
