//! ServiceAccount: who a program is.

use crate::value::{Value, json};

use super::{Rules, columns};
use crate::{Look, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    prepare_create: |object, _| keep_secret_names(object),
    prepare_update: |object, _, _| keep_secret_names(object),
    warnings,
    columns: &[columns::NAME, columns::AGE],
    row: |object, now| vec![columns::name(object), columns::age_of(object, now)],
    ..Rules::PLAIN
};

const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Of the references to secrets only the name counts.
fn keep_secret_names(object: &mut Value) {
    for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        *secret = match secret.text("name") {
            "" => json!({}),
            name => json!({"name": name}),
        };
    }
}

fn warnings(object: &Value, old: Option<&Value>, _: &Settings) -> Vec<String> {
    let has = |object: &Value| !object.at("metadata").at("annotations").at(MOUNTABLE).is_null();
    if !has(object) || old.is_some_and(has) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    )]
}
