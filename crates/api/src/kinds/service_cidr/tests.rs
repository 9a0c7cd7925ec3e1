use crate::value::{Value, json};

use super::*;

fn settings() -> Settings {
    Settings { service_ranges: Vec::new(), node_ports: 30000..=32767, service_topology: false }
}

fn check_update(new: Value, old: Value, messages: &[&str]) {
    let object = |cidrs: &Value| json!({"spec": {"cidrs": cidrs}});
    let errors = validate_update(&object(&new), &object(&old), &settings());
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, messages, "{new}");
}

#[test]
fn a_range_stays_and_the_other_family_may_join() {
    check_update(json!(["10.1.0.0/24"]), json!(["10.1.0.0/24"]), &[]);
    check_update(json!(["10.1.0.0/24", "fd00::/112"]), json!(["10.1.0.0/24"]), &[]);
    check_update(
        json!(["10.2.0.0/24"]),
        json!(["10.1.0.0/24"]),
        &["spec.cidrs[0]: Invalid value: \"10.2.0.0/24\": field is immutable"],
    );
    check_update(
        json!(["10.1.0.0/24"]),
        json!(["10.1.0.0/24", "fd00::/112"]),
        &["spec.cidrs: Invalid value: [\"10.1.0.0/24\"]: field is immutable"],
    );
    check_update(
        json!(["10.1.0.0/24", "10.2.0.0/24"]),
        json!(["10.1.0.0/24"]),
        &[
            "spec.cidrs: Invalid value: [\"10.1.0.0/24\",\"10.2.0.0/24\"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64",
        ],
    );
}

#[test]
fn status_is_not_written_with_the_rest() {
    let mut object = json!({"metadata": {}, "spec": {}, "status": {"conditions": [{"type": "Ready"}]}});
    (RULES.prepare_create)(&mut object, &settings());
    assert_eq!(object["status"], json!({}));
    let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"cidrs": ["10.1.0.0/24"]}, "status": {}});
    let mut object = json!({"metadata": {}, "spec": {}, "status": {"conditions": [{"type": "Ready"}]}});
    (RULES.prepare_status)(&mut object, &old, &settings());
    assert_eq!(object["spec"], old["spec"]);
    assert_eq!(object["metadata"], old["metadata"]);
    assert_eq!(object["status"]["conditions"][0]["type"], "Ready");
}
