//! Which YAML style fits a text: plain, unless a reader of YAML 1.1 would take it for structure, a number, a time or a truth value.

use super::{Breaks, is_printable};

/// A style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// The style that fits a text.
pub(super) fn style(text: &str, breaks: Breaks) -> Style {
    let special = text.contains(|c| !is_printable(c) || c == '\u{2028}' || c == '\u{2029}') || text.contains(" \n");
    if text.contains('\n') {
        let block = !special && !text.ends_with(' ') && breaks == Breaks::Allowed;
        return if block { Style::Literal } else { Style::Double };
    }
    if special || means_something_else(text) {
        return Style::Double;
    }
    if text.starts_with(' ') || text.ends_with(' ') || has_indicators(text) { Style::Single } else { Style::Plain }
}

/// Whether an unquoted text would be taken for structure.
fn has_indicators(text: &str) -> bool {
    let mut letters = text.chars();
    let (first, second) = (letters.next(), letters.next());
    let alone = second.is_none_or(char::is_whitespace);
    let begins = match first {
        Some('#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`') => true,
        Some('?' | ':' | '-') => alone,
        _ => false,
    };
    begins
        || text.starts_with("---")
        || text.starts_with("...")
        || text.contains(": ")
        || text.ends_with(':')
        || text.contains(" #")
}

/// Whether an unquoted text would be taken for a number, a time, a truth value or nothing.
fn means_something_else(text: &str) -> bool {
    const WORDS: [&str; 39] = [
        "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n",
        "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", ".nan", ".NaN", ".NAN", ".inf", ".Inf",
        ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
    ];
    if WORDS.contains(&text) {
        return true;
    }
    match text.as_bytes().first() {
        Some(b'.') => go_float(text),
        Some(b'+' | b'-' | b'0'..=b'9') => number(text) || timestamp(text) || sixties(text),
        _ => false,
    }
}

fn number(text: &str) -> bool {
    let plain = text.replace('_', "");
    integer(&plain) || decimal(&plain)
}

/// As Go's `ParseInt` with base 0 reads it: `0x1f`, `0o17`, `017`, `0b11`, within 64 bits.
fn integer(text: &str) -> bool {
    let signed = text.strip_prefix(['+', '-']);
    let digits = signed.unwrap_or(text);
    let lower = digits.to_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, &lower[..]),
    };
    let fits = |limit: u64| u64::from_str_radix(digits, radix).is_ok_and(|value| value <= limit);
    let clean = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    clean
        && if text.starts_with('-') {
            fits(1 << 63)
        } else if signed.is_some() {
            fits(u64::MAX >> 1)
        } else {
            fits(u64::MAX)
        }
}

/// `1.5`, `.5`, `1.`, `1e3`; what is larger than any number is none.
fn decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, part) = mantissa.split_once('.').map_or((mantissa, None), |(whole, part)| (whole, Some(part)));
    let shaped =
        digits(whole) && digits(part.unwrap_or_default()) && !(whole.is_empty() && part.is_none_or(str::is_empty));
    let powered = exponent.is_none_or(|text| {
        let text = text.strip_prefix(['+', '-']).unwrap_or(text);
        !text.is_empty() && digits(text)
    });
    shaped && powered && unsigned.parse::<f64>().is_ok_and(f64::is_finite)
}

/// A text that begins with a stop, as Go's `ParseFloat` reads it: underscores only where Go has them, which is nowhere here.
fn go_float(text: &str) -> bool {
    decimal(text) && text.len() > 1
}

/// `12:30:45`, a number to the base of sixty in YAML 1.1.
fn sixties(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let starts =
        first.starts_with(|c: char| c.is_ascii_digit()) && first.chars().all(|c| c.is_ascii_digit() || c == '_');
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let sixtieth = |part: &str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    let fraction = fraction.chars().all(|c| c.is_ascii_digit() || c == '_');
    starts && sixtieth(last) && middle.iter().all(|part| sixtieth(part)) && fraction
}

/// `2026-1-2`, `2026-01-02T15:04:05Z`, `2026-01-02 15:04:05`.
fn timestamp(text: &str) -> bool {
    let date_end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, time) = text.split_at(date_end);
    let pieces: Vec<&str> = date.split('-').collect();
    let [year, month, day] = pieces[..] else { return false };
    let short = |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if year.len() != 4 || !year.bytes().all(|byte| byte.is_ascii_digit()) || !short(month) || !short(day) {
        return false;
    }
    let numbers = (year.parse::<i16>(), month.parse::<i8>(), day.parse::<i8>());
    let (Ok(year), Ok(month), Ok(day)) = numbers else { return false };
    if jiff::civil::Date::new(year, month, day).is_err() {
        return false;
    }
    time.is_empty() || clock(time)
}

/// The time of day behind a date: with a zone after `T`, without one after a blank.
fn clock(time: &str) -> bool {
    let zoned = !time.starts_with(' ');
    let rest = &time[1..];
    let end = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let parts: Vec<&str> = whole.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let below =
        |text: &str, limit: u8| (1..=2).contains(&text.len()) && text.parse::<u8>().is_ok_and(|number| number < limit);
    let clock = below(hour, 24) && hour.len() == 2 && below(minute, 60) && below(second, 60);
    let fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let zone = match zone.as_bytes() {
        [] => !zoned,
        [b'Z'] => zoned,
        [b'+' | b'-', _, _, b':', _, _] => zoned && below(&zone[1..3], 25) && below(&zone[4..6], 60),
        _ => false,
    };
    clock && fraction && zone
}
