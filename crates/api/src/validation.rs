//! Everything that is wrong with an object: the rules every object follows and those of its kind, in the order in which
//! they are told. Objects come defaulted and prepared (see [`crate::kinds::Rules`]), in the form the kind is stored in.

use serde_json::Value;

use crate::field::FieldErrors;
use crate::meta::{self, Check};
use crate::{Kind, Settings};

/// Mistakes in a new object. Its name, if it is to be generated, is there.
pub fn create(kind: &Kind, object: &Value, settings: &Settings) -> FieldErrors {
    let mut errors = own_metadata(kind, kind.rules.metadata.create, object, None);
    errors.extend((kind.rules.validate)(object, None, settings));
    // The rules for all are a net below those of the kind: they are only told when the kind found nothing.
    if errors.is_empty() { meta::validate_any(object, kind) } else { errors }
}

/// Mistakes in an object that is to take the place of `old`.
pub fn update(kind: &Kind, object: &Value, old: &Value, settings: &Settings) -> FieldErrors {
    let mut errors = any_update(kind, object, old);
    errors.extend(own_metadata(kind, kind.rules.metadata.update, object, Some(old)));
    errors.extend((kind.rules.validate_update)(object, old, settings));
    errors.extend((kind.rules.validate)(object, Some(old), settings));
    errors
}

/// Mistakes in a write to `status`.
pub fn update_status(kind: &Kind, object: &Value, old: &Value, settings: &Settings) -> FieldErrors {
    let mut errors = any_update(kind, object, old);
    errors.extend(own_metadata(kind, kind.rules.metadata.status, object, Some(old)));
    errors.extend((kind.rules.validate_status)(object, old, settings));
    errors
}

fn any_update(kind: &Kind, object: &Value, old: &Value) -> FieldErrors {
    let mut errors = meta::validate_any(object, kind);
    errors.extend(meta::validate_update(object, old));
    errors
}

fn own_metadata(kind: &Kind, checks: &[Check], object: &Value, old: Option<&Value>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for check in checks {
        errors.extend(match (check, old) {
            (Check::Change, Some(old)) => meta::validate_update(object, old),
            _ => meta::validate(object, kind),
        });
        if kind.rules.metadata.qualified_finalizers {
            errors.extend(meta::validate_finalizer_names(object));
        }
    }
    errors
}
