//! What a request can end with, by what the caller can do about it.

use std::time::Duration;

use fairlead_api::Value;
use fairlead_api::{Failure, Look};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// Why a request did not do what it was meant to.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// There is no such object.
    #[error("{}", .0.message)]
    NotFound(Failure),
    /// There is one of that name already.
    #[error("{}", .0.message)]
    AlreadyExists(Failure),
    /// The object is another one by now: read it and try again.
    #[error("{}", .0.message)]
    Conflict(Failure),
    /// The object breaks a rule; the causes are in the details.
    #[error("{}", .0.message)]
    Invalid(Failure),
    /// We are not known, or not allowed to.
    #[error("{}", .0.message)]
    Forbidden(Failure),
    /// The version asked for is no longer kept.
    #[error("{}", .0.message)]
    Expired(Failure),
    /// Any other refusal that stays the same when tried again.
    #[error("{}", .0.message)]
    Refused(Failure),
    /// No answer, or one that asks to come back later. A write may or may not have happened.
    #[error("{message}")]
    Unavailable {
        /// What happened.
        message: String,
        /// When the server wants to be asked again.
        retry_after: Option<Duration>,
    },
}

impl Error {
    /// Nobody answered.
    pub(crate) fn unavailable(message: impl Into<String>) -> Error {
        Error::Unavailable { message: message.into(), retry_after: None }
    }

    /// Whether the same request may go well later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Unavailable { .. })
    }

    /// Whether the object has to be read again first.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict(_))
    }

    /// Whether nothing can be made any more because the namespace is on its way out.
    pub fn is_namespace_terminating(&self) -> bool {
        let Error::Forbidden(Failure { details: Some(details), .. }) = self else { return false };
        details.list("causes").iter().any(|cause| cause.text("reason") == "NamespaceTerminating")
    }

    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound(_))
    }
}

/// A failure the API told us of.
impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        match (failure.code, failure.reason) {
            (404, _) => Error::NotFound(failure),
            (409, "AlreadyExists") => Error::AlreadyExists(failure),
            (409, _) => Error::Conflict(failure),
            (422, _) => Error::Invalid(failure),
            (401 | 403, _) => Error::Forbidden(failure),
            (410, _) => Error::Expired(failure),
            (429 | 500.., _) => {
                let seconds = failure.details.as_ref().and_then(|details| details.at("retryAfterSeconds").as_u64());
                Error::Unavailable { message: failure.message, retry_after: seconds.map(Duration::from_secs) }
            }
            _ => Error::Refused(failure),
        }
    }
}

/// The failure a watch or a list ends with.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::NotFound(failure)
            | Error::AlreadyExists(failure)
            | Error::Conflict(failure)
            | Error::Invalid(failure)
            | Error::Forbidden(failure)
            | Error::Expired(failure)
            | Error::Refused(failure) => failure,
            Error::Unavailable { message, .. } => Failure::new(503, "ServiceUnavailable", message),
        }
    }
}

/// Reads the failure out of an answer's body: a `Status`, or whatever stood in its way.
pub(crate) fn failure(code: u16, body: &[u8]) -> Failure {
    match serde_json::from_slice::<Value>(body) {
        Ok(status) if status.text("kind") == "Status" => from_status(code, &status),
        _ => {
            let text: String = String::from_utf8_lossy(body).chars().take(FOREIGN_TEXT).collect();
            Failure::new(code, reason_of(code), format!("the server answered {code}: {}", text.trim()))
        }
    }
}

/// How much of an answer that is no `Status` is shown.
const FOREIGN_TEXT: usize = 200;

/// The failure a `Status` object tells of.
pub(crate) fn from_status(code: u16, status: &Value) -> Failure {
    let told = status.at("code").as_u64().and_then(|code| u16::try_from(code).ok());
    let code = told.filter(|code| *code >= 400).unwrap_or(code);
    let said = status.text("reason");
    let reason = REASONS.iter().find(|(_, reason)| *reason == said).map_or("", |(_, reason)| reason);
    let details = Some(status.at("details")).filter(|details| !details.is_null()).cloned();
    Failure { code, reason, message: status.text("message").to_owned(), details }
}

fn reason_of(code: u16) -> &'static str {
    REASONS.iter().find(|(known, _)| *known == code).map_or("", |(_, reason)| reason)
}

/// The reasons a Status may give, the usual one of each code first.
const REASONS: &[(u16, &str)] = &[
    (400, "BadRequest"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (405, "MethodNotAllowed"),
    (406, "NotAcceptable"),
    (409, "Conflict"),
    (409, "AlreadyExists"),
    (410, "Expired"),
    (410, "Gone"),
    (413, "RequestEntityTooLarge"),
    (415, "UnsupportedMediaType"),
    (422, "Invalid"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (500, "ServerTimeout"),
    (503, "ServiceUnavailable"),
    (504, "Timeout"),
];
