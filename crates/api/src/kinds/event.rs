//! Event: something happened to an object. Two groups serve it, the core group and `events.k8s.io`; it is stored as the
//! core group writes it, and these rules read that form. `events.k8s.io` is the stricter of the two.

use crate::value::Value;

use super::{Column, Rules, columns};
use crate::Look;
use crate::age::age;
use crate::meta::{Check, Checks};

mod convert;
mod validate;

pub use convert::{load, store};

/// The rules of the core group.
pub static RULES: Rules = Rules {
    name: |_, _| Vec::new(),
    metadata: Checks::NONE,
    validate: |object, _, _| validate::lenient(object, "reportingComponent"),
    selectable: &[
        ("involvedObject.kind", |event| involved(event, "kind")),
        ("involvedObject.namespace", |event| involved(event, "namespace")),
        ("involvedObject.name", |event| involved(event, "name")),
        ("involvedObject.uid", |event| involved(event, "uid")),
        ("involvedObject.apiVersion", |event| involved(event, "apiVersion")),
        ("involvedObject.resourceVersion", |event| involved(event, "resourceVersion")),
        ("involvedObject.fieldPath", |event| involved(event, "fieldPath")),
        ("reason", |event| event.text("reason").to_owned()),
        ("reportingComponent", |event| event.text("reportingComponent").to_owned()),
        ("source", source_component),
        ("type", |event| event.text("type").to_owned()),
    ],
    columns: &[
        columns::text("Last Seen", "When it happened last."),
        columns::text("Type", "Normal or Warning."),
        columns::text("Reason", "Why it happened, in a word."),
        columns::text("Object", "What it happened to."),
        columns::wide("Subobject", "Which part of the object."),
        columns::wide("Source", "Who noticed."),
        columns::text("Message", "What happened."),
        columns::wide("First Seen", "When it happened first."),
        columns::wide("Count", "How often it happened."),
        Column { priority: 1, ..columns::NAME },
    ],
    row,
    ..Rules::PLAIN
};

/// The rules of `events.k8s.io`.
pub static EVENTS_RULES: Rules = Rules {
    name: crate::meta::subdomain_name,
    metadata: Checks { create: &[Check::Whole], update: &[Check::Change], ..Checks::USUAL },
    validate: |object, old, _| validate::strict(object, old.is_none()),
    validate_update: |object, old, _| validate::change(object, old),
    selectable: &[
        ("regarding.kind", |event| involved(event, "kind")),
        ("regarding.namespace", |event| involved(event, "namespace")),
        ("regarding.name", |event| involved(event, "name")),
        ("regarding.uid", |event| involved(event, "uid")),
        ("regarding.apiVersion", |event| involved(event, "apiVersion")),
        ("regarding.resourceVersion", |event| involved(event, "resourceVersion")),
        ("regarding.fieldPath", |event| involved(event, "fieldPath")),
        ("reason", |event| event.text("reason").to_owned()),
        ("reportingController", |event| event.text("reportingComponent").to_owned()),
        ("type", |event| event.text("type").to_owned()),
    ],
    ..RULES
};

fn involved(event: &Value, field: &str) -> String {
    event.at("involvedObject").text(field).to_owned()
}

/// Older events name a source, newer ones a reporting component.
fn source_component(event: &Value) -> String {
    first_of(event.at("source").text("component"), event.text("reportingComponent")).to_owned()
}

fn first_of<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}

fn row(event: &Value, now: i64) -> Vec<Value> {
    let seen = |time: &str| age(time, now);
    let first = seen(first_of(event.text("firstTimestamp"), event.text("eventTime")));
    let series = event.at("series");
    let (last, count) = if series.is_null() {
        let last = event.text("lastTimestamp");
        let last = if last.is_empty() { first.clone() } else { seen(last) };
        // One that happened once has no count in the newer group.
        (last, event.int_opt("count").unwrap_or(1))
    } else {
        (seen(series.text("lastObservedTime")), series.int("count"))
    };
    vec![
        last.into(),
        event.text("type").into(),
        event.text("reason").into(),
        target(event.at("involvedObject")).into(),
        event.at("involvedObject").text("fieldPath").into(),
        source(event).into(),
        event.text("message").trim().into(),
        first.into(),
        count.into(),
        columns::name(event),
    ]
}

fn target(object: &Value) -> String {
    let kind = object.text("kind").to_lowercase();
    match object.text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let component = source_component(event);
    match first_of(event.at("source").text("host"), event.text("reportingInstance")) {
        "" => component,
        instance => format!("{component}, {instance}"),
    }
}

#[cfg(test)]
mod tests;
