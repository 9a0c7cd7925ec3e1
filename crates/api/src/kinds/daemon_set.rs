//! Rules of DaemonSet.

use super::pod::template;
use super::workload::{self, absent, object_mut};
use super::{Rules, columns, deployment};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::meta::{self, Checks};
use crate::schema::apps::DAEMON_SET;
use crate::selector::LabelSelector;
use crate::value::Value;
use crate::{Path, Settings};

/// Counts changes of the template. In apps/v1 it has no field of its own
/// (pkg/apis/apps/v1/conversion.go).
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
/// Fields of the status that are written even when they are zero.
const COUNTS: [&str; 4] = ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"];

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks::CHANGE_ONLY,
    default: |set, _| fill(set),
    prepare_create: |set, _| {
        workload::begin(set, &COUNTS);
        set_template_generation(set, template_generation(set).max(1));
        DAEMON_SET.arrange(set);
    },
    prepare_update: |set, old, _| {
        workload::keep_status(set, old, false);
        let changed = set.at("spec").at("template") != old.at("spec").at("template");
        set_template_generation(set, template_generation(old) + i64::from(changed));
        DAEMON_SET.arrange(set);
    },
    prepare_status: |set, old, _| {
        workload::keep_spec(set, old);
        set_template_generation(set, template_generation(old));
        DAEMON_SET.arrange(set);
    },
    validate,
    validate_status: |set, old, _| validate_status(set, old),
    warnings: |set, old, _| {
        if old.is_some_and(|old| template_generation(old) == template_generation(set)) {
            return Vec::new();
        }
        template::warnings(set.at("spec").at("template"), &Path::new("spec").child("template"))
    },
    columns: &[
        columns::NAME,
        workload::number("Desired", "How many Nodes are to run the Pod."),
        workload::number("Current", "How many of those Nodes have it."),
        workload::number("Ready", "On how many of those Nodes it is ready."),
        workload::number("Up-to-date", "On how many of those Nodes it has the present template."),
        workload::number("Available", "On how many of those Nodes it has been ready for minReadySeconds."),
        columns::text("Node Selector", "The labels a Node must have."),
        columns::AGE,
        workload::CONTAINERS,
        workload::IMAGES,
        workload::SELECTOR,
    ],
    row: |set, now| {
        let spec = set.at("spec");
        let status = set.at("status");
        let [containers, images] = workload::container_cells(spec.at("template"));
        vec![
            columns::name(set),
            status.int("desiredNumberScheduled").into(),
            status.int("currentNumberScheduled").into(),
            status.int("numberReady").into(),
            status.int("updatedNumberScheduled").into(),
            status.int("numberAvailable").into(),
            workload::labels_cell(spec.at("template").at("spec").at("nodeSelector")),
            columns::age_of(set, now),
            containers,
            images,
            workload::selector_cell(spec.at("selector")),
        ]
    },
    ..Rules::PLAIN
};

fn fill(set: &mut Value) {
    let annotations = set.map_mut("metadata").entry("annotations").or_insert_with(|| crate::json!({}));
    if annotations.is_null() {
        *annotations = crate::json!({});
    }
    absent(annotations, TEMPLATE_GENERATION, "0");
    let spec = object_mut(set, "spec");
    workload::fill_template(spec);
    absent(spec, "revisionHistoryLimit", 10);
    let strategy = object_mut(spec, "updateStrategy");
    if strategy.text("type").is_empty() {
        strategy.set("type", "RollingUpdate");
    }
    if strategy.text("type") == "RollingUpdate" {
        let update = object_mut(strategy, "rollingUpdate");
        absent(update, "maxUnavailable", 1);
        absent(update, "maxSurge", 0);
    }
}

fn template_generation(set: &Value) -> i64 {
    set.at("metadata").at("annotations").text(TEMPLATE_GENERATION).parse().unwrap_or_default()
}

fn set_template_generation(set: &mut Value, generation: i64) {
    let metadata = set.map_mut("metadata");
    let mut annotations = metadata.get("annotations").cloned().unwrap_or_default();
    annotations.set(TEMPLATE_GENERATION, generation.to_string());
    if let Some(map) = annotations.as_object_mut() {
        map.sort_keys();
    }
    metadata.insert("annotations", annotations);
}

fn validate(set: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let spec = set.at("spec");
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    let selector = spec.at("selector");
    if let Some(old) = old {
        workload::unchanged(spec, old.at("spec"), "selector", &path, &mut errors);
    }
    // Values that were let in before the rule was there may stay.
    let lenient = old.is_some_and(|old| {
        !meta::validate_label_selector(old.at("spec").at("selector"), false, &path.child("selector")).is_empty()
    });
    errors.extend(meta::validate_label_selector(selector, lenient, &path.child("selector")));
    let template = spec.at("template");
    let template_path = path.child("template");
    if LabelSelector::from_object(selector).is_ok_and(|selector| !selector.selects(template)) {
        let labels = template.at("metadata").at("labels");
        let path = template_path.child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels, "`selector` does not match template `labels`"));
    }
    let empty = "empty selector is invalid for daemonset";
    workload::validate_not_empty(selector, &path.child("selector"), empty, &mut errors);
    template::validate(template, &template_path, &mut errors);
    template::validate_endless(template, "DaemonSet", &template_path, &mut errors);
    workload::not_negative(spec, &["minReadySeconds"], &path, &mut errors);
    validate_strategy(spec.at("updateStrategy"), &path.child("updateStrategy"), &mut errors);
    workload::not_negative(spec, &["revisionHistoryLimit"], &path, &mut errors);
    errors
}

fn validate_strategy(strategy: &Value, path: &Path, errors: &mut FieldErrors) {
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let update = strategy.at("rollingUpdate");
            let path = path.child("rollingUpdate");
            let unavailable = update.at("maxUnavailable");
            let surge = update.at("maxSurge");
            let unavailable_path = path.child("maxUnavailable");
            let surge_path = path.child("maxSurge");
            workload::validate_amount(unavailable, &unavailable_path, errors);
            workload::validate_amount(surge, &surge_path, errors);
            workload::validate_at_most_all(unavailable, &unavailable_path, errors);
            workload::validate_at_most_all(surge, &surge_path, errors);
            match (workload::amount(unavailable) != 0, workload::amount(surge) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.push(FieldError::invalid(&surge_path, surge, detail));
                }
                (false, false) => {
                    errors.push(FieldError::required(&unavailable_path, "cannot be 0 when maxSurge is 0"));
                }
                _ => {}
            }
        }
        _ => {
            let strategy = deployment::go_strategy(strategy);
            errors.push(FieldError::not_supported(path, &strategy, &["RollingUpdate", "OnDelete"]));
        }
    }
}

fn validate_status(set: &Value, old: &Value) -> FieldErrors {
    const MORE: [&str; 5] =
        ["observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"];
    let status = set.at("status");
    let path = Path::new("status");
    let mut errors = FieldErrors::new();
    workload::not_negative(status, &COUNTS, &path, &mut errors);
    workload::not_negative(status, &MORE, &path, &mut errors);
    workload::not_decremented(set, old, &mut errors);
    errors
}
