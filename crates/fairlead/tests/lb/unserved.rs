//! A port that asks for TLS is never opened without it; ports that were open stay as they were.

use serde_json::{Value, json};

use crate::lab::{BACKENDS, Lab, lab};

const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer-";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Annotations that ask for a certificate on some ports; on all if `ports` is empty.
fn secured(certificate: &str, ports: &str) -> Value {
    let mut annotations = json!({format!("{AWS}ssl-cert"): certificate});
    if !ports.is_empty() {
        annotations[format!("{AWS}ssl-ports")] = json!(ports);
    }
    json!({"metadata": {"annotations": annotations}})
}

fn with_ports(mut service: Value, numbers: &[u16]) -> Value {
    let port = |port: &u16| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP", "targetPort": 8080});
    service["spec"] = json!({"ports": numbers.iter().map(port).collect::<Value>()});
    service
}

fn back(lab: &Lab, numbers: &[u16]) {
    numbers.iter().for_each(|number| lab.back("web", &format!("p{number}"), &BACKENDS[..1]));
}

/// Fails if the port answers in the clear, from the LAN or from the machine itself.
#[track_caller]
fn is_silent(lab: &Lab, to: &str) {
    assert_eq!(lab.ask(to), None, "{to} from the LAN\n{}", lab.log());
    assert_eq!(lab.ask_here(to), None, "{to} from the machine\n{}", lab.log());
}

fn certificate(name: &str) -> Value {
    use base64::Engine as _;
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let text = |pem: String| base64::engine::general_purpose::STANDARD.encode(pem);
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "kubernetes.io/tls",
           "data": {"tls.crt": text(made.cert.pem()), "tls.key": text(made.signing_key.serialize_pem())}})
}

#[test]
fn a_new_port_that_asks_for_tls_is_not_opened_without_its_certificate() {
    let test = "a_new_port_that_asks_for_tls_is_not_opened_without_its_certificate";
    // On one port, and on all: the old one goes on.
    for ports in ["443", ""] {
        let Some(mut lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
        lab.create("web", &with_ports(json!({}), &[80]));
        back(&lab, &[80, 443]);
        lab.answers("192.0.2.1:80", "hears");
        lab.change("web", &with_ports(secured("web-tls", ports), &[80, 443]));
        for _ in 0..20 {
            is_silent(&lab, "192.0.2.1:443");
        }
        lab.told("web", "SyncLoadBalancerFailed", "port 443/TCP is not served");
        lab.told("web", "SyncLoadBalancerFailed", "web-tls");
        lab.answers("192.0.2.1:80", "hears");
        is_silent(&lab, "192.0.2.1:443");
        lab.wait_or(
            || format!("lb ls says so: {}", lab.fairlead(&["lb", "ls"])),
            || lab.fairlead(&["lb", "ls"]).contains("port 443/TCP is not served: "),
        );
        let described = lab.fairlead(&["lb", "describe", "web"]);
        assert!(described.contains("Listener 443/TCP, not served"), "{described}");
        let explained = lab.fairlead(&["explain", "svc/web", "--port", "443"]);
        assert!(explained.contains("port 443/TCP of its load balancer is not served"), "{explained}");
        let metrics = lab.page("/metrics");
        assert!(
            metrics.contains("listener_served{namespace=\"default\",service=\"web\",port=\"443/TCP\"} 0"),
            "{metrics}"
        );
        assert!(
            metrics.contains("listener_served{namespace=\"default\",service=\"web\",port=\"80/TCP\"} 1"),
            "{metrics}"
        );
        lab.kill();
        lab.start();
        lab.answers("192.0.2.1:80", "hears");
        for _ in 0..20 {
            is_silent(&lab, "192.0.2.1:443");
        }
        // With the certificate it is opened, with TLS.
        lab.api("POST", SECRETS, &certificate("web-tls"));
        lab.wait_or(
            || format!("lb ls says that all is well: {}", lab.fairlead(&["lb", "ls"])),
            || lab.fairlead(&["lb", "ls"]).contains("serving"),
        );
        lab.becomes("web", "192.0.2.1/Proxy");
        assert!(!lab.ask("192.0.2.1:443").is_some_and(|answer| answer.contains("hears")));
    }
}

#[test]
fn a_secret_that_goes_leaves_its_port_with_tls_or_closed_and_others_open() {
    let test = "a_secret_that_goes_leaves_its_port_with_tls_or_closed_and_others_open";
    let Some(mut lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    lab.api("POST", SECRETS, &certificate("web-tls"));
    lab.create("web", &with_ports(secured("web-tls", "443"), &[80, 443]));
    back(&lab, &[80, 443]);
    lab.answers("192.0.2.1:80", "hears");
    let plain = |lab: &Lab| lab.ask("192.0.2.1:443").is_some_and(|answer| answer.contains("hears"));
    for broken in [true, false] {
        if broken {
            let mut secret = certificate("web-tls");
            secret["data"]["tls.key"] = json!("bm90aGluZw==");
            lab.api("PUT", &format!("{SECRETS}/web-tls"), &secret);
        } else {
            lab.api("DELETE", &format!("{SECRETS}/web-tls"), &Value::Null);
        }
        lab.told("web", "SyncLoadBalancerFailed", "port 443/TCP is not served");
        assert!(!plain(&lab));
        lab.answers("192.0.2.1:80", "hears");
        lab.kill();
        lab.start();
        lab.answers("192.0.2.1:80", "hears");
        assert!(!plain(&lab));
        is_silent(&lab, "192.0.2.1:443");
        lab.wait_or(
            || format!("lb ls says so: {}", lab.fairlead(&["lb", "ls"])),
            || lab.fairlead(&["lb", "ls"]).contains("port 443/TCP is not served: "),
        );
    }
}

#[test]
fn a_new_port_of_a_service_with_a_bad_value_is_not_opened() {
    let test = "a_new_port_of_a_service_with_a_bad_value_is_not_opened";
    let Some(mut lab) = lab(test, &["--pool", "192.0.2.0/28"]) else { return };
    lab.create("web", &with_ports(json!({}), &[80]));
    back(&lab, &[80, 8443]);
    lab.answers("192.0.2.1:80", "hears");
    // The list of ports names none of the Service, so it is not known which is to have TLS.
    lab.change("web", &with_ports(secured("web-tls", "9443"), &[80, 8443]));
    lab.told("web", "SyncLoadBalancerFailed", "9443");
    for _ in 0..20 {
        is_silent(&lab, "192.0.2.1:8443");
    }
    lab.answers("192.0.2.1:80", "hears");
    lab.wait_or(
        || format!("lb ls says so: {}", lab.fairlead(&["lb", "ls"])),
        || lab.fairlead(&["lb", "ls"]).contains("port 8443/TCP is not served: "),
    );
    lab.kill();
    lab.start();
    lab.answers("192.0.2.1:80", "hears");
    is_silent(&lab, "192.0.2.1:8443");
}
