//! Which Service gets which address: sharing, classes, pools, what is asked for.

use serde_json::{Value, json};

use crate::lab::{BACKENDS, annotated, lab, merge};

fn with(mut one: Value, more: &Value) -> Value {
    merge(&mut one, more);
    one
}

#[test]
fn services_with_a_key_share_an_address() {
    let Some(lab) = lab("services_with_a_key_share_an_address", &["--pool", "192.0.2.0/28"]) else { return };
    let port = |port: u16| json!({"spec": {"ports": [{"port": port, "targetPort": 8080}]}});
    let key = annotated("metallb.universe.tf/allow-shared-ip", "k");
    lab.create("a", &with(key.clone(), &port(80)));
    lab.becomes("a", "192.0.2.1/VIP");
    lab.create("b", &with(with(key.clone(), &port(443)), &json!({"spec": {"loadBalancerIP": "192.0.2.1"}})));
    lab.becomes("b", "192.0.2.1/VIP");
    lab.back("a", "", &BACKENDS[..1]);
    lab.back("b", "", &BACKENDS[1..2]);
    lab.answers("192.0.2.1:80", "10.50.0.11 hears");
    lab.answers("192.0.2.1:443", "10.50.0.12 hears");
    lab.create("c", &with(port(8443), &json!({"spec": {"loadBalancerIP": "192.0.2.1"}})));
    lab.told("c", "SyncLoadBalancerFailed", "192.0.2.1 belongs to the Service default/");
    lab.create("d", &with(with(key, &port(80)), &json!({"spec": {"loadBalancerIP": "192.0.2.1"}})));
    lab.told("d", "SyncLoadBalancerFailed", "both have the port 80/TCP");
    assert_eq!((lab.ingress("c"), lab.ingress("d")), (String::new(), String::new()));
    // What became free is for who waits.
    lab.api("DELETE", "/api/v1/namespaces/default/services/a", &Value::Null);
    lab.becomes("d", "192.0.2.1/VIP");
}

#[test]
fn only_services_of_our_class_get_addresses() {
    let flags = ["--pool", "192.0.2.0/28", "--load-balancer-class", "example.com/ours"];
    let Some(lab) = lab("only_services_of_our_class_get_addresses", &flags) else { return };
    lab.create("other", &json!({"spec": {"loadBalancerClass": "example.com/other"}}));
    lab.create("ours", &json!({"spec": {"loadBalancerClass": "example.com/ours"}}));
    lab.create("unset", &json!({}));
    lab.becomes("ours", "192.0.2.1/VIP");
    lab.becomes("unset", "192.0.2.2/VIP");
    let other = lab.service("other");
    assert_eq!((&other["status"]["loadBalancer"], &other["metadata"]["finalizers"]), (&json!({}), &Value::Null));
}

#[test]
fn pools_of_a_file_are_for_whom_they_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "pools:
- name: gold
  addresses: [192.0.2.64/28]
  serviceSelector: tier=gold
- name: closed
  addresses: [192.0.2.96/28]
  autoAssign: false
- name: inside
  addresses: [192.0.2.128/28]
  scheme: internal
default: false
",
    )
    .unwrap();
    let path = file.path().display().to_string();
    let flags = ["--balancer-config", &path, "--pool", "192.0.2.0/28"];
    let Some(lab) = lab("pools_of_a_file_are_for_whom_they_name", &flags) else { return };
    let ours = json!({"spec": {"loadBalancerClass": "fairlead.dev/lb"}});
    lab.create("plain", &ours);
    lab.becomes("plain", "192.0.2.1/VIP");
    lab.create("gold", &with(ours.clone(), &json!({"metadata": {"labels": {"tier": "gold"}}})));
    lab.becomes("gold", "192.0.2.64/VIP");
    lab.create("closed", &with(ours.clone(), &annotated("metallb.io/address-pool", "closed")));
    lab.becomes("closed", "192.0.2.96/VIP");
    let internal = annotated("service.beta.kubernetes.io/azure-load-balancer-internal", "true");
    lab.create("inside", &with(ours, &internal));
    lab.becomes("inside", "192.0.2.128/VIP");
    lab.create("unset", &json!({}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(lab.ingress("unset"), "", "the file says that those without a class are not ours");
}
