//! Durations as people write them beside a check: `5s`, `1m30s`, `250ms`.

use std::time::Duration;

/// Reads a duration as Go writes it. `None`: it is none.
pub fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut total) = (text.trim(), Duration::ZERO);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() && rest != "0" {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(digits);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = behind;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(duration(text), expect.map(Duration::from_millis), "{text}");
        };
        check("5s", Some(5000));
        check("1m30s", Some(90_000));
        check("250ms", Some(250));
        check("1.5h", Some(5_400_000));
        check("0", Some(0));
        for text in ["", "5", "s", "-1s", "1x", "1e9s", "99999999999999999999h", "1s5"] {
            check(text, None);
        }
    }
}
