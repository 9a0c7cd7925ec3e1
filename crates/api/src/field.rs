//! What a user got wrong, field by field, in the words of the Kubernetes API.

use std::fmt;
use std::ops::Deref;

use crate::value::{Key, Value};

use crate::golang;

/// Where in an object a field stands: `spec.ports[0].port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// A field of the object itself.
    pub fn new(name: &str) -> Path {
        Path(name.to_owned())
    }
    /// A field of this one.
    pub fn child(&self, name: &str) -> Path {
        if self.0.is_empty() { Path(name.to_owned()) } else { Path([&self.0, ".", name].concat()) }
    }
    /// An element of this list.
    pub fn index(&self, index: usize) -> Path {
        Path(format!("{}[{index}]", self.0))
    }
    /// An entry of this map. Keys come from outside: a long one is shortened, for every path below
    /// repeats it.
    pub fn key(&self, key: &str) -> Path {
        Path([&self.0, "[", &golang::shorten(key, MAX_FIELD), "]"].concat())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kinds of mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Nothing where something must be.
    Required,
    /// A value that breaks a rule.
    Invalid,
    /// A value that is not one of the few allowed.
    NotSupported,
    /// A value that must be unique.
    Duplicate,
    /// A field that may not be set here.
    Forbidden,
    /// Too many bytes.
    TooLong,
    /// Too many elements.
    TooMany,
    /// A reference to nothing.
    NotFound,
    /// A value of the wrong type.
    TypeInvalid,
    /// Our own failure.
    Internal,
}

/// One mistake in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Where.
    pub field: String,
    /// What kind.
    pub mistake: Mistake,
    /// The wrong value as it is shown, if the kind shows one.
    pub value: Option<String>,
    /// What would be right.
    pub detail: String,
}

/// Maximum number of mistakes that are kept of one object. Each costs a few hundred bytes, and an
/// object has room for a million.
pub const MAX_MISTAKES: usize = 100;
/// Maximum length in bytes of the path of a field in a mistake.
const MAX_FIELD: usize = 1 << 10;
/// Maximum length in bytes of a wrong value in a mistake.
pub const MAX_SHOWN: usize = 4 << 10;
/// Maximum length in bytes of the detail of a mistake.
const MAX_DETAIL: usize = 4 << 10;

/// The mistakes of one object, in the order the rules found them. The first [`MAX_MISTAKES`] are
/// kept, of the others it is known that there are some. Rules that go through long lists stop at
/// [`FieldErrors::is_full`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldErrors {
    kept: Vec<FieldError>,
    more: bool,
}

impl FieldErrors {
    /// Returns an empty list.
    pub const fn new() -> FieldErrors {
        FieldErrors { kept: Vec::new(), more: false }
    }
    /// Adds a mistake, unless the list is full.
    pub fn push(&mut self, error: FieldError) {
        if self.is_full() {
            self.more = true;
        } else {
            self.kept.push(error);
        }
    }
    /// True if no further mistake is kept.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= MAX_MISTAKES
    }
    /// True if there are mistakes that are not kept.
    pub fn has_more(&self) -> bool {
        self.more
    }
    /// Removes and returns the first mistake.
    pub fn into_first(self) -> Option<FieldError> {
        self.kept.into_iter().next()
    }
}

impl Deref for FieldErrors {
    type Target = [FieldError];
    fn deref(&self) -> &[FieldError] {
        &self.kept
    }
}

impl<const N: usize> From<[FieldError; N]> for FieldErrors {
    fn from(errors: [FieldError; N]) -> FieldErrors {
        errors.into_iter().collect()
    }
}

