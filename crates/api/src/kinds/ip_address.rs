//! IPAddress: an address that is taken, and by whom. Its name is the address.

use crate::value::{Value, json};

use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::meta::Checks;
use crate::{Look, Settings, ip, names};

/// The rules.
pub static RULES: Rules = Rules {
    name: |name, _| ip::canonical_reasons(name),
    metadata: Checks::WHOLE_FIRST,
    validate,
    validate_update,
    columns: &[columns::NAME, columns::text("ParentRef", "Who took it.")],
    // The reference server sends the age too, though no column names it.
    row: |object, now| vec![columns::name(object), parent(object).into(), columns::age_of(object, now)],
    ..Rules::PLAIN
};

fn validate(object: &Value, _: Option<&Value>, _: &Settings) -> FieldErrors {
    let path = Path::new("spec").child("parentRef");
    let parent = object.at("spec").at("parentRef");
    if parent.is_null() {
        return FieldErrors::from([FieldError::required(&path, "")]);
    }
    let group = parent.text("group");
    let mut errors = match group {
        "" => FieldErrors::new(),
        group => invalid(&path.child("group"), group, names::subdomain(group)),
    };
    for (field, required) in [("resource", true), ("name", true), ("namespace", false)] {
        let (path, value) = (path.child(field), parent.text(field));
        match value {
            "" if required => errors.push(FieldError::required(&path, "")),
            value => errors.extend(invalid(&path, value, names::path_segment(value))),
        }
    }
    errors
}

fn validate_update(object: &Value, old: &Value, _: &Settings) -> FieldErrors {
    let (new, old) = (object.at("spec").at("parentRef"), old.at("spec").at("parentRef"));
    if new == old {
        return FieldErrors::new();
    }
    // Shown by the names of the reference server's internal type.
    let shown = match new {
        Value::Null => Value::Null,
        new => json!({
            "Group": new.text("group"), "Resource": new.text("resource"),
            "Namespace": new.text("namespace"), "Name": new.text("name"),
        }),
    };
    FieldErrors::from([FieldError::invalid(&Path::new("spec").child("parentRef"), &shown, "field is immutable")])
}

fn parent(object: &Value) -> String {
    let parent = object.at("spec").at("parentRef");
    if parent.is_null() {
        return "<none>".to_owned();
    }
    let mut text = match parent.text("group") {
        "" => parent.text("resource").to_lowercase(),
        group => format!("{}.{group}", parent.text("resource")).to_lowercase(),
    };
    for part in [parent.text_opt("namespace"), Some(parent.text("name"))].into_iter().flatten() {
        text.push('/');
        text.push_str(part);
    }
    text
}
