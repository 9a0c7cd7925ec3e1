//! Rules of StatefulSet.

use super::pod::template;
use super::workload::{self, absent, object_mut};
use super::{Rules, columns, deployment};
use crate::field::{FieldError, FieldErrors, invalid};
use crate::look::Look;
use crate::meta::{self, Checks};
use crate::schema::apps::STATEFUL_SET;
use crate::value::{Value, json};
use crate::{Path, Settings, names};

/// The rules.
pub static RULES: Rules = Rules {
    // Pods are named after it, and their names are host names.
    name: meta::label_name,
    metadata: Checks::CHANGE_ONLY,
    default: |set, _| fill(set),
    prepare_create: |set, _| {
        workload::begin(set, &["replicas", "availableReplicas"]);
        drop_max_unavailable(set, None);
        STATEFUL_SET.arrange(set);
    },
    prepare_update: |set, old, _| {
        drop_max_unavailable(set, Some(old));
        workload::keep_status(set, old, false);
        STATEFUL_SET.arrange(set);
    },
    prepare_status: |set, old, _| {
        workload::keep_spec(set, old);
        STATEFUL_SET.arrange(set);
    },
    validate,
    validate_status: |set, old, _| validate_status(set, old),
    warnings,
    columns: &[
        columns::NAME,
        columns::text("Ready", "Number of the pod with ready state"),
        columns::AGE,
        workload::CONTAINERS,
        workload::IMAGES,
    ],
    row: |set, now| {
        let spec = set.at("spec");
        let status = set.at("status");
        let [containers, images] = workload::container_cells(spec.at("template"));
        vec![
            columns::name(set),
            format!("{}/{}", status.int("readyReplicas"), spec.int("replicas")).into(),
            columns::age_of(set, now),
            containers,
            images,
        ]
    },
    ..Rules::PLAIN
};

fn fill(set: &mut Value) {
    let spec = object_mut(set, "spec");
    workload::fill_template(spec);
    absent(spec, "replicas", 1);
    absent(spec, "revisionHistoryLimit", 10);
    if spec.text("podManagementPolicy").is_empty() {
        spec.set("podManagementPolicy", "OrderedReady");
    }
    let strategy = object_mut(spec, "updateStrategy");
    if strategy.text("type").is_empty() {
        strategy.set("type", "RollingUpdate");
        absent(strategy, "rollingUpdate", json!({}));
    }
    if strategy.text("type") == "RollingUpdate"
        && let Some(update) = strategy.get_mut("rollingUpdate").filter(|update| update.is_object())
    {
        absent(update, "partition", 0);
    }
    let retention = object_mut(spec, "persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        if retention.text(field).is_empty() {
            retention.set(field, "Retain");
        }
    }
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        claim.set("kind", "PersistentVolumeClaim");
        claim.set("apiVersion", "v1");
        absent(object_mut(claim, "spec"), "volumeMode", "Filesystem");
        absent(object_mut(claim, "status"), "phase", "Pending");
    }
}

/// Drops `maxUnavailable`, which belongs to the gate MaxUnavailableStatefulSet (off by default),
/// unless it is stored.
fn drop_max_unavailable(set: &mut Value, old: Option<&Value>) {
    let stored = |old: &Value| !old.at("spec").at("updateStrategy").at("rollingUpdate").at("maxUnavailable").is_null();
    if old.is_some_and(stored) {
        return;
    }
    if let Some(update) = set.pointer_mut("/spec/updateStrategy/rollingUpdate") {
        update.unset("maxUnavailable");
    }
}

