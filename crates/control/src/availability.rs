//! When Pods count as available, and what numbers and percentages of `maxUnavailable` and
//! `maxSurge` mean.

use std::num::IntErrorKind;
use std::time::Duration;

use fairlead_api::view::Condition;
use jiff::Timestamp;
use serde_json::Value;

/// Returns the time until a Pod with these conditions counts as available if it stays ready: zero
/// if it is available, `None` if it is not ready.
pub(crate) fn after(conditions: &[Condition], min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    let ready = Condition::find(conditions, "Ready").filter(|ready| ready.status == "True")?;
    if min_ready_seconds <= 0 {
        return Some(Duration::ZERO);
    }
    let since: Timestamp = ready.last_transition_time.as_deref()?.parse().ok()?;
    let available = since.as_nanosecond() + i128::from(min_ready_seconds) * 1_000_000_000;
    let remaining = u64::try_from((available - now.as_nanosecond()).max(0)).ok()?;
    Some(Duration::from_nanos(remaining))
}

/// Returns a number as it is, and a percentage (`25%`) of `total`, rounded. A percentage that is too
/// large for its type counts as the greatest; anything else is zero.
pub(crate) fn int_or_percent(value: &Value, total: i32, round_up: bool) -> i32 {
    if let Some(number) = value.as_i64() {
        return i32::try_from(number).unwrap_or(i32::MAX);
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    let percent = match percent.map(str::parse::<i64>) {
        Some(Ok(percent)) => percent,
        Some(Err(error)) if *error.kind() == IntErrorKind::PosOverflow => i64::MAX,
        _ => 0,
    };
    let product = percent.saturating_mul(i64::from(total));
    let number = if round_up { product.saturating_add(99).div_euclid(100) } else { product.div_euclid(100) };
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Returns what [`int_or_percent`] does, rounded up, as a number of Pods.
pub(crate) fn amount(value: &Value, total: usize) -> usize {
    let total = i32::try_from(total).unwrap_or(i32::MAX);
    usize::try_from(int_or_percent(value, total, true)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn percentages_are_rounded_up() {
        let check =
            |value: Value, total: usize, expected: usize| assert_eq!(amount(&value, total), expected, "{value}");
        check(json!(2), 10, 2);
        check(json!("25%"), 10, 3);
        check(json!("0%"), 10, 0);
        check(json!("100%"), 3, 3);
        // Validation refuses a string without the sign.
        check(json!("2"), 10, 0);
        check(json!("99999999999999999999%"), 10, i32::MAX as usize);
        check(Value::Null, 10, 0);
        check(json!(-1), 10, 0);
        check(json!("x%"), 10, 0);
    }

    #[test]
    fn a_pod_is_available_some_time_after_it_is_ready() {
        let now: Timestamp = "2024-01-01T00:00:10Z".parse().expect("a time");
        let ready = |status: &str, since: &str| Condition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(since.to_owned()),
            ..Condition::default()
        };
        let check = |condition: Condition, seconds: i32, expected: Option<u64>| {
            assert_eq!(after(&[condition], seconds, now), expected.map(Duration::from_secs));
        };
        check(ready("True", "2024-01-01T00:00:05Z"), 0, Some(0));
        check(ready("True", "2024-01-01T00:00:05Z"), 5, Some(0));
        check(ready("True", "2024-01-01T00:00:05Z"), 30, Some(25));
        check(ready("False", "2024-01-01T00:00:05Z"), 0, None);
        check(ready("True", ""), 5, None);
    }
}
