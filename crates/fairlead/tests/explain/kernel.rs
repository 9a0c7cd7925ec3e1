//! What is wrong on the machine and in no object: rules that somebody removed, rules of others, parameters, a controller or a proxy
//! that does not run.

use fairlead_kernel::nft::{Batch, Connection, Family, Table};
use serde_json::{Value, json};

use super::lab::{Lab, Said, lab, says_hello, tool};
use super::setup::{by_hand, client, pod, service, slice};

/// Makes a Service with a Pod behind it, and a client.
fn prepared(lab: &Lab) -> String {
    lab.create("", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    for object in [service(json!({})), pod(json!({})), client(json!({}))] {
        lab.create("shop", &object);
    }
    format!("{}:80", lab.address("shop", "web", false).unwrap())
}

#[track_caller]
fn is(said: &Said, cause: &str) {
    assert_eq!((said.first(), said.code), (Some(cause), 1), "{}", said.words());
    assert!(!said.remedy().is_empty(), "{}", said.words());
}

#[track_caller]
fn is_well(lab: &Lab, words: &str) {
    lab.wait("it works again", || lab.explain("shop", words).code == 0);
    let said = lab.explain("shop", words);
    assert_eq!((said.first(), said.code), (None, 0), "{}", said.words());
}

#[test]
fn what_stands_in_the_way_on_the_machine_is_found() {
    let Some(lab) = lab("what_stands_in_the_way_on_the_machine_is_found", &[]) else { return };
    let at = prepared(&lab);
    lab.wait("it works", || says_hello(&lab.machine, &at));
    is_well(&lab, "svc/web --live");
    is_well(&lab, "svc/web --from pod/client --live");

    tool(&lab.machine, "echo 0 > /proc/sys/net/ipv4/ip_forward");
    is(&lab.explain("shop", "svc/web --from pod/client"), "ForwardingOff");
    tool(&lab.machine, "echo 1 > /proc/sys/net/ipv4/ip_forward");

    // Others' rules: in the way to a Pod, on the way out, and by the policy of a chain.
    for (rules, words) in [
        (
            "chain forward { type filter hook forward priority 0; tcp dport 8080 drop comment \"no web here\"; }",
            "svc/web --from pod/client --live",
        ),
        ("chain output { type filter hook output priority 0; tcp dport 8080 reject; }", "svc/web --live"),
        (
            "chain closed { type filter hook forward priority 10; policy drop; udp dport 53 accept; }",
            "svc/web --from pod/client --live",
        ),
    ] {
        tool(&lab.machine, &format!("nft 'table inet wall {{ {rules}; }}'"));
        let said = lab.explain("shop", words);
        tool(&lab.machine, "nft delete table inet wall");
        is(&said, "ForeignRuleDrops");
        assert!(said.report.to_string().contains("wall"), "{}", said.words());
    }
    // Without a packet it cannot be told, and that is said.
    tool(
        &lab.machine,
        "nft 'table inet wall { chain forward { type filter hook forward priority 0; tcp dport 9 drop; }; }'",
    );
    let said = lab.explain("shop", "svc/web --from pod/client");
    assert!(said.first().is_none() && said.report.to_string().contains("--live"), "{}", said.words());
    tool(&lab.machine, "nft delete table inet wall");

    // The DNS server is not reached.
    tool(
        &lab.machine,
        "nft 'table inet wall { chain input { type filter hook input priority 0; udp dport 53 drop; }; }'",
    );
    let said = lab.explain("shop", "svc/web --from pod/client");
    tool(&lab.machine, "nft delete table inet wall");
    is(&said, "DnsSilent");
    is_well(&lab, "svc/web --from pod/client --live");
}

#[test]
fn endpoints_that_do_not_answer_are_found_by_a_packet() {
    let Some(lab) = lab("endpoints_that_do_not_answer_are_found_by_a_packet", &[]) else { return };
    let nobody = |address: &str, port: u16| {
        slice(json!({
            "endpoints": [{"addresses": [address]}], "ports": [{"name": "", "port": port, "protocol": "TCP"}],
        }))
    };
    for (namespace, slice, cause) in
        [("refuses", nobody("192.0.2.200", 9), "ConnectionRefused"), ("silent", nobody("192.0.2.201", 8080), "NoReply")]
    {
        lab.create("", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        lab.create(namespace, &by_hand(json!({})));
        lab.create(namespace, &slice);
        lab.wait(cause, || {
            let said = lab.explain(namespace, "svc/web --live");
            said.first() == Some(cause) && said.code == 1
        });
    }
}

#[test]
fn rules_of_every_mode_are_looked_at() {
    for (mode, program) in [("iptables", "iptables-save"), ("userspace", "nft")] {
        if !fairlead_testkit::need::need("rules_of_every_mode_are_looked_at", program) {
            continue;
        }
        let test = "rules_of_every_mode_are_looked_at";
        let Some(lab) = lab(test, &["--proxy-mode", mode]) else { return };
        let at = prepared(&lab);
        lab.wait("it works", || says_hello(&lab.machine, &at));
        is_well(&lab, "svc/web");
        let said = lab.explain("shop", "svc/web");
        let steps = said.report["steps"].as_array().cloned().unwrap_or_default();
        let rules = steps.iter().find(|step| step["id"] == "rules").unwrap();
        assert_eq!(rules["state"], "ok", "{}", said.words());
        assert!(rules["evidence"].to_string().contains(mode), "{}", said.words());
    }
}

#[test]
fn parts_that_do_not_run_are_found() {
    let flags = [
        "--controllers=*,scheduler,node-ipam-controller,serviceaccount-controller,-endpointslice-controller",
        "--proxy-mode=none",
    ];
    let Some(mut lab) = lab("parts_that_do_not_run_are_found", &flags) else { return };
    prepared(&lab);
    // Nobody has addresses for load balancers.
    let balanced = json!({"metadata": {"name": "balanced"}, "spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false}});
    lab.create("shop", &service(balanced));
    lab.wait("a pool is missed", || {
        lab.explain("shop", "svc/balanced --from outside").report.to_string().contains("LoadBalancerNoPool")
    });
    // Nobody makes slices, and nobody ever did.
    lab.wait("slices are missed", || lab.explain("shop", "svc/web").first() == Some("SlicesMissing"));
    // Somebody did, and was killed.
    let slices = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
    lab.start(&["control", "--controllers=endpointslice-controller", "--metrics-bind-address="]);
    lab.wait("slices are made", || {
        let all = lab.api("GET", slices, &Value::Null).to_string();
        ["web", "balanced"].iter().all(|name| all.contains(&format!(r#""kubernetes.io/service-name":"{name}""#)))
    });
    lab.kill_others();
    lab.api("DELETE", slices, &Value::Null);
    lab.wait("the controller is missed", || {
        let said = lab.explain("shop", "svc/web");
        said.first() == Some("ControllerNotRunning") && said.code == 1
    });
    // Somebody does it by hand, and nobody serves the address.
    let ip = lab.api("GET", "/api/v1/namespaces/shop/pods/web-1", &Value::Null)["status"]["podIP"].clone();
    let labels = json!({"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"});
    let made = slice(json!({"metadata": {"labels": labels}, "endpoints": [{
        "addresses": [ip], "nodeName": "here", "conditions": {"ready": true},
        "targetRef": {"kind": "Pod", "namespace": "shop", "name": "web-1"},
    }]}));
    lab.create("shop", &made);
    is(&lab.explain("shop", "svc/web"), "ProxyNotRunning");

    let at = format!("{}:80", lab.address("shop", "web", false).unwrap());
    lab.start(&["proxy", "--hostname-override", "here", "--healthz-bind-address=", "--metrics-bind-address="]);
    lab.wait("it is served", || says_hello(&lab.machine, &at));
    is_well(&lab, "svc/web");
    // Somebody removes a rule while the proxy hangs.
    lab.freeze_others();
    let key = format!("{} . tcp . 80", at.trim_end_matches(":80"));
    let before = tool(&lab.machine, "nft list table ip fairlead");
    tool(&lab.machine, &format!("nft delete element ip fairlead frontends '{{ {key} }}'"));
    assert!(!says_hello(&lab.machine, &at), "{before}");
    is(&lab.explain("shop", "svc/web"), "RulesMissing");
    // The proxy is gone, first without its rules and then with them.
    lab.kill_others();
    is(&lab.explain("shop", "svc/web"), "ProxyNotRunning");
    lab.start(&["proxy", "--hostname-override", "here", "--healthz-bind-address=", "--metrics-bind-address="]);
    lab.wait("it is served again", || says_hello(&lab.machine, &at));
    lab.kill_others();
    let said = lab.explain("shop", "svc/web");
    assert_eq!((said.first(), said.code), (Some("ProxyNotRunning"), 0), "{}", said.words());
    // What the slices say is replaced meanwhile, by nobody who should.
    let path = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/by-hand";
    let mut slice = lab.api("GET", path, &Value::Null);
    slice["endpoints"][0]["addresses"] = json!([super::lab::HOST]);
    slice["endpoints"][0].as_object_mut().unwrap().remove("targetRef");
    lab.api("PUT", path, &slice);
    is(&lab.explain("shop", "svc/web"), "ControllerNotRunning");
}

#[test]
fn a_proxy_that_cannot_write_its_rules_is_found() {
    let Some(lab) = lab("a_proxy_that_cannot_write_its_rules_is_found", &[]) else { return };
    let at = prepared(&lab);
    lab.wait("it works", || says_hello(&lab.machine, &at));
    is_well(&lab, "svc/web");
    // Somebody takes the table for their own, and nobody else may touch it.
    let taken = lab.machine.run(|| {
        let (mut connection, mut batch) = (Connection::open()?, Batch::new());
        let table = Table::new(Family::Ip, "fairlead");
        batch.delete_table(&table);
        batch.add_owned_table(&table);
        connection.commit(batch, None).map(|_| connection)
    });
    let taken = taken.unwrap().unwrap();
    lab.create("shop", &service(json!({"metadata": {"name": "another"}})));
    lab.wait("the proxy complains", || {
        let said = lab.explain("shop", "svc/web");
        said.first() == Some("ProxyFails") && said.code == 1
    });
    drop(taken);
    is_well(&lab, "svc/web --live");
}

#[test]
fn load_balancers_that_nobody_serves_any_more_are_found() {
    // Those beside the server are of another class, and their page is elsewhere.
    let flags = ["--load-balancer-class=example.com/lb", "--balancer-bind-address="];
    let Some(mut lab) = lab("load_balancers_that_nobody_serves_any_more_are_found", &flags) else { return };
    prepared(&lab);
    let balanced = |name: &str| {
        let spec = json!({"type": "LoadBalancer", "loadBalancerClass": "fairlead.dev/lb"});
        service(json!({"metadata": {"name": name}, "spec": spec}))
    };
    lab.create("shop", &balanced("early"));
    lab.wait("it waits", || {
        lab.explain("shop", "svc/early --from outside").report.to_string().contains("LoadBalancerPending")
    });
    lab.start(&["balancer", "--node-name=here", "--pool=192.0.2.64/28", "--balancer-bind-address="]);
    lab.wait("it is served", || lab.address("shop", "early", true).is_some());
    lab.kill_others();
    lab.create("shop", &balanced("late"));
    lab.wait("nobody serves it", || {
        let said = lab.explain("shop", "svc/late --from outside");
        said.report.to_string().contains("LoadBalancerMissing")
    });
}
