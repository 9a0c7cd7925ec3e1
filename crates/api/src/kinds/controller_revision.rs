//! Rules of ControllerRevision: a state of a DaemonSet or StatefulSet that is kept to return to.

use super::workload::{self, IMMUTABLE};
use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::value::Value;
use crate::{Path, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    validate,
    columns: &[
        columns::NAME,
        columns::text("Controller", "Controller of the object"),
        columns::text("Revision", "The number of the revision; later ones are greater."),
        columns::AGE,
    ],
    row: |revision, now| {
        vec![
            columns::name(revision),
            controller(revision).into(),
            revision.int("revision").into(),
            columns::age_of(revision, now),
        ]
    },
    ..Rules::PLAIN
};

/// The owner that controls the object, as `daemonset.apps/web`.
fn controller(revision: &Value) -> String {
    let owners = revision.at("metadata").list("ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner.flag("controller")) else { return "<none>".to_owned() };
    let group = owner.text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    format!("{}{dot}{group}/{}", owner.text("kind").to_lowercase(), owner.text("name"))
}

fn validate(revision: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let mut errors = FieldErrors::new();
    workload::not_negative(revision, &["revision"], &Path::new(""), &mut errors);
    let data = revision.at("data");
    let path = Path::new("data");
    match old {
        Some(old) if data != old.at("data") => errors.push(FieldError::invalid(&path, data, IMMUTABLE)),
        Some(_) => {}
        None if data.is_null() => errors.push(FieldError::required(&path, "data is mandatory")),
        None if !data.is_object() => errors.push(FieldError::required(&path, "data must be a valid JSON object")),
        None => {}
    }
    errors
}
