//! Role and ClusterRole: what may be done. Who may do it is in [`binding`].

use crate::value::Value;

use super::Rules;
use crate::field::{FieldError, FieldErrors, Path};
use crate::meta::{self, Checks};
use crate::{Look, Settings, names};

pub mod binding;

/// The rules of Role.
pub static RULES: Rules = Rules {
    name: |name, _| names::path_segment(name),
    metadata: Checks::WHOLE_FIRST,
    validate: |object, _, _| policy_rules(object, true),
    ..Rules::PLAIN
};

/// The rules of ClusterRole.
pub static CLUSTER_RULES: Rules = Rules { validate: cluster_role, ..RULES };

fn policy_rules(object: &Value, namespaced: bool) -> FieldErrors {
    let path = Path::new("rules");
    let rules = object.list("rules").iter().enumerate();
    rules.flat_map(|(index, rule)| policy_rule(rule, namespaced, &path.index(index))).collect()
}

fn policy_rule(rule: &Value, namespaced: bool, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if rule.list("verbs").is_empty() {
        errors.push(FieldError::required(&path.child("verbs"), "verbs must contain at least one value"));
    }
    if !rule.list("nonResourceURLs").is_empty() {
        let urls = path.child("nonResourceURLs");
        let resources = ["apiGroups", "resources", "resourceNames"].into_iter().any(|f| !rule.list(f).is_empty());
        let mistakes = [
            (namespaced, "namespaced rules cannot apply to non-resource URLs"),
            (resources, "rules cannot apply to both regular resources and non-resource URLs"),
        ];
        let mistakes = mistakes.into_iter().filter(|(wrong, _)| *wrong);
        errors.extend(mistakes.map(|(_, why)| FieldError::invalid(&urls, rule.at("nonResourceURLs"), why)));
        return errors;
    }
    let needed = [
        ("apiGroups", "resource rules must supply at least one api group"),
        ("resources", "resource rules must supply at least one resource"),
    ];
    for (field, why) in needed.into_iter().filter(|(field, _)| rule.list(field).is_empty()) {
        errors.push(FieldError::required(&path.child(field), why));
    }
    errors
}

fn cluster_role(object: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let mut errors = policy_rules(object, false);
    let aggregation = object.at("aggregationRule");
    if aggregation.is_null() {
        return errors;
    }
    let path = Path::new("aggregationRule").child("clusterRoleSelectors");
    let selectors = aggregation.list("clusterRoleSelectors");
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, why));
    }
    // Values that were let in before the rule was there may stay.
    let lenient = old.is_some_and(|old| {
        let had = old.at("aggregationRule").list("clusterRoleSelectors");
        had.iter().any(|selector| !label_selector(selector, false, &path).is_empty())
    });
    for (index, selector) in selectors.iter().enumerate() {
        errors.extend(label_selector(selector, lenient, &path.index(index)));
    }
    errors
}

/// Mistakes in a `LabelSelector`.
fn label_selector(selector: &Value, any_value: bool, path: &Path) -> FieldErrors {
    let mut errors = meta::validate_labels(selector.at("matchLabels"), &path.child("matchLabels"));
    for (index, expression) in selector.list("matchExpressions").iter().enumerate() {
        errors.extend(requirement(expression, any_value, &path.child("matchExpressions").index(index)));
    }
    errors
}

fn requirement(requirement: &Value, any_value: bool, path: &Path) -> FieldErrors {
    let values = requirement.texts("values");
    let values_path = path.child("values");
    let operator = requirement.text("operator");
    let mut errors = match operator {
        "In" | "NotIn" if values.is_empty() => FieldErrors::from([FieldError::required(
            &values_path,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )]),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            FieldErrors::from([FieldError::forbidden(&values_path, why)])
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => FieldErrors::new(),
        other => {
            FieldErrors::from([FieldError::invalid(&path.child("operator"), other, "not a valid selector operator")])
        }
    };
    let key = requirement.text("key");
    errors.extend(crate::field::invalid(&path.child("key"), key, names::label_key(key)));
    if !any_value {
        for (index, value) in values.iter().enumerate() {
            errors.extend(crate::field::invalid(&values_path.index(index), value, names::label_value(value)));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
