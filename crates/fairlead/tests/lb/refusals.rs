//! Whatever is refused is told, with what would be accepted, and the Service stays as it was.

use serde_json::json;

use crate::lab::{BACKENDS, annotated, lab};

const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer-";

#[test]
fn without_a_pool_every_service_is_told_how_to_make_one() {
    let Some(lab) = lab("without_a_pool_every_service_is_told_how_to_make_one", &[]) else { return };
    lab.create("web", &json!({}));
    lab.told("web", "SyncLoadBalancerFailed", "there is no pool of addresses; make one with --pool RANGE");
    assert_eq!(lab.ingress("web"), "");
}

#[test]
fn row_138_a_protocol_that_cannot_be_carried_is_refused_at_creation() {
    let test = "row_138_a_protocol_that_cannot_be_carried_is_refused_at_creation";
    let Some(lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    let sctp = |class: serde_json::Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "sctp-"}, "spec":
            {"type": "LoadBalancer", "loadBalancerClass": class, "ports": [{"port": 7, "protocol": "SCTP"}]}})
    };
    let (status, text) = lab.post(&sctp(json!(null)));
    if fairlead_balancer::sctp::is_there() {
        assert_eq!(status, 201, "{text}");
    } else {
        assert_eq!(status, 403, "{text}");
        assert!(text.contains("cannot carry SCTP"), "{text}");
    }
    // Somebody else's may carry it.
    let (status, text) = lab.post(&sctp(json!("example.com/other")));
    assert_eq!(status, 201, "{text}");
}

#[test]
fn every_refusal_is_told_with_what_is_accepted() {
    let Some(lab) = lab("every_refusal_is_told_with_what_is_accepted", &["--pool", "192.0.2.1-192.0.2.2"]) else {
        return;
    };
    let aws = |name: &str, value: &str| annotated(&format!("{AWS}{name}"), value);
    let cases = [
        ("foreign-ip", json!({"spec": {"loadBalancerIP": "203.0.113.1"}}), "accepted: 192.0.2.1-192.0.2.2"),
        (
            "no-ip",
            annotated("fairlead.dev/load-balancer-ips", "here"),
            "fairlead.dev/load-balancer-ips: \"here\" is no address",
        ),
        (
            "node-ip",
            json!({"spec": {"loadBalancerIP": "192.0.2.100"}}),
            "spec.loadBalancerIP: 192.0.2.100 is in no pool",
        ),
        ("no-pool", annotated("metallb.io/address-pool", "gold"), "there is no pool \"gold\"; accepted: default"),
        ("internal", aws("internal", "true"), "--internal-pool"),
        ("v6", json!({"spec": {"ipFamilies": ["IPv6"]}}), "no public pool has IPv6 addresses"),
        ("certificate", aws("ssl-cert", "arn:aws:acm:us-east-1:123456789012:certificate/1"), "ssl-cert: "),
        (
            "bucket",
            {
                let mut log = aws("access-log-enabled", "true");
                log["metadata"]["annotations"][format!("{AWS}access-log-s3-bucket-name")] = json!("logs");
                log
            },
            "want one of buckets in --balancer-config, which has none",
        ),
        (
            "threshold",
            aws("healthcheck-healthy-threshold", "11"),
            "healthcheck-healthy-threshold: \"11\" is not accepted: ",
        ),
    ];
    for (name, more, expected) in &cases {
        lab.create(name, more);
        lab.told(name, "SyncLoadBalancerFailed", expected);
    }
    // None of them took anything.
    lab.create("a", &json!({}));
    lab.becomes("a", "192.0.2.1/VIP");
    lab.create("b", &json!({}));
    lab.becomes("b", "192.0.2.2/VIP");
    lab.create("c", &json!({}));
    lab.told("c", "SyncLoadBalancerFailed", "every IPv4 address of pool \"default\" is taken");
    assert_eq!(lab.events("c", "SyncLoadBalancerFailed").len(), 1, "told once");
}

#[test]
fn a_bad_value_leaves_the_load_balancer_as_it_was() {
    let Some(lab) = lab("a_bad_value_leaves_the_load_balancer_as_it_was", &["--pool", "192.0.2.0/28"]) else { return };
    let proxy = format!("{AWS}proxy-protocol");
    lab.create("web", &annotated(&proxy, "*"));
    lab.back("web", "", &BACKENDS[..1]);
    lab.becomes("web", "192.0.2.1/Proxy");
    lab.answers("192.0.2.1:80", "say PROXY TCP4");
    lab.change("web", &annotated(&proxy, "some"));
    lab.told("web", "SyncLoadBalancerFailed", "proxy-protocol: \"some\" is not accepted: ");
    assert_eq!(lab.ingress("web"), "192.0.2.1/Proxy");
    lab.answers("192.0.2.1:80", "say PROXY TCP4");
    let state = lab.fairlead(&["lb", "ls"]);
    assert!(state.contains("served as before: "), "{state}");
    lab.change("web", &annotated(&proxy, "*"));
    lab.wait("nothing is wrong any more", || lab.fairlead(&["lb", "ls"]).contains("serving"));
}
