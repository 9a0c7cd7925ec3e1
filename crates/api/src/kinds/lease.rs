//! Lease: who leads, and until when.

use crate::value::Value;

use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors, Path};
use crate::meta::Checks;
use crate::{Look, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks { qualified_finalizers: false, ..Checks::CHANGE_ONLY },
    prepare_create: |object, _| drop_coordination(object, None),
    prepare_update: |object, old, _| drop_coordination(object, Some(old)),
    validate,
    columns: &[columns::NAME, columns::text("Holder", "Who holds it."), columns::AGE],
    row: |object, now| {
        vec![columns::name(object), object.at("spec").text("holderIdentity").into(), columns::age_of(object, now)]
    },
    ..Rules::PLAIN
};

/// Coordinated leader election is not offered: its fields are dropped unless they are already stored.
fn drop_coordination(object: &mut Value, old: Option<&Value>) {
    for field in ["strategy", "preferredHolder"] {
        if old.is_some_and(|old| !old.at("spec").at(field).is_null()) {
            continue;
        }
        if let Some(spec) = object.get_mut("spec") {
            spec.unset(field);
        }
    }
}

fn validate(object: &Value, _: Option<&Value>, _: &Settings) -> FieldErrors {
    let (path, spec) = (Path::new("spec"), object.at("spec"));
    let mut errors = FieldErrors::new();
    if let Some(seconds @ ..=0) = spec.int_opt("leaseDurationSeconds") {
        errors.push(FieldError::invalid(&path.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    if let Some(count @ ..0) = spec.int_opt("leaseTransitions") {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("leaseTransitions"), count, why));
    }
    if !spec.text("preferredHolder").is_empty() && spec.text("strategy").is_empty() {
        let why = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&path.child("preferredHolder"), why));
    }
    errors
}
