//! A request that failed, as the API says it: a `Status` object with code, reason, message, details.

use crate::value::{Map, Value, json};

use crate::field::FieldErrors;
use crate::golang;

/// Why a request failed. Becomes the answer's HTTP code and `Status` body.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable reason, `""` for none.
    pub reason: &'static str,
    /// What a person reads.
    pub message: String,
    /// `details` of the Status: name, group, kind, causes, uid, retryAfterSeconds.
    pub details: Option<Value>,
}

/// Maximum size in bytes of a message as JSON. Many messages quote what a client sent.
const MAX_MESSAGE: usize = 24 << 10;
/// Maximum size in bytes of a character as JSON: control characters are written as `\u0001`.
const MAX_ESCAPE: usize = 6;
/// Size in bytes of the listed mistakes, as JSON, from which on no further is added.
const MAX_TEXT: usize = 12 << 10;
/// Maximum length in bytes of the name of an object in a message. A valid name has at most 253.
const MAX_NAME: usize = 1 << 10;

/// Returns the size of a text as JSON.
fn escaped_size(text: &str) -> usize {
    let escapes = |byte: u8| match byte {
        b'"' | b'\\' => 1,
        0..=0x1f => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(escapes).sum::<usize>()
}

/// Which object or kind a failure is about. `group` is empty for the core group.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The API group.
    pub group: &'a str,
    /// The resource (`services`) or kind (`Service`), whichever the message names.
    pub kind: &'a str,
    /// The object.
    pub name: &'a str,
}

impl Subject<'_> {
    /// The name as messages quote it.
    fn quoted(&self) -> String {
        golang::quote_short(self.name, MAX_NAME)
    }
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
    fn details(&self) -> Map {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), golang::shorten(value, MAX_NAME).into_owned().into());
            }
        }
        details
    }
}

impl Failure {
    /// A failure without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Failure {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE / MAX_ESCAPE && escaped_size(&message) > MAX_MESSAGE {
            message = golang::shorten(&message, MAX_MESSAGE / MAX_ESCAPE).into_owned();
        }
        Failure { code, reason, message, details: None }
    }
    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(400, "BadRequest", message)
    }
    /// 404 for an object. `subject.kind` is the resource.
    pub fn not_found(subject: Subject<'_>) -> Failure {
        let message = format!("{} {} not found", subject.qualified(), subject.quoted());
        Failure::new(404, "NotFound", message).with(subject.details())
    }
    /// 409 for a name that is taken. `subject.kind` is the resource.
    pub fn already_exists(subject: Subject<'_>) -> Failure {
        let message = format!("{} {} already exists", subject.qualified(), subject.quoted());
        Failure::new(409, "AlreadyExists", message).with(subject.details())
    }
    /// 409 for a write based on an old version. `subject.kind` is the resource.
    pub fn conflict(subject: Subject<'_>, why: &str) -> Failure {
        let message = format!("Operation cannot be fulfilled on {} {}: {why}", subject.qualified(), subject.quoted());
        Failure::new(409, "Conflict", message).with(subject.details())
    }
    /// 403. `subject.kind` is the resource.
    pub fn forbidden(subject: Subject<'_>, why: &str) -> Failure {
        let message = format!("{} {} is forbidden: {why}", subject.qualified(), subject.quoted());
        Failure::new(403, "Forbidden", message).with(subject.details())
    }
    /// 422 with a cause for each mistake. `subject.kind` is the kind.
    pub fn invalid(subject: Subject<'_>, errors: &FieldErrors) -> Failure {
        let mut all: Vec<String> = Vec::with_capacity(errors.len());
        let mut causes: Vec<Value> = Vec::with_capacity(errors.len());
        let mut size = 0;
        let mut more = errors.has_more();
        for error in errors {
            if size > MAX_TEXT {
                more = true;
                break;
            }
            let text = error.to_string();
            size += escaped_size(&text);
            causes.push(json!({"reason": error.reason(), "message": error.body(), "field": error.field}));
            // Two rules may find the same mistake: both are causes, but the message says it once.
            if !all.contains(&text) {
                all.push(text);
            }
        }
        if more {
            let why = format!("there are more mistakes: only the first {} are listed", causes.len());
            causes.push(json!({"reason": "FieldValueTooMany", "message": why, "field": ""}));
            all.push(why);
        }
        let text = if all.len() == 1 { all[0].clone() } else { format!("[{}]", all.join(", ")) };
        let mut details = subject.details();
        details.insert("causes", causes.into());
        Failure::new(422, "Invalid", format!("{} {} is invalid: {text}", subject.qualified(), subject.quoted()))
            .with(details)
    }
    /// 500.
    pub fn internal(message: impl Into<String>) -> Failure {
        let message = message.into();
        let message = golang::shorten(&message, MAX_MESSAGE);
        let details = json!({"causes": [{"message": message}]});
        Failure {
            code: 500,
            reason: "InternalError",
            message: format!("Internal error occurred: {message}"),
            details: Some(details),
        }
    }
    /// The same failure with these details.
    pub fn with(mut self, details: Map) -> Failure {
        self.details = Some(Value::Object(details));
        self
    }
    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status["code"] = self.code.into();
        status
    }
}
