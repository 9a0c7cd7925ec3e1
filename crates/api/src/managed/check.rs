//! Whether an applied configuration fits the type: no unknown fields, no values of another type, no key twice in a list.

use std::collections::BTreeSet;
use std::fmt;

use crate::value::{Key, Map, Value};

use super::set::Step;
use super::types::{Atom, Type, item_step, key_step};
use crate::field::{MAX_MISTAKES, MAX_SHOWN};
use crate::golang;
use crate::schema::{Shape, Struct};

/// A place in a configuration that does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    path: String,
    why: String,
}

/// All misfits of a configuration, as one text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfits(Vec<Misfit>);

/// Checks a configuration. `apiVersion` and `kind` may stand at the top.
pub(super) fn check(of: &'static Struct, config: &Value) -> Result<(), Misfits> {
    let mut checker = Checker { path: Vec::new(), misfits: Vec::new() };
    match config {
        Value::Object(map) => {
            checker.fields(of, map.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind")))
        }
        other => checker.misfit(format!("expected map, got {}", pointer(other))),
    }
    if checker.misfits.is_empty() { Ok(()) } else { Err(Misfits(checker.misfits)) }
}

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.0[..] {
            return write!(f, "{only}");
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|misfit| write!(f, "\n  {misfit}"))
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.why) } else { write!(f, "{}: {}", self.path, self.why) }
    }
}

/// Maximum length in bytes of one step of a path in a message.
const MAX_STEP: usize = 512;

struct Checker<'a> {
    path: Vec<Step<'a>>,
    misfits: Vec<Misfit>,
}

impl<'a> Checker<'a> {
    fn misfit(&mut self, why: String) {
        if self.is_full() {
            return;
        }
        // A step may hold a whole value, and the path is formatted again for each misfit below it.
        let mut path = String::new();
        for step in &self.path {
            path.push_str(&golang::display_short(step, MAX_STEP));
            if path.len() > MAX_SHOWN {
                break;
            }
        }
        let why = golang::shorten(&why, MAX_SHOWN).into_owned();
        self.misfits.push(Misfit { path, why });
    }

    fn is_full(&self) -> bool {
        self.misfits.len() >= MAX_MISTAKES
    }

    fn below(&mut self, step: Step<'a>, check: impl FnOnce(&mut Checker<'a>)) {
        self.path.push(step);
        check(self);
        self.path.pop();
    }

    /// An unknown field ends the check of its struct.
    fn fields(&mut self, of: &'static Struct, fields: impl Iterator<Item = (&'a Key, &'a Value)>) {
        for (name, value) in fields {
            let step = Step::Field(name.as_str().into());
            let Some(field) = of.field(name) else {
                self.below(step, |at| at.misfit("field not declared in schema".to_owned()));
                return;
            };
            self.below(step, |at| at.value(Type::of_field(field), value));
        }
    }

    fn value(&mut self, of: Type, value: &'a Value) {
        match (of.shape, value) {
            (_, Value::Null) | (Shape::Any | Shape::Fields, _) => {}
            (Shape::Struct(of), Value::Object(map)) => self.fields(of, map.iter()),
            (Shape::Map(item), Value::Object(map)) => self.entries(Type::of_shape(item), map),
            (Shape::List(item), Value::Array(list)) => self.list(of, Type::of_shape(item), list),
            (Shape::Struct(_) | Shape::Map(_), other) => self.misfit(format!("expected map, got {}", pointer(other))),
            (Shape::List(_), other) => self.misfit(format!("expected list, got {}", pointer(other))),
            (shape, value) => {
                if let Some(why) = scalar(&shape, value) {
                    self.misfit(why);
                }
            }
        }
    }

    fn entries(&mut self, of: Type, map: &'a Map) {
        for (name, value) in map {
            if self.is_full() {
                return;
            }
            self.below(Step::Field(name.as_str().into()), |at| at.value(of, value));
        }
    }

    fn list(&mut self, of: Type, element: Type, list: &'a [Value]) {
        let mut seen: BTreeSet<Step<'a>> = BTreeSet::new();
        for (at, item) in list.iter().enumerate() {
            if self.is_full() {
                return;
            }
            let step = match unsuited(of.atom(), item) {
                Some(why) => return self.misfit(format!("element {at}: {why}")),
                None => match of.atom() {
                    Atom::Items => item_step(item),
                    Atom::Keyed { of, keys } => key_step(of, keys, item),
                    _ => Step::Index(i64::try_from(at).unwrap_or(i64::MAX)),
                },
            };
            if !matches!(step, Step::Index(_)) && !seen.insert(step.clone()) {
                self.misfit(format!("duplicate entries for key {}", golang::display_short(&step, MAX_STEP)));
            }
            self.below(step, |at| at.value(element, item));
        }
    }
}

/// Why an element has no place in a list of unique elements.
fn unsuited(atom: Atom, item: &Value) -> Option<String> {
    let why = match (atom, item) {
        (Atom::Keyed { .. }, Value::Null) => "associative list with keys may not have a null element",
        (Atom::Keyed { of, keys }, Value::Object(_)) => {
            return matches!(key_step(of, keys, item), Step::Key(found) if found.is_empty()).then(|| {
                let keys: Vec<_> = keys.iter().map(|key| golang::quote(key)).collect();
                format!("associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)", keys.join(" "))
            });
        }
        (Atom::Keyed { .. }, _) => "associative list with keys may not have non-map elements",
        (Atom::Items, Value::Object(_)) => "associative list without keys has an element that's a map type",
        (Atom::Items, Value::Array(_)) => "not supported: associative list with lists as elements",
        (Atom::Items, Value::Null) => "associative list without keys has an element that's an explicit null",
        _ => return None,
    };
    Some(why.to_owned())
}

fn scalar(shape: &Shape, value: &Value) -> Option<String> {
    match (shape, value) {
        (Shape::Text(_) | Shape::Bytes, Value::String(_))
        | (Shape::Int32 | Shape::Int64 | Shape::Float64, Value::Number(_))
        | (Shape::Bool, Value::Bool(_)) => None,
        (Shape::Text(_) | Shape::Bytes, other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", literal(other)))
        }
        (Shape::Int32 | Shape::Int64 | Shape::Float64, other) => {
            Some(format!("expected numeric (int or float), got {}", go_type(other)))
        }
        (Shape::Bool, other) => Some(format!("expected boolean, got {}", pointer(other))),
        (_, other @ (Value::Array(_) | Value::Object(_))) => {
            Some(format!("expected any scalar, got {}", pointer(other)))
        }
        _ => None,
    }
}

/// A value as the reference server's messages print it (`%v` of a pointer).
fn pointer(value: &Value) -> String {
    format!("&{{{}}}", golang::display_short(&golang::Plain(value), MAX_SHOWN))
}

/// A value as Go source.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => golang::quote_short(text, MAX_SHOWN),
        Value::Array(list) => {
            let list: Vec<_> = list.iter().map(literal).collect();
            format!("[]interface {{}}{{{}}}", list.join(", "))
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(k, v)| format!("{}:{}", golang::quote(k), literal(v))).collect();
            entries.sort();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
