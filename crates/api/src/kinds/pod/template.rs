//! `PodTemplateSpec`: what a Deployment, ReplicaSet and their like make Pods from. The rules are
//! those of a Pod, but for the few that depend on its name or are filled in only when the Pod is
//! made.

use crate::value::Value;

use super::{defaults, spec, warnings};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::{Path, meta};

/// Fills in what the author left out.
pub(in crate::kinds) fn fill(template: &mut Value) {
    template.map_mut("metadata");
    template.map_mut("spec");
    if let Some(spec) = template.get_mut("spec") {
        defaults::fill_any_spec(spec);
    }
}

/// Mistakes in a template (pkg/apis/core/validation, ValidatePodTemplateSpec).
pub(in crate::kinds) fn validate(template: &Value, path: &Path, errors: &mut FieldErrors) {
    validate_metadata(template, path, errors);
    let spec = template.at("spec");
    let path = path.child("spec");
    spec::validate(spec, spec::Whose::Template, &path, errors);
    if !spec.list("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), detail));
    }
}

/// Mistakes in labels and annotations of a template. The reference server tells them at
/// `template.labels`, not at `template.metadata.labels`.
pub(in crate::kinds) fn validate_metadata(template: &Value, path: &Path, errors: &mut FieldErrors) {
    let metadata = template.at("metadata");
    errors.extend(meta::validate_labels(metadata.at("labels"), &path.child("labels")));
    let path = path.child("annotations");
    errors.extend(meta::validate_annotations(metadata.at("annotations"), &path));
    spec::validate_annotations(metadata, template.at("spec"), &path, errors);
}

/// Mistakes in a template of Pods that run for ever: they start again when they end, and have no
/// deadline. `owner` is the kind the template stands in.
pub(in crate::kinds) fn validate_endless(template: &Value, owner: &str, path: &Path, errors: &mut FieldErrors) {
    let spec = template.at("spec");
    let path = path.child("spec");
    let policy = spec.text("restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), policy, &["Always"]));
    }
    if !spec.at("activeDeadlineSeconds").is_null() {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), detail));
    }
}

/// Warnings about a template.
pub(in crate::kinds) fn warnings(template: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings::of_spec(template, path, &mut warnings);
    warnings
}
