//! Rules of ReplicaSet.

use super::workload::{self, absent, object_mut};
use super::{Rules, columns, deployment};
use crate::field::FieldErrors;
use crate::look::Look;
use crate::meta::Checks;
use crate::schema::apps::REPLICA_SET;
use crate::value::Value;
use crate::{Path, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks::CHANGE_ONLY,
    default: |set, _| {
        let spec = object_mut(set, "spec");
        workload::fill_template(spec);
        absent(spec, "replicas", 1);
    },
    prepare_create: |set, _| {
        workload::begin(set, &["replicas"]);
        REPLICA_SET.arrange(set);
    },
    prepare_update: |set, old, _| {
        workload::keep_status(set, old, false);
        REPLICA_SET.arrange(set);
    },
    prepare_status: |set, old, _| {
        workload::keep_spec(set, old);
        REPLICA_SET.arrange(set);
    },
    validate,
    validate_status: |set, _, _| validate_status(set),
    warnings: |set, old, _| {
        let name = if old.is_none() { workload::warn_of_name(set) } else { None };
        name.into_iter().chain(workload::template_warnings(set, old)).collect()
    },
    selectable: &[("status.replicas", |set| set.at("status").int("replicas").to_string())],
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
    row: |set, now| {
        let spec = set.at("spec");
        let status = set.at("status");
        let [containers, images] = workload::container_cells(spec.at("template"));
        vec![
            columns::name(set),
            spec.int("replicas").into(),
            status.int("replicas").into(),
            status.int("readyReplicas").into(),
            columns::age_of(set, now),
            containers,
            images,
            workload::selector_cell(spec.at("selector")),
        ]
    },
    ..Rules::PLAIN
};

fn validate(set: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let spec = set.at("spec");
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    workload::not_negative(spec, &["replicas", "minReadySeconds"], &path, &mut errors);
    deployment::validate_pods(spec, &path, &mut errors);
    if let Some(old) = old {
        workload::unchanged(spec, old.at("spec"), "selector", &path, &mut errors);
    }
    errors
}

/// Mistakes in the status of a ReplicaSet or ReplicationController.
pub(super) fn validate_status(set: &Value) -> FieldErrors {
    const COUNTS: [&str; 6] = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let status = set.at("status");
    let mut errors = FieldErrors::new();
    workload::not_negative(status, &COUNTS, &Path::new("status"), &mut errors);
    let parts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    workload::not_greater(status, &parts, "replicas", "status.replicas", &mut errors);
    workload::not_greater(status, &["availableReplicas"], "readyReplicas", "readyReplicas", &mut errors);
    errors
}
