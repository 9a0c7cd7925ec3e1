//! Rules of Deployment.

use super::pod::template;
use super::workload::{self, absent, object_mut};
use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::meta::Checks;
use crate::schema::apps::DEPLOYMENT;
use crate::value::Value;
use crate::{Path, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks::CHANGE_ONLY,
    default: |deployment, _| fill(deployment),
    prepare_create: |deployment, _| {
        workload::begin(deployment, &[]);
        DEPLOYMENT.arrange(deployment);
    },
    prepare_update: |deployment, old, _| {
        // Annotations are copied to the ReplicaSets, so a change of them is a change of what is
        // asked for.
        let annotations = |object: &Value| object.at("metadata").at("annotations").clone();
        workload::keep_status(deployment, old, annotations(deployment) != annotations(old));
        DEPLOYMENT.arrange(deployment);
    },
    prepare_status: |deployment, old, _| {
        workload::keep_spec(deployment, old);
        match old.at("metadata").get("labels") {
            Some(labels) => drop(deployment.map_mut("metadata").insert("labels", labels.clone())),
            None => drop(deployment.map_mut("metadata").shift_remove("labels")),
        }
        DEPLOYMENT.arrange(deployment);
    },
    validate,
    validate_status: |deployment, old, _| validate_status(deployment, old),
    warnings: |deployment, old, _| {
        let name = if old.is_none() { workload::warn_of_name(deployment) } else { None };
        name.into_iter().chain(workload::template_warnings(deployment, old)).collect()
    },
    columns: &[
        columns::NAME,
        columns::text("Ready", "Number of the pod with ready state"),
        columns::text("Up-to-date", "How many Pods have the present template."),
        columns::text("Available", "How many Pods have been ready for minReadySeconds."),
        columns::AGE,
        workload::CONTAINERS,
        workload::IMAGES,
        workload::SELECTOR,
    ],
    row: |deployment, now| {
        let spec = deployment.at("spec");
        let status = deployment.at("status");
        let [containers, images] = workload::container_cells(spec.at("template"));
        vec![
            columns::name(deployment),
            format!("{}/{}", status.int("readyReplicas"), spec.int("replicas")).into(),
            status.int("updatedReplicas").into(),
            status.int("availableReplicas").into(),
            columns::age_of(deployment, now),
            containers,
            images,
            workload::selector_cell(spec.at("selector")),
        ]
    },
    ..Rules::PLAIN
};

fn fill(deployment: &mut Value) {
    let spec = object_mut(deployment, "spec");
    workload::fill_template(spec);
    absent(spec, "replicas", 1);
    absent(spec, "revisionHistoryLimit", 10);
    absent(spec, "progressDeadlineSeconds", 600);
    let strategy = object_mut(spec, "strategy");
    if strategy.text("type").is_empty() {
        strategy.set("type", "RollingUpdate");
    }
    if strategy.text("type") == "RollingUpdate" {
        let update = object_mut(strategy, "rollingUpdate");
        absent(update, "maxUnavailable", "25%");
        absent(update, "maxSurge", "25%");
    }
}

fn validate(deployment: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let spec = deployment.at("spec");
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    workload::not_negative(spec, &["replicas"], &path, &mut errors);
    validate_pods(spec, &path, &mut errors);
    validate_strategy(spec.at("strategy"), &path.child("strategy"), &mut errors);
    let counts = ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
    workload::not_negative(spec, &counts, &path, &mut errors);
    if let Some(deadline) = spec.int_opt("progressDeadlineSeconds")
        && deadline <= spec.int("minReadySeconds")
    {
        let path = path.child("progressDeadlineSeconds");
        errors.push(FieldError::invalid(&path, deadline, "must be greater than minReadySeconds"));
    }
    if let Some(old) = old {
        workload::unchanged(spec, old.at("spec"), "selector", &path, &mut errors);
    }
    errors
}

/// Mistakes in selector and template, as a Deployment and a ReplicaSet have them. The words are
/// those of the reference server, which speaks of a deployment in both.
pub(super) fn validate_pods(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let selector_path = path.child("selector");
    let empty = "empty selector is invalid for deployment";
    let template = spec.at("template");
    let path = path.child("template");
    match workload::validate_selector(spec.at("selector"), &selector_path, empty, errors) {
        Ok(selector) => {
            workload::validate_selected(&selector, template, &path, errors);
            template::validate(template, &path, errors);
            template::validate_endless(template, "ReplicaSet", &path, errors);
        }
        Err(_) => errors.push(FieldError::invalid(&selector_path, spec.at("selector"), "invalid label selector")),
    }
}

fn validate_strategy(strategy: &Value, path: &Path, errors: &mut FieldErrors) {
    let update = strategy.at("rollingUpdate");
    let path_of_update = path.child("rollingUpdate");
    match strategy.text("type") {
        "Recreate" if !update.is_null() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&path_of_update, detail));
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let unavailable = update.at("maxUnavailable");
            let surge = update.at("maxSurge");
            let path = path_of_update.child("maxUnavailable");
            workload::validate_amount(unavailable, &path, errors);
            workload::validate_amount(surge, &path_of_update.child("maxSurge"), errors);
            if workload::amount(unavailable) == 0 && workload::amount(surge) == 0 {
                errors.push(FieldError::invalid(&path, unavailable, "may not be 0 when `maxSurge` is 0"));
            }
            workload::validate_at_most_all(unavailable, &path, errors);
        }
        _ => errors.push(FieldError::not_supported(path, &go_strategy(strategy), &["Recreate", "RollingUpdate"])),
    }
}

/// A strategy as the reference server shows it in a message: with the names its Go type has.
pub(super) fn go_strategy(strategy: &Value) -> Value {
    let mut shown = crate::json!({"Type": strategy.text("type"), "RollingUpdate": null});
    if let Some(update) = strategy.map("rollingUpdate") {
        let capital = |name: &str| format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        let fields = update.iter().map(|(name, value)| (capital(name.as_str()), value.clone()));
        shown.set("RollingUpdate", Value::Object(fields.collect()));
    }
    shown
}

fn validate_status(deployment: &Value, old: &Value) -> FieldErrors {
    const COUNTS: [&str; 8] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let status = deployment.at("status");
    let mut errors = FieldErrors::new();
    workload::not_negative(status, &COUNTS, &Path::new("status"), &mut errors);
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    workload::not_greater(status, &parts, "replicas", "status.replicas", &mut errors);
    workload::not_greater(status, &["availableReplicas"], "readyReplicas", "readyReplicas", &mut errors);
    workload::not_decremented(deployment, old, &mut errors);
    errors
}
