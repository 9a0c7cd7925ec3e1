use crate::value::{Value, json};

use super::binding::{BINDING_RULES, CLUSTER_BINDING_RULES};
use super::*;

fn settings() -> Settings {
    Settings { service_ranges: Vec::new(), node_ports: 30000..=32767, service_topology: false }
}

fn check(rules: &Rules, mut object: Value, messages: &[&str]) {
    (rules.default)(&mut object, &settings());
    let errors: Vec<String> = (rules.validate)(&object, None, &settings()).iter().map(ToString::to_string).collect();
    assert_eq!(errors, messages, "{object}");
}

#[test]
fn a_rule_is_about_resources_or_urls() {
    let rule = |rule: Value| json!({"rules": [rule]});
    check(&RULES, rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})), &[]);
    check(
        &RULES,
        rule(json!({})),
        &[
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ],
    );
    let urls = rule(json!({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}));
    check(&CLUSTER_RULES, urls.clone(), &[]);
    check(
        &RULES,
        urls,
        &[
            "rules[0].nonResourceURLs: Invalid value: [\"/healthz\"]: namespaced rules cannot apply to non-resource URLs",
        ],
    );
}

#[test]
fn an_aggregation_has_selectors() {
    check(
        &CLUSTER_RULES,
        json!({"aggregationRule": {}}),
        &[
            "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
        ],
    );
    check(
        &CLUSTER_RULES,
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}}),
        &[
            "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ],
    );
}

#[test]
fn a_binding_names_a_role_and_subjects() {
    let binding = |kind: &str, subject: Value| json!({"roleRef": {"apiGroup": "", "kind": kind, "name": "r"}, "subjects": [subject]});
    check(&BINDING_RULES, binding("Role", json!({"kind": "User", "name": "u"})), &[]);
    check(&BINDING_RULES, binding("Role", json!({"kind": "ServiceAccount", "name": "s"})), &[]);
    check(
        &CLUSTER_BINDING_RULES,
        binding("Role", json!({"kind": "ServiceAccount", "name": "s"})),
        &[
            "roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\"",
            "subjects[0].namespace: Required value",
        ],
    );
    check(
        &BINDING_RULES,
        binding("Role", json!({"kind": "x", "name": ""})),
        &[
            "subjects[0].name: Required value",
            "subjects[0].kind: Unsupported value: \"x\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
        ],
    );
}

#[test]
fn the_role_of_a_binding_does_not_change() {
    let binding = |name: &str| json!({"roleRef": {"apiGroup": "g", "kind": "Role", "name": name}});
    let change = |new: &str| (BINDING_RULES.validate_update)(&binding(new), &binding("r"), &settings());
    assert!(change("r").is_empty());
    assert_eq!(
        change("s")[0].to_string(),
        "roleRef: Invalid value: {\"APIGroup\":\"g\",\"Kind\":\"Role\",\"Name\":\"s\"}: cannot change roleRef"
    );
}
