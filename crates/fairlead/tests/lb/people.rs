//! What people are shown: `fairlead lb`.

use serde_json::{Value, json};

use crate::lab::{BACKENDS, annotated, lab, merge};

#[test]
fn load_balancers_are_listed_described_and_drained() {
    let test = "load_balancers_are_listed_described_and_drained";
    let Some(lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    let mut proxied = annotated("service.beta.kubernetes.io/aws-load-balancer-proxy-protocol", "*");
    merge(&mut proxied, &annotated("service.beta.kubernetes.io/aws-load-balancer-type", "nlb"));
    lab.create("web", &proxied);
    lab.back("web", "", &BACKENDS[..2]);
    lab.create("stuck", &json!({"spec": {"loadBalancerIP": "203.0.113.1"}}));
    lab.told("stuck", "SyncLoadBalancerFailed", "accepted");
    lab.answers("192.0.2.1:80", "hears");

    let row = |name: &str| {
        let all: Value = serde_json::from_str(&lab.fairlead(&["lb", "ls", "-o", "json"])).unwrap();
        all["balancers"].as_array().unwrap().iter().find(|row| row["name"] == name).cloned().unwrap()
    };
    lab.wait("it is announced", || row("web")["announcers"] == json!(["here"]));
    let web = row("web");
    assert_eq!(
        (&web["addresses"], &web["path"], &web["state"]),
        (&json!(["192.0.2.1"]), &json!("userspace"), &json!("serving"))
    );
    assert_eq!((&web["healthy"], &web["backends"]), (&json!(2), &json!(2)));
    let stuck = row("stuck")["state"].as_str().unwrap().to_owned();
    assert!(stuck.starts_with("pending: spec.loadBalancerIP: 203.0.113.1 is in no pool"), "{stuck}");

    let said = lab.fairlead(&["lb", "describe", "svc/web"]);
    for part in [
        "Service:    default/web",
        "192.0.2.1 is announced by here on lan",
        "PROXY v1",
        "10.50.0.12:8080",
        "kubernetes.io/rule/nlb/client=",
        "EnsuredLoadBalancer",
    ] {
        assert!(said.contains(part), "{part:?} is missing:\n{said}");
    }

    lab.fairlead(&["lb", "drain", "web", BACKENDS[0]]);
    lab.wait("it is drained", || row("web")["healthy"] == json!(1));
    let who: Vec<String> = (0..6).filter_map(|_| lab.ask("192.0.2.1:80")).collect();
    assert!(who.len() == 6 && who.iter().all(|answer| answer.starts_with(BACKENDS[1])), "{who:?}");
    lab.fairlead(&["lb", "drain", "web", BACKENDS[0], "--undo"]);
    lab.wait("it is back", || row("web")["healthy"] == json!(2));
    lab.answers("192.0.2.1:80", BACKENDS[0]);
}
