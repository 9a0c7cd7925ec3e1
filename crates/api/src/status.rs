//! A request that failed, as the API says it: a `Status` object with code, reason, message, details.

use crate::value::{Map, Value, json};

use crate::field::{FieldError, FieldErrors};
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
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
    fn details(&self) -> Map {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        }
        details
    }
}

impl Failure {
    /// A failure without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Failure {
        Failure { code, reason, message: message.into(), details: None }
    }
    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(400, "BadRequest", message)
    }
    /// 404 for an object. `subject.kind` is the resource.
    pub fn not_found(subject: Subject<'_>) -> Failure {
        let message = format!("{} {} not found", subject.qualified(), golang::quote(subject.name));
        Failure::new(404, "NotFound", message).with(subject.details())
    }
    /// 409 for a name that is taken. `subject.kind` is the resource.
    pub fn already_exists(subject: Subject<'_>) -> Failure {
        let message = format!("{} {} already exists", subject.qualified(), golang::quote(subject.name));
        Failure::new(409, "AlreadyExists", message).with(subject.details())
    }
    /// 409 for a write based on an old version. `subject.kind` is the resource.
    pub fn conflict(subject: Subject<'_>, why: &str) -> Failure {
        let message =
            format!("Operation cannot be fulfilled on {} {}: {why}", subject.qualified(), golang::quote(subject.name));
        Failure::new(409, "Conflict", message).with(subject.details())
    }
    /// 403. `subject.kind` is the resource.
    pub fn forbidden(subject: Subject<'_>, why: &str) -> Failure {
        let message = format!("{} {} is forbidden: {why}", subject.qualified(), golang::quote(subject.name));
        Failure::new(403, "Forbidden", message).with(subject.details())
    }
    /// 422 with a cause for each mistake. `subject.kind` is the kind.
    pub fn invalid(subject: Subject<'_>, errors: &FieldErrors) -> Failure {
        let mut all: Vec<String> = Vec::with_capacity(errors.len());
        for text in errors.iter().map(FieldError::to_string) {
            // Two rules may find the same mistake: both are causes, but the message says it once.
            if !all.contains(&text) {
                all.push(text);
            }
        }
        let text = if all.len() == 1 { all[0].clone() } else { format!("[{}]", all.join(", ")) };
        let causes: Vec<Value> =
            errors.iter().map(|e| json!({"reason": e.reason(), "message": e.body(), "field": e.field})).collect();
        let mut details = subject.details();
        details.insert("causes", causes.into());
        Failure::new(
            422,
            "Invalid",
            format!("{} {} is invalid: {text}", subject.qualified(), golang::quote(subject.name)),
        )
        .with(details)
    }
    /// 500.
    pub fn internal(message: impl Into<String>) -> Failure {
        let message = message.into();
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
