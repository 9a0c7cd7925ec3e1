//! `spec.topologyKeys`: node labels in order of preference, of the gate `ServiceTopology`. Kubernetes had the field from
//! 1.17 to 1.21.

use std::collections::HashSet;

use crate::value::Value;

use super::ports::against;
use crate::field::{FieldError, FieldErrors, Path};
use crate::schema::Gate;
use crate::schema::core::SERVICE_SPEC;
use crate::{Look, Settings, golang, names};

/// Any node, as a last resort.
const ANY: &str = "*";
/// As many as Kubernetes allowed.
const MAX_KEYS: usize = 16;
/// The keys that the documentation speaks of.
const DOCUMENTED: &[&str] = &["kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Drops the keys while the gate is closed, unless the Service had some when it was open.
pub(super) fn drop_if_closed(service: &mut Value, old: Option<&Value>, settings: &Settings) {
    let had = old.is_some_and(|old| !old.at("spec").list("topologyKeys").is_empty());
    if let Some(spec) = service.get_mut("spec")
        && !had
        && !settings.allows(Gate::ServiceTopology)
    {
        SERVICE_SPEC.place(spec, "topologyKeys", Value::Null);
    }
}

/// Mistakes in the keys.
pub(super) fn validate(spec: &Value) -> FieldErrors {
    let keys = spec.texts("topologyKeys");
    let path = Path::new("spec.topologyKeys");
    let mut errors = FieldErrors::new();
    if !keys.is_empty() && spec.text("externalTrafficPolicy") == "Local" {
        errors.push(FieldError::forbidden(&path, "may not be specified when `externalTrafficPolicy=Local`"));
    }
    if keys.len() > MAX_KEYS {
        errors.push(FieldError::too_many(&path, keys.len(), MAX_KEYS));
    }
    let mut seen = HashSet::new();
    for (i, key) in keys.iter().enumerate() {
        let path = path.index(i);
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(&path, *key));
        }
        match *key {
            ANY if i + 1 < keys.len() => {
                errors.push(FieldError::invalid(&path, *key, "\"*\" must be the last value specified"));
            }
            ANY => {}
            key => errors.extend(against(&path, key, names::label_key(key))),
        }
    }
    errors
}

/// Keys that no document speaks of work, but may be a slip.
pub(super) fn warnings(spec: &Value) -> Vec<String> {
    let path = Path::new("spec.topologyKeys");
    let keys = spec.texts("topologyKeys").into_iter().enumerate();
    let odd = keys.filter(|(_, key)| *key != ANY && !DOCUMENTED.contains(key));
    odd.map(|(i, key)| {
        let (path, key, documented) = (path.index(i), golang::quote(key), DOCUMENTED.join(", "));
        format!("{path}: {key} is not one of the topology keys that are defined for Services ({documented})")
    })
    .collect()
}
