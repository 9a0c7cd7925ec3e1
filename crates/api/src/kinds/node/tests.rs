use crate::value::{Value, json};

use super::{RULES, row};
use crate::field::FieldError;
use crate::kinds::pod::tests::settings;

#[test]
fn mistakes_are_named() {
    let check = |spec: Value, expected: &[&str]| {
        let mut node = json!({"metadata": {"name": "n"}, "spec": spec});
        (RULES.default)(&mut node, &settings());
        let errors = (RULES.validate)(&node, None, &settings());
        assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), expected, "{node}");
    };
    check(json!({"taints": [{"key": "k", "effect": ""}]}), &["metadata.taints[0].effect: Required value"]);
    check(
        json!({"podCIDRs": ["10.0.0.0/24", "10.1.0.0/24"]}),
        &[
            "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more than one CIDR for each IP family",
        ],
    );
    check(json!({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}), &[]);
}

#[test]
fn a_range_is_given_once() {
    let check = |old: Value, new: Value, expected: usize| {
        let node = |spec: Value| json!({"metadata": {"name": "n"}, "spec": spec});
        assert_eq!((RULES.validate_update)(&node(new), &node(old), &settings()).len(), expected);
    };
    check(json!({}), json!({"podCIDRs": ["10.0.0.0/24"]}), 0);
    check(json!({"podCIDRs": ["10.0.0.0/24"]}), json!({"podCIDRs": ["10.1.0.0/24"]}), 1);
    check(json!({"podCIDRs": ["10.0.0.0/24"]}), json!({}), 1);
}

#[test]
fn capacity_can_all_be_allocated_unless_said_otherwise() {
    let mut node = json!({"status": {"capacity": {"cpu": "4"}}});
    (RULES.default)(&mut node, &settings());
    assert_eq!(node["status"]["allocatable"], json!({"cpu": "4"}));
}

#[test]
fn a_row_shows_state_and_roles() {
    let node = json!({
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/b": "", "kubernetes.io/role": "a"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "False"}],
            "nodeInfo": {"kernelVersion": "6.1", "architecture": "amd64"},
        },
    });
    let cells = row(&node, 0);
    assert_eq!(cells[1], "NotReady,SchedulingDisabled");
    assert_eq!(cells[2], "a,b");
    assert_eq!(cells[8], "6.1 (amd64)");
}
