//! Mistakes in the environment of a container.

use crate::value::Value;

use super::refuse;
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::quantity::Quantity;
use crate::{Path, names};

/// `env` and `envFrom`.
pub(super) fn validate(container: &Value, path: &Path, errors: &mut FieldErrors) {
    let list = path.child("env");
    for (at, variable) in container.list("env").iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let (path, name) = (list.index(at), variable.text("name"));
        match name {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name => refuse(errors, &path.child("name"), name, name_reasons(name)),
        }
        validate_source(variable, &path.child("valueFrom"), errors);
    }
    let list = path.child("envFrom");
    for (at, source) in container.list("envFrom").iter().enumerate() {
        if errors.is_full() {
            break;
        }
        validate_from(source, &list, at, errors);
    }
}

/// Since names are passed on as they are, only what the kernel cannot take is refused.
fn name_reasons(name: &str) -> names::Reasons {
    if name.chars().all(|c| (' '..='~').contains(&c) && c != '=') {
        return Vec::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()]
}

fn validate_from(source: &Value, list: &Path, at: usize, errors: &mut FieldErrors) {
    let (path, prefix) = (list.index(at), source.text("prefix"));
    refuse(errors, &path.child("prefix"), prefix, name_reasons(prefix));
    let mut sources = 0;
    for field in ["configMapRef", "secretRef"] {
        if source.at(field).is_null() {
            continue;
        }
        sources += 1;
        let name_path = path.child(field).child("name");
        match source.at(field).text("name") {
            "" => errors.push(FieldError::required(&name_path, "")),
            name => refuse(errors, &name_path, name, names::subdomain(name.strip_suffix('-').unwrap_or(name))),
        }
    }
    let detail = match sources {
        0 => "must specify one of: `configMapRef` or `secretRef`",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(list, "", detail));
}

fn validate_source(variable: &Value, path: &Path, errors: &mut FieldErrors) {
    let from = variable.at("valueFrom");
    if from.is_null() {
        return;
    }
    let mut sources = 0;
    let mut each = |field: &str, rule: fn(&Value, &Path, &mut FieldErrors)| {
        if !from.at(field).is_null() {
            sources += 1;
            rule(from.at(field), &path.child(field), errors);
        }
    };
    each("fieldRef", |field, path, errors| validate_field(field, FIELDS, path, errors));
    each("resourceFieldRef", |field, path, errors| validate_resource_field(field, false, path, errors));
    each("configMapKeyRef", validate_key);
    each("secretKeyRef", validate_key);
    each("fileKeyRef", validate_file);
    let detail = match sources {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !variable.text("value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", detail));
}

/// What a variable may be told of its Pod.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields the reference server can convert, in whatever place.
const CONVERTED: &[&str] = &["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName"];

/// `fieldRef`: `metadata.labels['app']` or one of `fields`.
pub(super) fn validate_field(field: &Value, fields: &[&str], path: &Path, errors: &mut FieldErrors) {
    let text = field.text("fieldPath");
    if field.text("apiVersion").is_empty() {
        return errors.push(FieldError::required(&path.child("apiVersion"), ""));
    }
    if text.is_empty() {
        return errors.push(FieldError::required(&path.child("fieldPath"), ""));
    }
    let subscript = text.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            refuse(errors, path, &key.to_lowercase(), names::label_key(&key.to_lowercase()))
        }
        Some(("metadata.labels", key)) => refuse(errors, path, key, names::label_key(key)),
        None if fields.contains(&text) => {}
        None if FIELDS.contains(&text) || CONVERTED.contains(&text) => {
            errors.push(FieldError::not_supported(&path.child("fieldPath"), text, fields));
        }
        _ => {
            let detail = format!("error converting fieldPath: field label not supported: {text}");
            errors.push(FieldError::invalid(&path.child("fieldPath"), text, detail));
        }
    }
}

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// `resourceFieldRef`; in a volume it must name the container.
pub(super) fn validate_resource_field(field: &Value, in_volume: bool, path: &Path, errors: &mut FieldErrors) {
    let resource = field.text("resource");
    let pages = resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if in_volume && field.text("containerName").is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !pages {
        errors.push(FieldError::not_supported(&path.child("resource"), resource, RESOURCES));
    }
    let divisor = field.text("divisor");
    let set = Quantity::parse(divisor).is_ok_and(|divisor| divisor.sign().is_ne());
    let (allowed, what) = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => (&["1m", "1"][..], "cpu"),
        Some("memory") => (BYTES, "memory"),
        Some("ephemeral-storage") => (BYTES, "local ephemeral storage"),
        _ if pages => (BYTES, "hugepages"),
        _ => return,
    };
    if set && !allowed.contains(&divisor) {
        let list = if what == "cpu" { "1m and 1".to_owned() } else { BYTES.join(", ") };
        let detail = format!("only divisor's values {list} are supported with the {what} resource");
        errors.push(FieldError::invalid(&path.child("divisor"), resource, detail));
    }
}

const BYTES: &[&str] = &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

fn validate_key(key: &Value, path: &Path, errors: &mut FieldErrors) {
    let name = key.text("name");
    refuse(errors, &path.child("name"), name, names::subdomain(name));
    match key.text("key") {
        "" => errors.push(FieldError::required(&path.child("key"), "")),
        text => refuse(errors, &path.child("key"), text, names::config_key(text)),
    }
}

fn validate_file(file: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut each = |field: &str, rule: fn(&str) -> names::Reasons| match file.text(field) {
        "" => errors.push(FieldError::required(&path.child(field), "")),
        text => refuse(errors, &path.child(field), text, rule(text)),
    };
    each("key", name_reasons);
    each("volumeName", names::label);
    each("path", no_backsteps);
}

/// A path that does not climb.
pub(super) fn no_backsteps(path: &str) -> names::Reasons {
    if path.split('/').any(|part| part == "..") { vec!["must not contain '..'".to_owned()] } else { Vec::new() }
}
