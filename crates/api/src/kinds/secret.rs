//! Secret: configuration that not everyone may read.

use crate::value::Value;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::config_map::{MAX_SIZE, bytes, frozen, size};
use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::schema::core::SECRET;
use crate::{Look, Settings, names};

/// The rules.
pub static RULES: Rules = Rules {
    default,
    prepare_update: |object, old, _| {
        if object.text("type").is_empty() {
            SECRET.place(object, "type", old.text("type"));
        }
    },
    validate,
    validate_update,
    warnings,
    selectable: &[("type", |secret| secret.text("type").to_owned())],
    columns: &[
        columns::NAME,
        columns::text("Type", "What kind of secret it is."),
        columns::text("Data", "How many keys it has."),
        columns::AGE,
    ],
    row: |object, now| {
        let count = size(object.map("data"));
        vec![columns::name(object), object.text("type").into(), count.into(), columns::age_of(object, now)]
    },
    ..Rules::PLAIN
};

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const REDACTED: &str = "<secret contents redacted>";

/// `stringData` is a way to write `data`; it is never kept.
fn default(object: &mut Value, _: &Settings) {
    if let Some(Value::Object(texts)) = object.unset("stringData") {
        let mut data = object.unset("data").unwrap_or_default();
        for (key, text) in texts {
            data.set(key, STANDARD.encode(text.as_str().unwrap_or_default()));
        }
        if let Value::Object(data) = &mut data {
            data.sort_keys();
        }
        SECRET.place(object, "data", data);
    }
    if object.text("type").is_empty() {
        SECRET.place(object, "type", "Opaque");
    }
}

fn validate(object: &Value, _: Option<&Value>, _: &Settings) -> FieldErrors {
    let path = Path::new("data");
    let mut errors = FieldErrors::new();
    let mut total = 0;
    for (key, value) in object.map("data").into_iter().flatten() {
        errors.extend(invalid(&path.key(key), key, names::config_key(key)));
        total += bytes(value);
    }
    if total > MAX_SIZE {
        errors.push(FieldError::too_long(&path, MAX_SIZE));
    }
    errors.extend(contents(object));
    errors
}

/// What a secret of one of the known types must hold.
fn contents(object: &Value) -> FieldErrors {
    let data = object.at("data");
    let missing = |keys: &[&str]| -> FieldErrors {
        let missing = keys.iter().filter(|key| data.at(key).is_null());
        missing.map(|key| FieldError::required(&Path::new("data").key(key), "")).collect()
    };
    match object.text("type") {
        "kubernetes.io/service-account-token" => {
            let path = Path::new("metadata").child("annotations").key(SERVICE_ACCOUNT_NAME);
            let named = !object.at("metadata").at("annotations").text(SERVICE_ACCOUNT_NAME).is_empty();
            if named { FieldErrors::new() } else { FieldErrors::from([FieldError::required(&path, "")]) }
        }
        "kubernetes.io/dockercfg" => json_object(data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json_object(data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" => {
            let missing = missing(&["username", "password"]);
            // One of the two is enough.
            if missing.len() == 2 { missing } else { FieldErrors::new() }
        }
        "kubernetes.io/ssh-auth" if data.text("ssh-privatekey").is_empty() => {
            FieldErrors::from([FieldError::required(&Path::new("data").key("ssh-privatekey"), "")])
        }
        "kubernetes.io/tls" => missing(&["tls.crt", "tls.key"]),
        _ => FieldErrors::new(),
    }
}

fn json_object(data: &Value, key: &str) -> FieldErrors {
    let path = Path::new("data").key(key);
    if data.at(key).is_null() {
        return FieldErrors::from([FieldError::required(&path, "")]);
    }
    let text = decoded(data, key);
    let why = match serde_json::from_slice::<Value>(&text) {
        Ok(Value::Object(_) | Value::Null) => return FieldErrors::new(),
        Ok(_) => "json: cannot unmarshal value into Go value of type map[string]interface {}".to_owned(),
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => {
            let at = error.column().saturating_sub(1);
            let found = text.get(at).map_or(' ', |byte| char::from(*byte));
            format!("invalid character '{found}' looking for beginning of value")
        }
    };
    FieldErrors::from([FieldError::invalid(&path, REDACTED, why)])
}

fn validate_update(object: &Value, old: &Value, _: &Settings) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if object.text("type") != old.text("type") {
        errors.push(FieldError::invalid(&Path::new("type"), object.text("type"), "field is immutable"));
    }
    errors.extend(frozen(object, old, &["data"]));
    errors
}

/// A certificate that cannot be one. Whether certificate and key belong together is not looked at.
fn warnings(object: &Value, _: Option<&Value>, _: &Settings) -> Vec<String> {
    if object.text("type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let lacks_pem = |key: &str| !String::from_utf8_lossy(&decoded(object.at("data"), key)).contains("-----BEGIN ");
    let pieces = [("tls.crt", "certificate"), ("tls.key", "key")];
    let bad = pieces.into_iter().find(|(key, _)| lacks_pem(key));
    bad.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input")).into_iter().collect()
}

fn decoded(data: &Value, key: &str) -> Vec<u8> {
    STANDARD.decode(data.text(key)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