fn validate(set: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let spec = set.at("spec");
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    // A template that is stored with mistakes does not stand in the way of other changes.
    let stored_badly = old.is_some_and(|old| {
        let mut mistakes = FieldErrors::new();
        validate_spec(old.at("spec"), true, true, &path, &mut mistakes);
        !mistakes.is_empty()
    });
    validate_spec(spec, old.is_some(), !stored_badly, &path, &mut errors);
    if old.is_some_and(|old| fixed_part(spec) != fixed_part(old.at("spec"))) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The part of a spec that an update may not change.
fn fixed_part(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let free = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    for field in free {
        spec.unset(field);
    }
    spec
}

fn validate_spec(spec: &Value, is_update: bool, with_template: bool, path: &Path, errors: &mut FieldErrors) {
    match spec.text("podManagementPolicy") {
        "OrderedReady" | "Parallel" => {}
        other => {
            let path = path.child("podManagementPolicy");
            errors.push(FieldError::invalid(&path, other, "must be 'OrderedReady' or 'Parallel'"));
        }
    }
    validate_strategy(spec.at("updateStrategy"), &path.child("updateStrategy"), errors);
    validate_retention(spec, path, errors);
    // Claim templates and the name of the Service cannot change, so an update does not check them
    // again.
    if !is_update {
        for (at, claim) in spec.list("volumeClaimTemplates").iter().enumerate() {
            let path = path.child("volumeClaimTemplates").index(at).child("spec");
            validate_claim(claim.at("spec"), &path, errors);
        }
    }
    workload::not_negative(spec, &["replicas", "minReadySeconds"], path, errors);
    workload::not_negative(spec.at("ordinals"), &["start"], &path.child("ordinals"), errors);
    let service = spec.text("serviceName");
    if !is_update && !service.is_empty() {
        errors.extend(invalid(&path.child("serviceName"), service, names::label(service)));
    }
    let selector = spec.at("selector");
    let selector_path = path.child("selector");
    let empty = "empty selector is invalid for statefulset";
    let template = spec.at("template");
    let template_path = path.child("template");
    match workload::validate_selector(selector, &selector_path, empty, errors) {
        Ok(selector) => {
            let template = effective_template(spec);
            workload::validate_selected(&selector, &template, &template_path, errors);
            if with_template {
                template::validate(&template, &template_path, errors);
            }
            template::validate_metadata(&template, &template_path, errors);
        }
        Err(_) => errors.push(FieldError::invalid(&selector_path, selector, "")),
    }
    template::validate_endless(template, "StatefulSet", &template_path, errors);
}

/// The template as Pods get it: host name and subdomain are set by the controller, and each claim
/// template is a volume.
fn effective_template(spec: &Value) -> Value {
    let mut template = spec.at("template").clone();
    let pod = object_mut(&mut template, "spec");
    pod.unset("hostname");
    pod.unset("subdomain");
    let claims: Vec<&str> =
        spec.list("volumeClaimTemplates").iter().map(|claim| claim.at("metadata").text("name")).collect();
    if claims.is_empty() {
        return template;
    }
    let mut volumes: Vec<Value> = Vec::new();
    for name in &claims {
        volumes.push(json!({"name": *name, "persistentVolumeClaim": {"claimName": *name}}));
    }
    volumes.extend(pod.list("volumes").iter().filter(|volume| !claims.contains(&volume.text("name"))).cloned());
    pod.set("volumes", volumes);
    template
}

fn validate_strategy(strategy: &Value, path: &Path, errors: &mut FieldErrors) {
    let update = strategy.at("rollingUpdate");
    let update_path = path.child("rollingUpdate");
    match strategy.text("type") {
        "OnDelete" => {
            if !update.is_null() {
                let shown = deployment::go_strategy(strategy);
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.push(FieldError::invalid(&update_path, shown.at("RollingUpdate"), detail));
            }
        }
        "RollingUpdate" => {
            workload::not_negative(update, &["partition"], &update_path, errors);
            let most = update.at("maxUnavailable");
            let path = update_path.child("maxUnavailable");
            if !most.is_null() {
                workload::validate_amount(most, &path, errors);
                if workload::amount(most) == 0 {
                    errors.push(FieldError::invalid(&path, most, "cannot be 0"));
                }
                workload::validate_at_most_all(most, &path, errors);
            }
        }
        _ => {
            let shown = deployment::go_strategy(strategy);
            errors.push(FieldError::invalid(path, &shown, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

fn validate_retention(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let (policy, path) =
        (spec.at("persistentVolumeClaimRetentionPolicy"), path.child("persistentVolumeClaimRetentionPolicy"));
    for field in ["whenDeleted", "whenScaled"] {
        let word = policy.text(field);
        if !policy.is_null() && !["Retain", "Delete"].contains(&word) {
            errors.push(FieldError::not_supported(&path.child(field), word, &["Retain", "Delete"]));
        }
    }
}

/// Mistakes in the claim of a volume. (pkg/apis/core/validation, ValidatePersistentVolumeClaimSpec;
/// there are no volumes here that a claim could get, so its sources are not looked at.)
fn validate_claim(claim: &Value, path: &Path, errors: &mut FieldErrors) {
    let modes = claim.texts("accessModes");
    let path_of_modes = path.child("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&path_of_modes, "at least 1 access mode is required"));
    }
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in &modes {
        if !known.contains(mode) {
            errors.push(FieldError::not_supported(&path_of_modes, *mode, &known));
        }
    }
    if modes.contains(&"ReadWriteOncePod") && modes.len() > 1 {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&path_of_modes, detail));
    }
    if !claim.at("selector").is_null() {
        errors.extend(meta::validate_label_selector(claim.at("selector"), false, &path.child("selector")));
    }
    if claim.at("resources").at("requests").at("storage").is_null() {
        errors.push(FieldError::required(&path.child("resources").key("storage"), ""));
    }
    let class = claim.text("storageClassName");
    if !class.is_empty() {
        errors.extend(invalid(&path.child("storageClassName"), class, names::subdomain(class)));
    }
}

fn warnings(set: &Value, old: Option<&Value>, _: &Settings) -> Vec<String> {
    let mut warnings = workload::template_warnings(set, old);
    if set.at("spec").int("revisionHistoryLimit") < 0 {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        warnings.push(format!("spec.revisionHistoryLimit: {why}"));
    }
    warnings
}

fn validate_status(set: &Value, old: &Value) -> FieldErrors {
    const COUNTS: [&str; 7] = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let status = set.at("status");
    let mut errors = FieldErrors::new();
    workload::not_negative(status, &COUNTS, &Path::new("status"), &mut errors);
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    workload::not_greater(status, &parts, "replicas", "status.replicas", &mut errors);
    workload::not_greater(status, &["availableReplicas"], "readyReplicas", "status.readyReplicas", &mut errors);
    workload::not_decremented(set, old, &mut errors);
    errors
}