/// An iterator that finds mistakes one by one is left at the first that is not kept.
impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        for error in errors {
            self.push(error);
            if self.more {
                return;
            }
        }
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> FieldErrors {
        let mut all = FieldErrors::new();
        all.extend(errors);
        all
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<'a> IntoIterator for &'a FieldErrors {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;
    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl FieldError {
    fn new(path: &Path, mistake: Mistake, value: Option<String>, detail: impl Into<String>) -> FieldError {
        let field = golang::shorten(&path.0, MAX_FIELD).into_owned();
        let detail = detail.into();
        let detail = if detail.len() > MAX_DETAIL { golang::shorten(&detail, MAX_DETAIL).into_owned() } else { detail };
        FieldError { field, mistake, value, detail }
    }
    /// Nothing where something must be.
    pub fn required(path: &Path, detail: impl Into<String>) -> FieldError {
        FieldError::new(path, Mistake::Required, None, detail)
    }
    /// A value that breaks a rule.
    pub fn invalid(path: &Path, value: impl Shown, detail: impl Into<String>) -> FieldError {
        FieldError::new(path, Mistake::Invalid, Some(value.shown()), detail)
    }
    /// A value that is not one of `allowed`, which are shown in the order given.
    pub fn not_supported(path: &Path, value: impl Shown, allowed: &[&str]) -> FieldError {
        let allowed: Vec<_> = allowed.iter().map(|v| golang::quote(v)).collect();
        let detail =
            if allowed.is_empty() { String::new() } else { format!("supported values: {}", allowed.join(", ")) };
        FieldError::new(path, Mistake::NotSupported, Some(value.shown()), detail)
    }
    /// A value that must be unique.
    pub fn duplicate(path: &Path, value: impl Shown) -> FieldError {
        FieldError::new(path, Mistake::Duplicate, Some(value.shown()), "")
    }
    /// A field that may not be set here.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> FieldError {
        FieldError::new(path, Mistake::Forbidden, None, detail)
    }
    /// A value of more than `max` bytes.
    pub fn too_long(path: &Path, max: usize) -> FieldError {
        FieldError::new(path, Mistake::TooLong, None, format!("may not be more than {max} bytes"))
    }
    /// A list of more than `max` elements.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> FieldError {
        FieldError::new(path, Mistake::TooMany, Some(actual.to_string()), format!("must have at most {max} items"))
    }
    /// A reference to nothing.
    pub fn not_found(path: &Path, value: impl Shown) -> FieldError {
        FieldError::new(path, Mistake::NotFound, Some(value.shown()), "")
    }
    /// The machine-readable reason of a Status cause.
    pub fn reason(&self) -> &'static str {
        match self.mistake {
            Mistake::Required => "FieldValueRequired",
            Mistake::Invalid => "FieldValueInvalid",
            Mistake::NotSupported => "FieldValueNotSupported",
            Mistake::Duplicate => "FieldValueDuplicate",
            Mistake::Forbidden => "FieldValueForbidden",
            Mistake::TooLong => "FieldValueTooLong",
            Mistake::TooMany => "FieldValueTooMany",
            Mistake::NotFound => "FieldValueNotFound",
            Mistake::TypeInvalid => "FieldValueTypeInvalid",
            Mistake::Internal => "InternalError",
        }
    }
    /// The text of a Status cause: everything but the field.
    pub fn body(&self) -> String {
        let mut text = match self.mistake {
            Mistake::Required => "Required value",
            Mistake::Invalid | Mistake::TypeInvalid => "Invalid value",
            Mistake::NotSupported => "Unsupported value",
            Mistake::Duplicate => "Duplicate value",
            Mistake::Forbidden => "Forbidden",
            Mistake::TooLong => "Too long",
            Mistake::TooMany => "Too many",
            Mistake::NotFound => "Not found",
            Mistake::Internal => "Internal error",
        }
        .to_owned();
        for part in [self.value.as_deref(), Some(self.detail.as_str())].into_iter().flatten() {
            if !part.is_empty() {
                text.push_str(": ");
                text.push_str(part);
            }
        }
        text
    }
}

/// A value that breaks a rule for each of these reasons.
pub fn invalid(path: &Path, value: &str, reasons: Vec<String>) -> FieldErrors {
    reasons.into_iter().map(|why| FieldError::invalid(path, value, why)).collect()
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// How a wrong value is shown in a message.
pub trait Shown {
    /// The text.
    fn shown(&self) -> String;
}

impl Shown for &str {
    fn shown(&self) -> String {
        golang::quote_short(self, MAX_SHOWN)
    }
}
impl Shown for String {
    fn shown(&self) -> String {
        golang::quote_short(self, MAX_SHOWN)
    }
}
impl Shown for &String {
    fn shown(&self) -> String {
        golang::quote_short(self, MAX_SHOWN)
    }
}
impl Shown for &Key {
    fn shown(&self) -> String {
        golang::quote_short(self, MAX_SHOWN)
    }
}
impl Shown for i64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}
impl Shown for bool {
    fn shown(&self) -> String {
        self.to_string()
    }
}
/// Strings are quoted as Go does it, everything else is compact JSON; null is `null`.
impl Shown for &Value {
    fn shown(&self) -> String {
        match self {
            Value::String(text) => golang::quote_short(text, MAX_SHOWN),
            other => golang::json_short(other, MAX_SHOWN),
        }
    }
}
