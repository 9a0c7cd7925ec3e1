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
        had.iter().any(|selector| !meta::validate_label_selector(selector, false, &path).is_empty())
    });
    for (index, selector) in selectors.iter().enumerate() {
        errors.extend(meta::validate_label_selector(selector, lenient, &path.index(index)));
    }
    errors
}

#[cfg(test)]
mod tests;
