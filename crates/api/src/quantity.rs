//! Amounts with units (`100m`, `2Gi`): read, compared, and written in the one form the API uses.

use std::cmp::Ordering;

use thiserror::Error;

/// A text that is not an amount.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// There is no number in it.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// Its unit is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The text the API writes for an amount: the largest unit that keeps it whole, in the family of units given. A text that
/// is in that form but for a sign or leading zeros stays as it is, as the reference server leaves it.
pub fn canonical(text: &str) -> Result<String, Error> {
    Quantity::parse(text).map(|quantity| quantity.to_string())
}

/// An amount.
#[derive(Debug, Clone)]
pub struct Quantity {
    amount: Decimal,
    family: Family,
    /// The text as given, where that is written again.
    text: Option<String>,
}

/// Which units an amount is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// `Ki`, `Mi`.
    Binary,
    /// `m`, `k`, `M`.
    Decimal,
    /// `e3`.
    Exponent,
}

impl Quantity {
    /// Reads an amount. Nothing is finer than a nano; what is, is rounded away from zero.
    pub fn parse(text: &str) -> Result<Quantity, Error> {
        let parts = Parts::split(text.trim())?;
        let (family, exponent) = unit(parts.suffix)?;
        let (amount, exact) = Decimal::read(&parts)?;
        let amount = match family {
            Family::Binary => amount.times(1i128 << exponent).at_most(i64::MAX.into()),
            Family::Decimal | Family::Exponent => amount.shift(exponent),
        };
        let text = (exact && parts.is_written_again(family, exponent)).then(|| text.trim().to_owned());
        Ok(Quantity { amount: amount.rounded(NANO), family, text })
    }

    /// The same amount with nothing finer than a thousandth, rounded away from zero: what resource lists hold.
    pub fn to_milli(self) -> Quantity {
        let rounded = self.amount.rounded(MILLI);
        let text = self.text.filter(|_| rounded.cmp(&self.amount) == Ordering::Equal);
        Quantity { amount: rounded, family: self.family, text }
    }

    /// In thousandths, rounded away from zero.
    pub fn milli(&self) -> i128 {
        let Decimal { digits, exponent } = self.amount.rounded(MILLI);
        let places = u32::try_from(exponent.saturating_sub(MILLI)).unwrap_or_default();
        digits.saturating_mul(10i128.saturating_pow(places))
    }

    /// Below, at or above zero.
    pub fn sign(&self) -> Ordering {
        self.amount.digits.cmp(&0)
    }

    /// Whether it has no fraction.
    pub fn is_whole(&self) -> bool {
        self.amount.rounded(0).cmp(&self.amount) == Ordering::Equal
    }

    /// Both together, in the units of the first.
    pub fn plus(&self, other: &Quantity) -> Quantity {
        Quantity { amount: self.amount.plus(other.amount), family: self.family, text: None }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
/// By amount, whatever the units.
impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        match (self.family, self.amount.whole()) {
            (Family::Binary, Some(whole)) if whole.abs() >= 1024 => write_binary(f, whole),
            (Family::Exponent, _) => self.amount.write_exponent(f),
            _ => self.amount.write_decimal(f),
        }
    }
}

