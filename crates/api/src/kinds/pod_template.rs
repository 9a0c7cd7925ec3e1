//! Rules of PodTemplate: a template that is kept on its own.

use super::pod::template;
use super::workload::{self, object_mut};
use super::{Rules, columns};
use crate::field::FieldErrors;
use crate::look::Look;
use crate::meta::Checks;
use crate::schema::pod::POD_TEMPLATE;
use crate::value::Value;
use crate::{Path, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks::CHANGE_ONLY,
    default: |object, _| template::fill(object_mut(object, "template")),
    prepare_create: |object, _| {
        workload::set_generation(object, 1);
        POD_TEMPLATE.arrange(object);
    },
    prepare_update: |object, old, _| {
        let changed = object.at("template") != old.at("template");
        workload::set_generation(object, old.at("metadata").int("generation") + i64::from(changed));
        POD_TEMPLATE.arrange(object);
    },
    validate: |object, _, _| validate(object),
    warnings,
    columns: &[
        columns::NAME,
        columns::text("Containers", "Names of each container in the template."),
        columns::text("Images", "Images referenced by each container in the template."),
        columns::text("Pod Labels", "The labels for the pod template."),
    ],
    row: |object, _| {
        let template = object.at("template");
        let [containers, images] = workload::container_cells(template);
        vec![columns::name(object), containers, images, workload::labels_cell(template.at("metadata").at("labels"))]
    },
    ..Rules::PLAIN
};

fn validate(object: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    template::validate(object.at("template"), &Path::new("template"), &mut errors);
    errors
}

fn warnings(object: &Value, old: Option<&Value>, _: &Settings) -> Vec<String> {
    let generation = |object: &Value| object.at("metadata").int("generation");
    if old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    template::warnings(object.at("template"), &Path::new("template"))
}
