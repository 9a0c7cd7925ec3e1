use serde_json::json;

use super::*;

#[test]
fn a_node_is_known_by_its_addresses_and_without_any_by_its_name() {
    let check = |addresses: &[(&str, &str)], expected: bool| {
        let told: Vec<_> = addresses.iter().map(|(kind, address)| json!({"type": kind, "address": address})).collect();
        let node: Node =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "status": {"addresses": told}})).unwrap();
        let own = ["192.0.2.1", "fd00::1"].map(|ip| ip.parse().unwrap());
        assert_eq!(is_machine(&node, &own, "one"), expected, "{addresses:?}");
    };
    check(&[("InternalIP", "192.0.2.1")], true);
    check(&[("InternalIP", "192.0.2.9"), ("InternalIP", "fd00::1")], true);
    check(&[("InternalIP", "192.0.2.9"), ("Hostname", "one")], false);
    check(&[("Hostname", "One")], true);
    check(&[("Hostname", "two")], false);
    check(&[], false);
}
