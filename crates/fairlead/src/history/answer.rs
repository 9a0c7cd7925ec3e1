//! What the server answers about the past: `/fairlead/v1/history` and `/fairlead/v1/history/at`.

use fairlead_api::Failure;
use fairlead_history::{Error, History, Subject, Wish};
use fairlead_server::pages::Question;
use jiff::{Timestamp, Zoned};
use serde_json::Value;

use super::times;

/// Where what happened is.
pub(super) const TIMELINE: &str = "/fairlead/v1/history";
/// Where what was there at a time is.
pub(super) const MOMENT: &str = "/fairlead/v1/history/at";
/// How much is told where nobody says.
const LIMIT: usize = 200;
/// The most that is told.
const MOST: usize = 10_000;

/// `history?subject=svc/NS/NAME&since=10m&limit=200`
pub(crate) async fn timeline(history: Option<&History>, question: &Question<'_>) -> Result<Value, Failure> {
    let history = history.ok_or_else(none)?;
    let subject = match question.text("subject") {
        "" => None,
        text => Some(subject(text)?),
    };
    let since = match question.text("since") {
        "" => None,
        text => Some(time("since", text)?),
    };
    let limit = match question.text("limit") {
        "" => LIMIT,
        text => text.parse().map_err(|_| Failure::bad_request(format!("limit: {text:?} is no number")))?,
    };
    let wish = Wish { subject, since, limit: limit.min(MOST) };
    Ok(history.timeline(wish).await.map_err(failed)?.json())
}

/// `history/at?subject=svc/NS/NAME&at=RFC3339|now`
pub(crate) async fn moment(history: Option<&History>, question: &Question<'_>) -> Result<Value, Failure> {
    let history = history.ok_or_else(none)?;
    let subject = subject(question.text("subject"))?;
    let at = match question.text("at") {
        "" | "now" => None,
        text => Some(time("at", text)?),
    };
    Ok(history.moment(subject, at).await.map_err(failed)?.json())
}

fn subject(text: &str) -> Result<Subject, Failure> {
    text.parse().map_err(|why| Failure::bad_request(format!("subject: {why}")))
}

fn time(what: &str, text: &str) -> Result<Timestamp, Failure> {
    times::read(text, &Zoned::now()).map_err(|why| Failure::bad_request(format!("{what}: {why}")))
}

fn none() -> Failure {
    Failure::new(404, "NotFound", "no history is kept: the server was started with --history-size or --history-age 0")
}

fn failed(error: Error) -> Failure {
    match error {
        Error::TooEarly { .. } => Failure::new(410, "Expired", error.to_string()),
        Error::Io(_) | Error::Broken => Failure::new(500, "InternalError", error.to_string()),
    }
}
