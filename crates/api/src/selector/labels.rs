//! Label selectors: `app=web,tier in (a, b),!legacy`. A selector is a list of requirements that must all hold.

use crate::value::Value;

use crate::field::{FieldError, FieldErrors, Path};
use crate::{Failure, Look, names};

mod object;
mod parse;

pub use object::Expression;

/// A parsed label selector.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// What must hold for the label of one key.
#[derive(Debug, Clone, PartialEq)]
struct Requirement {
    key: String,
    wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// There, with this value.
    Equals(String),
    /// There, with one of these values.
    In(Vec<String>),
    /// Not there, or with another value.
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    /// There, and a greater number.
    GreaterThan(i64),
    /// There, and a smaller number.
    LessThan(i64),
}

impl LabelSelector {
    /// Parses `app=web,tier in (a, b),!legacy`. A mistake is a 400.
    pub fn parse(text: &str) -> Result<LabelSelector, Failure> {
        let requirements = parse::requirements(text).map_err(Failure::bad_request)?;
        Ok(LabelSelector { requirements })
    }
    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }
    /// Whether labels match; `label` gives the value of a key.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.wanted.holds(label(&requirement.key)))
    }
    /// Whether the object's labels match.
    pub fn selects(&self, object: &Value) -> bool {
        let labels = object.at("metadata").at("labels");
        self.matches(|key| labels.text_opt(key))
    }
}

impl Wanted {
    fn holds(&self, value: Option<&str>) -> bool {
        // The parser sorts values: a list of 100,000 objects is matched with a selector of
        // thousands.
        let among = |values: &[String], value: &str| values.binary_search_by(|v| v.as_str().cmp(value)).is_ok();
        let number = |value: &str| value.parse::<i64>().ok();
        match self {
            Wanted::Equals(wanted) => value == Some(wanted.as_str()),
            Wanted::In(values) => value.is_some_and(|value| among(values, value)),
            Wanted::NotIn(values) => !value.is_some_and(|value| among(values, value)),
            Wanted::Exists => value.is_some(),
            Wanted::DoesNotExist => value.is_none(),
            Wanted::GreaterThan(bound) => value.and_then(number).is_some_and(|n| n > *bound),
            Wanted::LessThan(bound) => value.and_then(number).is_some_and(|n| n < *bound),
        }
    }
}

/// An operator as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Equals,
    NotEquals,
    GreaterThan,
    LessThan,
}

impl Requirement {
    /// A requirement with values; mistakes in them are told together.
    fn new(key: String, operator: Operator, values: Vec<String>) -> Result<Requirement, String> {
        let path = Path::new("values");
        let mut errors = FieldErrors::new();
        let mut number = 0;
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in values.iter().enumerate() {
                match value.parse() {
                    Ok(parsed) => number = parsed,
                    Err(_) => errors.push(FieldError::invalid(
                        &path.index(index),
                        value,
                        "for 'Gt', 'Lt' operators, the value must be an integer",
                    )),
                }
            }
        }
        for (index, value) in values.iter().enumerate() {
            let reasons = names::label_value(value);
            if !reasons.is_empty() {
                errors.push(FieldError::invalid(&path.index(index).key(&key), value, reasons.join("; ")));
            }
        }
        if !errors.is_empty() {
            return Err(together(&errors));
        }
        let wanted = match operator {
            Operator::In => Wanted::In(values),
            Operator::Equals => Wanted::Equals(values.into_iter().next().unwrap_or_default()),
            Operator::NotIn | Operator::NotEquals => Wanted::NotIn(values),
            Operator::GreaterThan => Wanted::GreaterThan(number),
            Operator::LessThan => Wanted::LessThan(number),
        };
        Ok(Requirement { key, wanted })
    }
}

/// One error as it is, several in brackets.
fn together(errors: &FieldErrors) -> String {
    let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    if let [one] = &texts[..] { one.clone() } else { format!("[{}]", texts.join(", ")) }
}

#[cfg(test)]
mod tests;
