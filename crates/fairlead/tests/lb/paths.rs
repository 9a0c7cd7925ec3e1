//! The two paths to backends: the kernel's, which keeps the client's address, and that through threads of ours.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{BACKENDS, CLIENT, annotated, lab, merge, tool};

const PROXY: &str = "service.beta.kubernetes.io/aws-load-balancer-proxy-protocol";

#[test]
fn a_service_leaves_pending_within_a_second() {
    let Some(lab) = lab("a_service_leaves_pending_within_a_second", &["--pool", "192.0.2.0/28"]) else { return };
    let take = |(name, address): (&str, &str)| {
        let began = Instant::now();
        let service = lab.create(name, &json!({}));
        assert_eq!(service["status"]["loadBalancer"], json!({}));
        lab.becomes(name, &format!("{address}/VIP"));
        began.elapsed()
    };
    // This machine may be busy with something else for a moment: the fastest of some shows how long it takes.
    let services = [("web", "192.0.2.1"), ("second", "192.0.2.2"), ("third", "192.0.2.3"), ("fourth", "192.0.2.4")];
    let took = services.map(take);
    assert!(took.iter().any(|took| *took < Duration::from_secs(1)), "{took:?}");
    assert_eq!(lab.service("web")["metadata"]["finalizers"], json!(["service.kubernetes.io/load-balancer-cleanup"]));
    lab.told("web", "EnsuredLoadBalancer", "Ensured load balancer: 192.0.2.1 from pool \"default\"");
    assert_eq!(lab.events("web", "EnsuringLoadBalancer"), ["Ensuring load balancer"]);
}

#[test]
fn the_kernel_keeps_the_clients_address() {
    let Some(lab) = lab("the_kernel_keeps_the_clients_address", &["--pool", "192.0.2.0/28"]) else { return };
    lab.create("web", &json!({"spec": {"externalTrafficPolicy": "Local"}}));
    lab.back("web", "", &BACKENDS[..1]);
    lab.becomes("web", "192.0.2.1/VIP");
    lab.answers("192.0.2.1:80", &format!("10.50.0.11 hears {CLIENT} say hello"));
}

#[test]
fn what_the_kernel_cannot_do_goes_through_threads_and_says_so() {
    let test = "what_the_kernel_cannot_do_goes_through_threads_and_says_so";
    let Some(lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    lab.create("web", &annotated(PROXY, "*"));
    lab.back("web", "", &BACKENDS[..1]);
    lab.becomes("web", "192.0.2.1/Proxy");
    lab.answers("192.0.2.1:80", &format!("say PROXY TCP4 {CLIENT} 192.0.2.1 "));
    // The other path takes over at the same address, and back.
    lab.change("web", &json!({"metadata": {"annotations": null}}));
    lab.becomes("web", "192.0.2.1/VIP");
    lab.answers("192.0.2.1:80", "say hello");
    lab.change("web", &annotated(PROXY, "*"));
    lab.becomes("web", "192.0.2.1/Proxy");
    lab.answers("192.0.2.1:80", &format!("say PROXY TCP4 {CLIENT} 192.0.2.1 "));
}

#[test]
fn both_families_are_served_on_both_paths() {
    let flags = ["--pool", "192.0.2.0/28,2001:db8::10-2001:db8::1f"];
    let Some(lab) = lab("both_families_are_served_on_both_paths", &flags) else { return };
    let dual = json!({"spec": {"ipFamilyPolicy": "RequireDualStack"}});
    let mut proxied = annotated(PROXY, "*");
    merge(&mut proxied, &dual);
    for (name, more) in [("web", &dual), ("proxied", &proxied)] {
        lab.create(name, more);
        lab.back(name, "", &[BACKENDS[0], BACKENDS[2]]);
    }
    lab.becomes("web", "192.0.2.1/VIP,2001:db8::10/VIP");
    lab.becomes("proxied", "192.0.2.2/Proxy,2001:db8::11/Proxy");
    lab.answers("192.0.2.1:80", "10.50.0.11 hears");
    lab.answers("[2001:db8::10]:80", "fd50::11 hears");
    lab.answers("192.0.2.2:80", "say PROXY TCP4 192.0.2.200 192.0.2.2 ");
    lab.answers("[2001:db8::11]:80", "say PROXY TCP6 2001:db8::200 2001:db8::11 ");
}

#[test]
fn tcp_and_udp_are_served_at_one_address_without_node_ports() {
    let test = "tcp_and_udp_are_served_at_one_address_without_node_ports";
    let Some(lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    let port = |name: &str, protocol: &str| json!({"name": name, "port": 53, "protocol": protocol, "targetPort": 8080});
    let ports = json!([port("tcp", "TCP"), port("udp", "UDP")]);
    lab.create("dns", &json!({"spec": {"allocateLoadBalancerNodePorts": false, "ports": ports}}));
    lab.back("dns", "both", &BACKENDS[..1]);
    lab.becomes("dns", "192.0.2.1/VIP");
    lab.answers("192.0.2.1:53", "10.50.0.11 hears");
    lab.wait("UDP is answered", || lab.ask_udp("192.0.2.1:53").is_some_and(|answer| answer.contains("say hello")));
    let service = lab.service("dns");
    assert!(service["spec"]["ports"].as_array().unwrap().iter().all(|port| port["nodePort"].is_null()), "{service}");
}

#[test]
fn a_node_with_the_exclusion_label_answers_for_nothing() {
    let test = "a_node_with_the_exclusion_label_answers_for_nothing";
    let Some(lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    lab.create("web", &json!({}));
    lab.back("web", "", &BACKENDS[..1]);
    lab.answers("192.0.2.1:80", "10.50.0.11 hears");
    let said = lab.fairlead(&["lb", "drain", "--node", "here"]);
    assert!(said.contains("node/here answers for no load balancer any more"), "{said}");
    lab.wait("nobody answers", || {
        tool(&lab.client, "ip neighbour flush dev eth0");
        lab.ask("192.0.2.1:80").is_none()
    });
    lab.fairlead(&["lb", "drain", "--node", "here", "--undo"]);
    lab.answers("192.0.2.1:80", "10.50.0.11 hears");
}
