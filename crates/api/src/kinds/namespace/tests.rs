use crate::value::{Value, json};

use super::{RULES, is_finalized, prepare_finalize, terminate, validate_finalize};
use crate::field::FieldError;

fn named(name: &str) -> Value {
    let mut namespace = json!({"metadata": {"name": name}});
    (RULES.default)(&mut namespace, &crate::kinds::pod::tests::settings());
    namespace
}

#[test]
fn the_name_label_is_always_the_name() {
    assert_eq!(named("a")["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "a"}));
}

#[test]
fn finalize_changes_finalizers_but_not_the_phase() {
    let mut new = json!({"metadata": {"name": "a"}, "spec": {}, "status": {"phase": "Active"}});
    let old =
        json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"}});
    prepare_finalize(&mut new, &old);
    assert_eq!(new["status"]["phase"], "Terminating");
    assert_eq!(new["spec"], json!({}));
}

#[test]
fn a_namespace_goes_when_nothing_holds_it() {
    let check = |namespace: Value, expected: bool| assert_eq!(is_finalized(&namespace), expected, "{namespace}");
    let deleted = "2024-01-01T00:00:00Z";
    check(json!({"metadata": {"deletionTimestamp": deleted}, "spec": {}}), true);
    check(json!({"metadata": {"deletionTimestamp": deleted}, "spec": {"finalizers": ["kubernetes"]}}), false);
    check(json!({"metadata": {"deletionTimestamp": deleted, "finalizers": ["a/b"]}, "spec": {}}), false);
    check(json!({"metadata": {}, "spec": {}}), false);
}

#[test]
fn finalizers_are_standard_or_qualified() {
    let check = |name: &str, expected: &[&str]| {
        let errors = validate_finalize(&json!({"spec": {"finalizers": [name]}}));
        assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), expected, "{name}");
    };
    check("kubernetes", &[]);
    check("example.com/hold", &[]);
    check(
        "hold",
        &[
            "spec.finalizers[0]: Invalid value: \"hold\": name is neither a standard finalizer name nor is it fully qualified",
        ],
    );
}

#[test]
fn the_phase_follows_the_deletion() {
    let check = |metadata: Value, phase: &str, mistakes: usize| {
        let namespace = json!({"metadata": metadata, "status": {"phase": phase}});
        let errors = (RULES.validate_status)(&namespace, &namespace, &crate::kinds::pod::tests::settings());
        assert_eq!(errors.len(), mistakes, "{namespace}");
    };
    check(json!({}), "Active", 0);
    check(json!({}), "Terminating", 1);
    check(json!({"deletionTimestamp": "2024-01-01T00:00:00Z"}), "Terminating", 0);
    check(json!({"deletionTimestamp": "2024-01-01T00:00:00Z"}), "Active", 1);
}

#[test]
fn a_deleted_namespace_is_terminating_since_the_first_delete() {
    let mut namespace = named("a");
    terminate(&mut namespace, "2024-01-01T00:00:00Z");
    terminate(&mut namespace, "2025-01-01T00:00:00Z");
    assert_eq!(namespace["metadata"]["deletionTimestamp"], "2024-01-01T00:00:00Z");
    assert_eq!(namespace["status"]["phase"], "Terminating");
}