fn write_binary(f: &mut std::fmt::Formatter<'_>, mut whole: i128) -> std::fmt::Result {
    let mut unit = 0;
    while whole % 1024 == 0 && unit < 6 {
        whole /= 1024;
        unit += 1;
    }
    write!(f, "{whole}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][unit])
}

/// An amount taken apart: `-1.5Gi` has a sign, digits before and after the point, and a suffix.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Parts<'a>, Error> {
        if text.is_empty() {
            return Err(Error::Format);
        }
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(rest);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let exponent = letters.strip_prefix(['+', '-']).unwrap_or(letters);
        if !exponent.bytes().all(|c| c.is_ascii_digit()) {
            return Err(Error::Format);
        }
        Ok(Parts { negative, whole, fraction, suffix })
    }

    /// Whether the reference server writes this amount as it was given. It looks at the form only: no fraction to carry,
    /// no thousands to move into the unit.
    fn is_written_again(&self, family: Family, exponent: i32) -> bool {
        let whole = self.whole.trim_start_matches('0');
        let digits = whole.len() + self.fraction.len();
        if whole.is_empty() || digits > 18 {
            return false;
        }
        match family {
            Family::Binary => {
                let room = 15 - whole.len() as i32 - exponent * 3 / 10 - 1;
                let odd = whole.parse::<i64>().is_ok_and(|n| n & 7 != 0);
                self.fraction.is_empty() && room >= 0 && odd
            }
            Family::Decimal | Family::Exponent => {
                let scale = exponent.saturating_sub(self.fraction.len() as i32);
                let thousands = format!("{whole}{}", self.fraction).ends_with("000");
                scale >= NANO && scale % 3 == 0 && !thousands
            }
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit(suffix: &str) -> Result<(Family, i32), Error> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(at) = BINARY.iter().position(|unit| *unit == suffix) {
        return Ok((Family::Binary, 10 * (at as i32 + 1)));
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(unit, _)| *unit == suffix) {
        return Ok((Family::Decimal, *exponent));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(Error::Suffix)?;
    exponent.parse().map(|exponent| (Family::Exponent, exponent)).map_err(|_| Error::Suffix)
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

const NANO: i32 = -9;
const MILLI: i32 = -3;

/// `digits` times ten to the `exponent`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Digits kept when reading; more than any amount needs, and a binary unit still fits on top.
const MAX_DIGITS: usize = 19;

impl Decimal {
    /// The number, and whether all its digits were kept.
    fn read(parts: &Parts<'_>) -> Result<(Decimal, bool), Error> {
        let all = format!("{}{}", parts.whole, parts.fraction);
        if all.is_empty() && parts.suffix.is_empty() {
            return Err(Error::Number);
        }
        let all = all.trim_start_matches('0');
        let kept = &all[..all.len().min(MAX_DIGITS)];
        let dropped = &all[kept.len()..];
        let mut digits: i128 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| Error::Number)? };
        digits += i128::from(dropped.contains(|c| c != '0'));
        let exponent = clamp(dropped.len()).saturating_sub(clamp(parts.fraction.len()));
        let digits = if parts.negative { -digits } else { digits };
        Ok((Decimal { digits, exponent }, dropped.is_empty()))
    }

    fn times(mut self, factor: i128) -> Decimal {
        self.digits = self.digits.saturating_mul(factor);
        self
    }

    fn shift(mut self, exponent: i32) -> Decimal {
        self.exponent = self.exponent.saturating_add(exponent);
        self
    }

    fn at_most(self, max: i128) -> Decimal {
        let max = Decimal { digits: max * self.digits.signum(), exponent: 0 };
        let beyond = if self.digits < 0 { Ordering::Less } else { Ordering::Greater };
        if self.cmp(&max) == beyond { max } else { self }
    }

    /// Nothing below ten to the `exponent`; what is there is rounded away from zero.
    fn rounded(self, exponent: i32) -> Decimal {
        let sign = self.digits.signum();
        let Ok(places @ 1..) = u32::try_from(i64::from(exponent) - i64::from(self.exponent)) else {
            return self;
        };
        let Some(unit) = 10i128.checked_pow(places) else {
            return Decimal { digits: sign, exponent };
        };
        let inexact = i128::from(self.digits % unit != 0);
        Decimal { digits: self.digits / unit + sign * inexact, exponent }
    }

    fn plus(self, other: Decimal) -> Decimal {
        let exponent = self.exponent.min(other.exponent).max(NANO);
        let (a, b) = (self.in_units_of(exponent), other.in_units_of(exponent));
        Decimal { digits: a.saturating_add(b), exponent }
    }

    fn in_units_of(self, exponent: i32) -> i128 {
        let Ok(places) = u32::try_from(self.exponent.saturating_sub(exponent)) else {
            return self.rounded(exponent).digits;
        };
        10i128.checked_pow(places).and_then(|factor| self.digits.checked_mul(factor)).unwrap_or(i128::MAX)
    }

    fn cmp(&self, other: &Decimal) -> Ordering {
        let signs = self.digits.signum().cmp(&other.digits.signum());
        if signs != Ordering::Equal || self.digits == 0 {
            return signs;
        }
        let sizes = self.size().cmp(&other.size()).then_with(|| {
            let exponent = self.exponent.min(other.exponent);
            self.in_units_of(exponent).unsigned_abs().cmp(&other.in_units_of(exponent).unsigned_abs())
        });
        if self.digits < 0 { sizes.reverse() } else { sizes }
    }

    /// The place of the first digit.
    fn size(&self) -> i64 {
        i64::from(self.digits.unsigned_abs().checked_ilog10().unwrap_or(0)) + i64::from(self.exponent)
    }

    fn whole(&self) -> Option<i128> {
        let Decimal { digits, exponent } = self.trimmed();
        let factor = 10i128.checked_pow(u32::try_from(exponent).ok()?)?;
        digits.checked_mul(factor)
    }

    fn trimmed(mut self) -> Decimal {
        while self.digits != 0 && self.digits % 10 == 0 && self.exponent < i32::MAX {
            self.digits /= 10;
            self.exponent += 1;
        }
        self
    }

    fn write_decimal(self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (digits, exponent) = self.in_thousands(18);
        let suffix = DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(unit, _)| unit);
        write!(f, "{digits}{suffix}")
    }

    fn write_exponent(self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (digits, exponent) = self.in_thousands(i32::MAX);
        if exponent == 0 { write!(f, "{digits}") } else { write!(f, "{digits}e{exponent}") }
    }

    /// The same amount with an exponent that is a multiple of three and at most `max`.
    fn in_thousands(self, max: i32) -> (i128, i32) {
        let Decimal { mut digits, mut exponent } = self.trimmed();
        if digits == 0 {
            return (0, 0);
        }
        // Beyond this many places the number is saturated anyway.
        let mut places = 0;
        while (exponent.rem_euclid(3) != 0 || exponent > max) && places < 60 {
            digits = digits.saturating_mul(10);
            exponent -= 1;
            places += 1;
        }
        (digits, exponent)
    }
}

fn clamp(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
