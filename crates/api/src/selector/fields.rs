//! Field selectors: `metadata.name=web,spec.clusterIP!=None`. Every kind offers its name and namespace; some offer more.

use std::borrow::Cow;

use crate::value::Value;

use crate::{Failure, Kind, Look, golang};

/// A parsed field selector: terms that must all hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    field: String,
    equal: bool,
    value: String,
}

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

impl FieldSelector {
    /// Parses `metadata.name=web,spec.clusterIP!=None`; a field the kind does not offer is a 400.
    pub fn parse(text: &str, kind: &Kind) -> Result<FieldSelector, Failure> {
        let mut parts = split(text);
        // The first mistake told is the first in this order.
        if parts.len() > MAX_TERMS {
            return Err(Failure::bad_request(format!("a field selector may have at most {MAX_TERMS} terms")));
        }
        parts.sort_unstable();
        let terms = parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| term(text, part))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Failure::bad_request)?;
        for term in &terms {
            offered(&term.field, kind).map_err(Failure::bad_request)?;
        }
        Ok(FieldSelector { terms })
    }
    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }
    /// The name that `metadata.name=` asks for, if it does.
    pub fn name(&self) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == NAME).map(|term| term.value.as_str())
    }
    /// Whether fields match; `field` gives the value of a field.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.terms.iter().all(|term| (field(&term.field) == term.value) == term.equal)
    }
    /// Whether the object's fields match. The object is in the form the kind is stored in.
    pub fn selects(&self, object: &Value, kind: &Kind) -> bool {
        self.matches(|field| match field {
            NAME => Cow::Borrowed(object.at("metadata").text("name")),
            NAMESPACE => Cow::Borrowed(object.at("metadata").text("namespace")),
            _ => {
                let own = kind.rules.selectable.iter().find(|(name, _)| *name == field);
                own.map_or(Cow::Borrowed(""), |(_, read)| Cow::Owned(read(object)))
            }
        })
    }
}

/// Maximum number of terms of a selector. Each is checked for each object of a list.
const MAX_TERMS: usize = 256;

/// The parts between commas that no backslash protects.
fn split(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    })
    .collect()
}

fn term(selector: &str, part: &str) -> Result<Term, String> {
    let at = part
        .char_indices()
        .map(|(at, _)| at)
        .find_map(|at| ["!=", "==", "="].into_iter().find(|o| part[at..].starts_with(o)).map(|o| (at, o)));
    let Some((at, operator)) = at else {
        return Err(format!("invalid selector: '{selector}'; can't understand '{part}'"));
    };
    let value = unescape(&part[at + operator.len()..])?;
    Ok(Term { field: part[..at].to_owned(), equal: operator != "!=", value })
}

/// The value meant by a text in which `\`, `,` and `=` are written with a backslash.
fn unescape(text: &str) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => value.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", u32::from(c)));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

/// A kind with fields of its own also says for itself whether it has a namespace; the others all take both.
fn offered(field: &str, kind: &Kind) -> Result<(), String> {
    let own = kind.rules.selectable;
    let fine = match field {
        NAME => true,
        NAMESPACE => kind.namespaced || own.is_empty(),
        _ => own.iter().any(|(name, _)| *name == field),
    };
    if fine {
        return Ok(());
    }
    if own.is_empty() {
        let field = golang::quote(field);
        return Err(format!("{field} is not a known field selector: only \"{NAME}\", \"{NAMESPACE}\""));
    }
    Err(format!("field label not supported: {field}"))
}

#[cfg(test)]
mod tests;
