//! The `LabelSelector` of an object (`spec.selector` of a Deployment), and its text
//! (`status.selector` of a Scale).

use std::fmt;

use super::{LabelSelector, Operator, Requirement, Wanted};
use crate::Look;
use crate::value::Value;

/// An element of `matchExpressions`.
#[derive(Debug, Clone)]
pub struct Expression<'a> {
    /// The label's key.
    pub key: &'a str,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: &'a str,
    /// The values of `In` and `NotIn`.
    pub values: Vec<&'a str>,
}

impl LabelSelector {
    /// Returns a selector that matches no labels, as an absent `LabelSelector` does.
    pub fn nothing() -> LabelSelector {
        LabelSelector { requirements: vec![Requirement { key: String::new(), wanted: Wanted::In(Vec::new()) }] }
    }

    /// Returns the selector of a `LabelSelector` object. Null selects nothing, an empty object
    /// everything.
    pub fn from_object(selector: &Value) -> Result<LabelSelector, String> {
        if selector.is_null() {
            return Ok(LabelSelector::nothing());
        }
        let labels = selector.map("matchLabels").into_iter().flatten();
        let expressions = selector.list("matchExpressions").iter().map(|expression| Expression {
            key: expression.text("key"),
            operator: expression.text("operator"),
            values: expression.texts("values"),
        });
        LabelSelector::from_parts(
            labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())),
            expressions,
        )
    }

    /// Returns the selector that `matchLabels` and `matchExpressions` state together.
    pub fn from_parts<'a>(
        labels: impl IntoIterator<Item = (&'a str, &'a str)>,
        expressions: impl IntoIterator<Item = Expression<'a>>,
    ) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        for (key, value) in labels {
            requirements.push(Requirement::new(key.to_owned(), Operator::Equals, vec![value.to_owned()])?);
        }
        for Expression { key, operator, values } in expressions {
            let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
            values.sort_unstable();
            values.dedup();
            let requirement = match (operator, values.is_empty()) {
                ("In", false) => Requirement::new(key.to_owned(), Operator::In, values)?,
                ("NotIn", false) => Requirement::new(key.to_owned(), Operator::NotIn, values)?,
                ("Exists", true) => Requirement { key: key.to_owned(), wanted: Wanted::Exists },
                ("DoesNotExist", true) => Requirement { key: key.to_owned(), wanted: Wanted::DoesNotExist },
                ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {
                    return Err(format!("values do not fit the operator {operator}"));
                }
                _ => return Err(format!("{} is not a valid label selector operator", crate::golang::quote(operator))),
            };
            requirements.push(requirement);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements })
    }
}

/// `app=web,tier in (a,b),!legacy`, as the reference server writes it.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Requirement { key, wanted }) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match wanted {
                Wanted::Equals(value) => write!(f, "{key}={value}")?,
                Wanted::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Wanted::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Wanted::Exists => f.write_str(key)?,
                Wanted::DoesNotExist => write!(f, "!{key}")?,
                Wanted::GreaterThan(bound) => write!(f, "{key}>{bound}")?,
                Wanted::LessThan(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}
