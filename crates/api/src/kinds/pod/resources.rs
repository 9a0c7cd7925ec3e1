//! Mistakes in the amounts a container requests and is limited to.

use std::collections::HashSet;

use crate::value::{Key, Value};

use super::refuse;
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::quantity::Quantity;
use crate::{Path, names};

/// `resources` of a container. `pod` is the spec it stands in.
pub(super) fn validate(resources: &Value, pod: &Value, path: &Path, errors: &mut FieldErrors) {
    validate_lists(resources.at("limits"), resources.at("requests"), path, errors);
    validate_claims(resources.list("claims"), pod, &path.child("claims"), errors);
}

/// What running the Pod costs besides its containers.
pub(super) fn validate_overhead(overhead: &Value, path: &Path, errors: &mut FieldErrors) {
    validate_lists(overhead, &Value::Null, path, errors);
}

/// An amount of a resource: not negative, and whole where the resource is counted.
pub(in crate::kinds) fn validate_amount(resource: &str, amount: &Value, path: &Path, errors: &mut FieldErrors) {
    let text = amount.as_str().unwrap_or_default();
    let Ok(quantity) = Quantity::parse(text) else { return };
    if quantity.sign().is_lt() {
        errors.push(FieldError::invalid(path, text, "must be greater than or equal to 0"));
    }
    if (COUNTED.contains(&resource) || is_extended(resource)) && !quantity.clone().to_milli().is_whole() {
        errors.push(FieldError::invalid(path, text, "must be an integer"));
    }
}

fn validate_lists(limits: &Value, requests: &Value, path: &Path, errors: &mut FieldErrors) {
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    for (name, amount) in limits.as_object().into_iter().flatten() {
        validate_entry(name, amount, &limits_path.key(name), errors);
    }
    for (name, amount) in requests.as_object().into_iter().flatten() {
        validate_entry(name, amount, &requests_path.key(name), errors);
        let exact = !is_native(name) || is_huge_page(name);
        match limits.text_opt(name) {
            Some(limit) => {
                validate_below(name, amount.as_str().unwrap_or_default(), limit, exact, &requests_path, errors)
            }
            None if exact => {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&limits_path, detail));
            }
            None => {}
        }
    }
    let named: Vec<&Key> = [limits, requests].iter().filter_map(|l| l.as_object()).flat_map(|l| l.keys()).collect();
    let computes = named.iter().any(|name| matches!(name.as_str(), "cpu" | "memory"));
    if !computes && named.iter().any(|name| is_huge_page(name)) {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

fn validate_below(name: &str, amount: &str, limit: &str, exact: bool, path: &Path, errors: &mut FieldErrors) {
    let (Ok(quantity), Ok(most)) = (Quantity::parse(amount), Quantity::parse(limit)) else { return };
    if exact && quantity != most {
        errors.push(FieldError::invalid(path, amount, format!("must be equal to {name} limit of {limit}")));
    } else if quantity > most {
        let detail = format!("must be less than or equal to {name} limit of {limit}");
        errors.push(FieldError::invalid(path, amount, detail));
    }
}

fn validate_entry(name: &str, amount: &Value, path: &Path, errors: &mut FieldErrors) {
    let reasons = names::label_key(name);
    let unqualified = !name.contains('/');
    if !reasons.is_empty() {
        refuse(errors, path, name, reasons);
    } else if unqualified && !STANDARD.contains(&name) && !is_quota_huge_page(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
    if unqualified && !["cpu", "memory", "ephemeral-storage"].contains(&name) && !is_huge_page(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
    } else if !unqualified && !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(path, name, "doesn't follow extended resource name standard"));
    }
    validate_amount(name, amount, path, errors);
}

/// `resizePolicy` of a container.
pub(super) fn validate_resize(container: &Value, pod: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for (at, policy) in container.list("resizePolicy").iter().enumerate() {
        let (resource, restart) = (policy.text("resourceName"), policy.text("restartPolicy"));
        if errors.is_full() {
            break;
        }
        if !seen.insert(resource) {
            errors.push(FieldError::duplicate(&path.index(at), resource));
        }
        for (word, allowed) in [(resource, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])] {
            match word {
                "" => errors.push(FieldError::required(path, "")),
                word if allowed.contains(&word) => {}
                word => errors.push(FieldError::not_supported(path, word, &allowed)),
            }
        }
        if pod.text("restartPolicy") == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
}

fn validate_claims(claims: &[Value], pod: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    let mut known: Vec<&str> = pod.list("resourceClaims").iter().map(|claim| claim.text("name")).collect();
    known.sort_unstable();
    for (at, claim) in claims.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let (name, path) = (claim.text("name"), path.index(at));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if !seen.insert((name, claim.text("request"))) {
            errors.push(FieldError::duplicate(&path, name));
        }
        if known.binary_search(&name).is_err() {
            let mut error = FieldError::not_found(&path, name);
            let rest = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known[..known.len().min(MAX_LISTED)].join(", "))
            };
            error.detail = format!("must be one of the names in pod.spec.resourceClaims{rest}");
            errors.push(error);
        }
    }
}

/// Maximum number of known names that a message lists.
const MAX_LISTED: usize = 32;

const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_quota_huge_page(name: &str) -> bool {
    is_huge_page(name) || name.starts_with("requests.hugepages-")
}

/// In the namespace of Kubernetes.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// A resource that somebody else counts.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::label_key(&format!("requests.{name}")).is_empty()
}
