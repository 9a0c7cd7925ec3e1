//! The end of a load balancer, and its life across restarts.

use serde_json::{Value, json};

use crate::lab::{BACKENDS, SERVICES, annotated, lab};

const PROXY: &str = "service.beta.kubernetes.io/aws-load-balancer-proxy-protocol";

#[test]
fn a_service_that_goes_gives_its_address_back() {
    let Some(lab) = lab("a_service_that_goes_gives_its_address_back", &["--pool", "192.0.2.1"]) else { return };
    for (name, more) in [("kernel", json!({})), ("proxied", annotated(PROXY, "*"))] {
        lab.create(name, &more);
        lab.back(name, "", &BACKENDS[..1]);
        lab.answers("192.0.2.1:80", "10.50.0.11 hears");
        lab.api("DELETE", &format!("{SERVICES}/{name}"), &Value::Null);
        lab.wait("it is gone", || {
            let list = lab.api("GET", SERVICES, &Value::Null);
            list["items"].as_array().unwrap().iter().all(|one| one["metadata"]["name"] != name)
        });
        lab.wait("nobody answers", || lab.ask("192.0.2.1:80").is_none());
        lab.told(name, "DeletedLoadBalancer", "Deleted load balancer");
    }
    lab.create("next", &json!({}));
    lab.becomes("next", "192.0.2.1/VIP");
}

#[test]
fn a_service_of_another_type_has_no_load_balancer_any_more() {
    let test = "a_service_of_another_type_has_no_load_balancer_any_more";
    let Some(lab) = lab(test, &["--pool", "192.0.2.1"]) else { return };
    lab.create("web", &json!({}));
    lab.becomes("web", "192.0.2.1/VIP");
    lab.create("next", &json!({}));
    lab.told("next", "SyncLoadBalancerFailed", "is taken");
    let unset = json!({"externalTrafficPolicy": null, "allocateLoadBalancerNodePorts": null, "type": "ClusterIP",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]});
    lab.change("web", &json!({"spec": unset}));
    lab.becomes("web", "");
    lab.wait("the finalizer is gone", || lab.service("web")["metadata"]["finalizers"].is_null());
    lab.becomes("next", "192.0.2.1/VIP");
}

#[test]
fn addresses_stay_across_restarts_and_crashes() {
    let test = "addresses_stay_across_restarts_and_crashes";
    let Some(mut lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    for name in ["a", "b", "c"] {
        lab.create(name, &json!({}));
    }
    lab.becomes("c", "192.0.2.3/VIP");
    lab.create("proxied", &annotated(PROXY, "*"));
    lab.back("c", "", &BACKENDS[..1]);
    lab.back("proxied", "", &BACKENDS[..1]);
    lab.answers("192.0.2.4:80", "say PROXY TCP4");
    lab.api("DELETE", &format!("{SERVICES}/a"), &Value::Null);
    lab.kill();
    lab.start();
    lab.create("new", &json!({}));
    lab.becomes("new", "192.0.2.1/VIP");
    lab.becomes("b", "192.0.2.2/VIP");
    lab.becomes("c", "192.0.2.3/VIP");
    lab.answers("192.0.2.3:80", "10.50.0.11 hears");
    lab.answers("192.0.2.4:80", "say PROXY TCP4");
}

#[test]
fn a_bad_value_changes_nothing_across_a_restart() {
    let test = "a_bad_value_changes_nothing_across_a_restart";
    let Some(mut lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    let port = |name: &str, port: u16, protocol: &str| {
        let target = 8080;
        json!({"name": name, "port": port, "protocol": protocol, "targetPort": target})
    };
    let mut web = annotated(PROXY, "*");
    web["spec"] = json!({"ports": [port("a", 80, "TCP")]});
    lab.create("web", &web);
    lab.back("web", "a", &BACKENDS[..1]);
    lab.answers("192.0.2.1:80", "say PROXY TCP4");
    lab.change("web", &annotated(PROXY, "80"));
    lab.told("web", "SyncLoadBalancerFailed", PROXY);
    lab.answers("192.0.2.1:80", "say PROXY TCP4");
    lab.kill();
    lab.start();
    lab.answers("192.0.2.1:80", "say PROXY TCP4");
    // What cannot be carried says so where it would be.
    lab.change("web", &annotated(PROXY, "*"));
    lab.change("web", &json!({"spec": {"ports": [port("a", 80, "TCP"), port("b", 53, "UDP")]}}));
    lab.wait("the status says so", || {
        let service = lab.service("web");
        let ports = &service["status"]["loadBalancer"]["ingress"][0]["ports"];
        ports[1]["error"] == "fairlead.dev/ProtocolNotServed" && ports[0]["error"].is_null()
    });
    lab.kill();
    lab.start();
    lab.answers("192.0.2.1:80", "say PROXY TCP4");
}
