//! `fairlead balancer` beside any API server: several can run, one gives out addresses.

use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::lab::{Lab, lab};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/fairlead-balancer";

/// The Node of whoever gives out addresses.
fn leader(lab: &Lab) -> String {
    let lease = lab.api("GET", LEASE, &Value::Null);
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().split('_').next().unwrap_or_default().to_owned()
}

fn end(mut child: Child) {
    let told = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(told.success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn one_of_several_gives_out_addresses_and_another_takes_over() {
    let test = "one_of_several_gives_out_addresses_and_another_takes_over";
    let Some(lab) = lab(test, &["server"]) else { return };
    let mut running: Vec<(&str, Child)> =
        ["n1", "n2"].into_iter().map(|node| (node, lab.balancer(node, &["--pool", "192.0.2.0/28"]))).collect();
    lab.create("a", &json!({}));
    lab.becomes("a", "192.0.2.1/VIP");
    let first = leader(&lab);
    let place = running.iter().position(|(node, _)| *node == first).unwrap();
    end(running.remove(place).1);
    lab.create("b", &json!({}));
    lab.becomes("b", "192.0.2.2/VIP");
    assert_eq!((lab.ingress("a").as_str(), leader(&lab).as_str()), ("192.0.2.1/VIP", running[0].0));
    running.into_iter().for_each(|(_, child)| end(child));
}
