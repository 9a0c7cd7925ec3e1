//! Amounts with units (`100m`, `2Gi`): read, and written in the one form the API uses.

use thiserror::Error;

/// A text that is not an amount.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// It does not look like one.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Its unit is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The canonical text of an amount: no fraction, the largest unit that keeps it whole, in the family of units given.
pub fn canonical(text: &str) -> Result<String, Error> {
    let (number, suffix) = split(text)?;
    let (base, exponent) = unit(suffix)?;
    let Some(value) = Decimal::read(number) else {
        return Err(Error::Format);
    };
    Ok(match base {
        Base::Binary => value.times(1i128 << exponent).write_binary(),
        Base::Decimal => value.shift(exponent).write_decimal(),
        Base::Scientific => value.shift(exponent).write_scientific(),
    })
}

enum Base {
    Binary,
    Decimal,
    Scientific,
}

fn split(text: &str) -> Result<(&str, &str), Error> {
    let end = text
        .char_indices()
        .find(|(i, c)| !(c.is_ascii_digit() || *c == '.' || (*i == 0 && matches!(c, '+' | '-'))))
        .map_or(text.len(), |(i, _)| i);
    let (number, suffix) = text.split_at(end);
    if !number.contains(|c: char| c.is_ascii_digit()) || number.matches('.').count() > 1 {
        return Err(Error::Format);
    }
    Ok((number, suffix))
}

fn unit(suffix: &str) -> Result<(Base, i32), Error> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(at) = BINARY.iter().position(|unit| *unit == suffix) {
        return Ok((Base::Binary, 10 * (at as i32 + 1)));
    }
    if let Some(exponent) = DECIMAL.iter().find(|(unit, _)| *unit == suffix) {
        return Ok((Base::Decimal, exponent.1));
    }
    if let Some(exponent) = suffix.strip_prefix(['e', 'E']) {
        return exponent.parse().map(|e| (Base::Scientific, e)).map_err(|_| Error::Suffix);
    }
    Err(Error::Suffix)
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// `digits` times ten to the `exponent`.
struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Digits kept when reading; more than any amount needs and far from overflow.
const MAX_DIGITS: usize = 30;

impl Decimal {
    fn read(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mut digits = format!("{whole}{fraction}");
        digits.truncate(MAX_DIGITS);
        let digits = digits.trim_start_matches('+').parse().ok()?;
        Some(Decimal { digits, exponent: -(fraction.len() as i32) }.trimmed())
    }
    fn times(mut self, factor: i128) -> Decimal {
        self.digits = self.digits.saturating_mul(factor);
        self.trimmed()
    }
    fn shift(mut self, exponent: i32) -> Decimal {
        self.exponent = self.exponent.saturating_add(exponent);
        self
    }
    fn trimmed(mut self) -> Decimal {
        while self.digits != 0 && self.digits % 10 == 0 {
            self.digits /= 10;
            self.exponent += 1;
        }
        self.rounded()
    }
    /// Nothing is finer than a nano; what is, is rounded up.
    fn rounded(mut self) -> Decimal {
        while self.exponent < -9 {
            let rest = self.digits % 10;
            self.digits = self.digits / 10 + i128::from(rest != 0) * self.digits.signum();
            self.exponent += 1;
        }
        self
    }
    fn whole(&self) -> Option<i128> {
        let factor = 10i128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        self.digits.checked_mul(factor)
    }
    fn write_binary(self) -> String {
        let Some(mut value) = self.whole() else { return self.write_decimal() };
        let mut unit = 0;
        while value != 0 && value % 1024 == 0 && unit < 6 {
            value /= 1024;
            unit += 1;
        }
        format!("{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][unit])
    }
    fn write_decimal(self) -> String {
        let (digits, exponent) = self.in_thousands(18);
        let suffix = DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(unit, _)| unit);
        format!("{digits}{suffix}")
    }
    fn write_scientific(self) -> String {
        let (digits, exponent) = self.in_thousands(i32::MAX);
        if exponent == 0 { digits.to_string() } else { format!("{digits}e{exponent}") }
    }
    /// The same amount with an exponent that is a multiple of three and at most `max`.
    fn in_thousands(self, max: i32) -> (i128, i32) {
        if self.digits == 0 {
            return (0, 0);
        }
        let (mut digits, mut exponent) = (self.digits, self.exponent);
        while exponent.rem_euclid(3) != 0 || exponent > max {
            digits = digits.saturating_mul(10);
            exponent -= 1;
        }
        (digits, exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn amounts_are_written_in_one_form() {
        let check = |given: &str, expected: &str| assert_eq!(canonical(given).as_deref(), Ok(expected), "{given}");
        check("100m", "100m");
        check("1000m", "1");
        check("0.5", "500m");
        check("1.5Gi", "1536Mi");
        check("1024Mi", "1Gi");
        check("1k", "1k");
        check("1000", "1k");
        check("1024", "1024");
        check("0", "0");
        check("2e3", "2e3");
        check("4", "4");
        check("110", "110");
        check("0.0000000001", "1n");
    }

    #[test]
    fn what_is_not_an_amount_is_refused() {
        for text in ["", "x", "1x", "1.2.3", "-", "1Kii"] {
            assert!(canonical(text).is_err(), "{text}");
        }
    }
}
