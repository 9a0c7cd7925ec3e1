//! Rules of ReplicationController, the predecessor of ReplicaSet.

use super::pod::template;
use super::workload::{self, absent, object_mut};
use super::{Rules, columns, replica_set};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::meta::Checks;
use crate::schema::core::REPLICATION_CONTROLLER;
use crate::value::Value;
use crate::{Path, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks::CHANGE_ONLY,
    default: |controller, _| fill(controller),
    prepare_create: |controller, _| {
        workload::begin(controller, &["replicas"]);
        REPLICATION_CONTROLLER.arrange(controller);
    },
    prepare_update: |controller, old, _| {
        workload::keep_status(controller, old, false);
        REPLICATION_CONTROLLER.arrange(controller);
    },
    prepare_status: |controller, old, _| {
        workload::keep_spec(controller, old);
        REPLICATION_CONTROLLER.arrange(controller);
    },
    validate,
    validate_status: |controller, _, _| replica_set::validate_status(controller),
    warnings: |controller, old, _| {
        let name = if old.is_none() { workload::warn_of_name(controller) } else { None };
        name.into_iter().chain(workload::template_warnings(controller, old)).collect()
    },
    selectable: &[("status.replicas", |controller| controller.at("status").int("replicas").to_string())],
    columns: &[
        columns::NAME,
        workload::number("Desired", "How many Pods are asked for."),
        workload::number("Current", "How many Pods there are."),
        workload::number("Ready", "How many Pods are ready."),
        columns::AGE,
        workload::CONTAINERS,
        workload::IMAGES,
        workload::SELECTOR,
    ],
    row: |controller, now| {
        let spec = controller.at("spec");
        let status = controller.at("status");
        let [containers, images] = workload::container_cells(spec.at("template"));
        vec![
            columns::name(controller),
            spec.int("replicas").into(),
            status.int("replicas").into(),
            status.int("readyReplicas").into(),
            columns::age_of(controller, now),
            containers,
            images,
            workload::labels_cell(spec.at("selector")),
        ]
    },
    ..Rules::PLAIN
};

/// A controller without a selector, or without labels, takes the labels of its template.
fn fill(controller: &mut Value) {
    let spec = object_mut(controller, "spec");
    absent(spec, "replicas", 1);
    if spec.at("template").is_null() {
        return;
    }
    workload::fill_template(spec);
    let labels = spec.at("template").at("metadata").at("labels").clone();
    if labels.is_null() {
        return;
    }
    if spec.map("selector").is_none_or(|selector| selector.is_empty()) {
        spec.set("selector", labels.clone());
    }
    let metadata = object_mut(controller, "metadata");
    if metadata.map("labels").is_none_or(|labels| labels.is_empty()) {
        metadata.set("labels", labels);
    }
}

fn validate(controller: &Value, _: Option<&Value>, _: &Settings) -> FieldErrors {
    let spec = controller.at("spec");
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    workload::not_negative(spec, &["minReadySeconds"], &path, &mut errors);
    let selector: Vec<(&str, &str)> = spec
        .map("selector")
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
        .collect();
    if selector.is_empty() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    workload::not_negative(spec, &["replicas"], &path, &mut errors);
    let template = spec.at("template");
    let path = path.child("template");
    if template.is_null() {
        errors.push(FieldError::required(&path, ""));
        return errors;
    }
    let labels = template.at("metadata").at("labels");
    if selector.iter().any(|(key, value)| labels.text_opt(key) != Some(value)) {
        let path = path.child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels, "`selector` does not match template `labels`"));
    }
    template::validate(template, &path, &mut errors);
    template::validate_endless(template, "ReplicationController", &path, &mut errors);
    errors
}
