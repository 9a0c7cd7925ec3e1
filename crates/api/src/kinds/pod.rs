//! Rules of Pod: what is filled in, what may be written when, how it is bound to a node and deleted.

use crate::value::{Value, json};

use super::Rules;
use crate::field::FieldErrors;
use crate::look::Look;
use crate::schema::pod::POD;
use crate::{Path, Settings, names};

mod admission;
mod binding;
mod container;
mod defaults;
mod deletion;
mod env;
mod lifecycle;
mod mounts;
pub mod privileges;
mod qos;
pub mod requests;
mod resources;
mod scheduling;
mod security;
mod spec;
mod status;
mod table;
pub(in crate::kinds) mod template;
mod update;
mod volumes;
mod warnings;

pub use binding::{bind, disrupt};
pub use deletion::{Grace, grace};
pub(super) use resources::validate_amount;
pub(super) use scheduling::validate_effect;

/// The rules.
pub static RULES: Rules = Rules {
    default: |pod, _| defaults::fill(pod),
    admit: |pod, _| admission::admit(pod),
    prepare_create,
    prepare_update,
    prepare_status: |pod, old, _| status::prepare(pod, old),
    validate,
    validate_update: |pod, old, _| update::validate(pod, old),
    validate_status: |pod, old, _| status::validate(pod, old),
    warnings: |pod, old, _| if old.is_none() { warnings::on_create(pod) } else { warnings::on_update(pod) },
    selectable: &[
        ("spec.nodeName", |pod| pod.at("spec").text("nodeName").to_owned()),
        ("spec.restartPolicy", |pod| pod.at("spec").text("restartPolicy").to_owned()),
        ("spec.schedulerName", |pod| pod.at("spec").text("schedulerName").to_owned()),
        ("spec.serviceAccountName", |pod| pod.at("spec").text("serviceAccountName").to_owned()),
        ("spec.hostNetwork", |pod| pod.at("spec").flag("hostNetwork").to_string()),
        ("spec.host", |pod| pod.at("spec").text("nodeName").to_owned()),
        ("status.phase", |pod| pod.at("status").text("phase").to_owned()),
        ("status.podIP", |pod| pod.at("status").text("podIP").to_owned()),
        // Offered, but never matches a value: the reference server leaves it out of what it compares.
        ("status.podIPs", |_| String::new()),
        ("status.nominatedNodeName", |pod| pod.at("status").text("nominatedNodeName").to_owned()),
    ],
    columns: table::COLUMNS,
    row: table::row,
    ..Rules::PLAIN
};

fn prepare_create(pod: &mut Value, _: &Settings) {
    pod.map_mut("metadata").insert("generation", 1.into());
    let mut status = json!({"phase": "Pending"});
    if !pod.at("spec").list("schedulingGates").is_empty() {
        status.set(
            "conditions",
            json!([{
                "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": null,
                "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]),
        );
    }
    status.set("qosClass", qos::class(pod.at("spec")));
    pod.set("status", status);
    POD.arrange(pod);
}

fn prepare_update(pod: &mut Value, old: &Value, _: &Settings) {
    admission::admit_update(pod, old);
    pod.set("status", old.at("status").clone());
    let generation = old.at("metadata").int("generation") + i64::from(pod.at("spec") != old.at("spec"));
    pod.map_mut("metadata").insert("generation", generation.into());
    POD.arrange(pod);
}

fn validate(pod: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let (metadata, spec) = (pod.at("metadata"), pod.at("spec"));
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    spec::validate_annotations(metadata, spec, &Path::new("metadata").child("annotations"), &mut errors);
    spec::validate(spec, spec::Whose::Pod(metadata), &path, &mut errors);
    spec::validate_only_in_pods(spec, &path, &mut errors);
    if old.is_none() {
        spec::validate_only_on_create(spec, &path, &mut errors);
    }
    errors
}

/// Pushes an error for each reason against a text.
fn refuse(errors: &mut FieldErrors, path: &Path, text: &str, reasons: names::Reasons) {
    errors.extend(reasons.into_iter().map(|reason| crate::FieldError::invalid(path, text, reason)));
}

#[cfg(test)]
pub(in crate::kinds) mod tests;
