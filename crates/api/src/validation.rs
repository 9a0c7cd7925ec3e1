//! Everything that is wrong with an object: the rules every object follows and those of its kind, in the order in which
//! they are told. Objects come defaulted and prepared (see [`crate::kinds::Rules`]), in the form the kind is stored in.

use crate::value::Value;

use crate::field::FieldErrors;
use crate::meta::{self, Check};
use crate::{Kind, Settings};

/// Mistakes in a new object. Its name, if it is to be generated, is there.
pub fn create(kind: &Kind, object: &Value, settings: &Settings) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for check in kind.rules.metadata.create {
        errors.extend(metadata(kind, *check, object, object));
    }
    errors.extend((kind.rules.validate)(object, None, settings));
    // The rules for all are a net below those of the kind: they are only told when the kind found nothing.
    if errors.is_empty() { meta::validate_any(object, kind) } else { errors }
}

/// Mistakes in an object that is to take the place of `old`.
pub fn update(kind: &Kind, object: &Value, old: &Value, settings: &Settings) -> FieldErrors {
    let rules = kind.rules;
    let own = |check| match check {
        Check::Whole => (rules.validate)(object, Some(old), settings),
        Check::Change => (rules.validate_update)(object, old, settings),
    };
    let mut errors = any_update(kind, object, old);
    // The kind's own rules follow the rules of metadata they belong to.
    for check in rules.metadata.update {
        errors.extend(metadata(kind, *check, object, old));
        errors.extend(own(*check));
    }
    let left = [Check::Whole, Check::Change].into_iter().filter(|check| !rules.metadata.update.contains(check));
    errors.extend(left.flat_map(own));
    errors
}

/// Mistakes in a write to `status`.
pub fn update_status(kind: &Kind, object: &Value, old: &Value, settings: &Settings) -> FieldErrors {
    let mut errors = any_update(kind, object, old);
    for check in kind.rules.metadata.status {
        errors.extend(metadata(kind, *check, object, old));
    }
    errors.extend((kind.rules.validate_status)(object, old, settings));
    errors
}

/// What every update must keep to.
fn any_update(kind: &Kind, object: &Value, old: &Value) -> FieldErrors {
    let mut errors = meta::validate_any(object, kind);
    errors.extend(meta::validate_update(object, old));
    errors
}

fn metadata(kind: &Kind, check: Check, object: &Value, old: &Value) -> FieldErrors {
    let mut errors = match check {
        Check::Whole => meta::validate(object, kind),
        Check::Change => meta::validate_update(object, old),
    };
    if kind.rules.metadata.qualified_finalizers {
        errors.extend(meta::validate_finalizer_names(object));
    }
    errors
}
