//! Mistakes in what a Pod says about nodes: selectors, affinity, spread and tolerations.

use std::collections::HashMap;

use crate::value::Value;

use super::refuse;
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::{Path, names};

/// `nodeSelector`.
pub(super) fn validate_node_selector(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let path = path.child("nodeSelector");
    for (key, value) in spec.map("nodeSelector").into_iter().flatten() {
        refuse(errors, &path, key, names::label_key(key));
        let value = value.as_str().unwrap_or_default();
        refuse(errors, &path, value, names::label_value(value));
    }
}

/// `affinity`.
pub(super) fn validate_affinity(affinity: &Value, path: &Path, errors: &mut FieldErrors) {
    let (node, node_path) = (affinity.at("nodeAffinity"), path.child("nodeAffinity"));
    let (required, required_path) = (node.at(REQUIRED), node_path.child(REQUIRED).child("nodeSelectorTerms"));
    if !required.is_null() {
        let terms = required.list("nodeSelectorTerms");
        if terms.is_empty() {
            errors.push(FieldError::required(&required_path, "must have at least one node selector term"));
        }
        for (at, term) in terms.iter().enumerate() {
            validate_node_term(term, true, &required_path.index(at), errors);
        }
    }
    for (at, term) in node.list(PREFERRED).iter().enumerate() {
        let path = node_path.child(PREFERRED).index(at);
        validate_weight(term, &path, errors);
        validate_node_term(term.at("preference"), false, &path.child("preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (pods, path) = (affinity.at(kind), path.child(kind));
        for (at, term) in pods.list(REQUIRED).iter().enumerate() {
            validate_pod_term(term, &path.child(REQUIRED).index(at), errors);
        }
        for (at, term) in pods.list(PREFERRED).iter().enumerate() {
            let path = path.child(PREFERRED).index(at);
            validate_weight(term, &path, errors);
            validate_pod_term(term.at("podAffinityTerm"), &path.child("podAffinityTerm"), errors);
        }
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn validate_weight(term: &Value, path: &Path, errors: &mut FieldErrors) {
    let weight = term.int("weight");
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

fn validate_node_term(term: &Value, strict: bool, path: &Path, errors: &mut FieldErrors) {
    for (at, rule) in term.list("matchExpressions").iter().enumerate() {
        validate_node_rule(rule, strict, &path.child("matchExpressions").index(at), errors);
    }
    for (at, rule) in term.list("matchFields").iter().enumerate() {
        validate_field_rule(rule, &path.child("matchFields").index(at), errors);
    }
}

fn validate_node_rule(rule: &Value, strict: bool, path: &Path, errors: &mut FieldErrors) {
    let (values, list) = (rule.texts("values"), path.child("values"));
    match rule.text("operator") {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(FieldError::required(&list, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&list, detail));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&list, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        operator => {
            errors.push(FieldError::invalid(&path.child("operator"), operator, "not a valid selector operator"));
        }
    }
    refuse(errors, &path.child("key"), rule.text("key"), names::label_key(rule.text("key")));
    for (at, value) in values.iter().enumerate().filter(|_| strict) {
        refuse(errors, &list.index(at), value, names::label_value(value));
    }
}

fn validate_field_rule(rule: &Value, path: &Path, errors: &mut FieldErrors) {
    let (values, list) = (rule.texts("values"), path.child("values"));
    match rule.text("operator") {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(&list, detail));
        }
        operator => {
            errors.push(FieldError::invalid(&path.child("operator"), operator, "not a valid selector operator"));
        }
    }
    if rule.text("key") != "metadata.name" {
        let detail = "not a valid field selector key";
        return errors.push(FieldError::invalid(&path.child("key"), rule.text("key"), detail));
    }
    for (at, value) in values.iter().enumerate() {
        refuse(errors, &list.index(at), value, names::subdomain(value));
    }
}

fn validate_pod_term(term: &Value, path: &Path, errors: &mut FieldErrors) {
    for name in term.texts("namespaces") {
        refuse(errors, &path.child("namespace"), name, names::label(name));
    }
    let key = term.text("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
    }
    refuse(errors, &path.child("topologyKey"), key, names::label_key(key));
}

/// `topologySpreadConstraints`.
pub(super) fn validate_spread(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let all = spec.list("topologySpreadConstraints");
    let mut later: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in all {
        *later.entry(spread_key(constraint)).or_default() += 1;
    }
    for (at, constraint) in all.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(at);
        if constraint.int("maxSkew") <= 0 {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(&path.child("maxSkew"), constraint.int("maxSkew"), detail));
        }
        let (key, action) = (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(&path.child("topologyKey"), "can not be empty"));
        }
        let actions = &["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action) {
            errors.push(FieldError::not_supported(&path.child("whenUnsatisfiable"), action, actions));
        }
        let left = later.entry((key, action)).or_default();
        *left = left.saturating_sub(1);
        if *left > 0 {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, format!("{{{key}, {action}}}")));
        }
    }
}

/// The fields of a spread constraint that must be unique together.
fn spread_key(constraint: &Value) -> (&str, &str) {
    (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"))
}

/// `tolerations`.
pub(super) fn validate_tolerations(tolerations: &[Value], path: &Path, errors: &mut FieldErrors) {
    for (at, toleration) in tolerations.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        validate_toleration(toleration, &path.index(at), errors);
    }
}

fn validate_toleration(toleration: &Value, path: &Path, errors: &mut FieldErrors) {
    let (key, operator) = (toleration.text("key"), toleration.text("operator"));
    let (value, effect) = (toleration.text("value"), toleration.text("effect"));
    let operator_path = path.child("operator");
    if !key.is_empty() {
        refuse(errors, &path.child("key"), key, names::label_key(key));
    } else if operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&operator_path, operator, detail));
    }
    if toleration.int_opt("tolerationSeconds").is_some() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
    }
    match operator {
        "" | "Equal" => {
            let reasons = names::label_value(value);
            if !reasons.is_empty() {
                errors.push(FieldError::invalid(&operator_path, value, reasons.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.push(FieldError::invalid(&operator_path, value, "value must be empty when `operator` is 'Exists'"));
        }
        "Exists" => {}
        "Lt" | "Gt" => {
            errors.push(FieldError::not_supported(&operator_path, operator, &["Equal", "Exists", "Lt", "Gt"]));
        }
        _ => errors.push(FieldError::not_supported(&operator_path, operator, &["Equal", "Exists"])),
    }
    if !effect.is_empty() {
        validate_effect(effect, &path.child("effect"), errors);
    }
}

/// The effect of a taint.
pub(in crate::kinds) fn validate_effect(effect: &str, path: &Path, errors: &mut FieldErrors) {
    let allowed = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !allowed.contains(&effect) {
        errors.push(FieldError::not_supported(path, effect, allowed));
    }
}
