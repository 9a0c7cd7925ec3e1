//! Services that work, proven by a connection, have no finding.

use serde_json::{Value, json};

use super::lab::{lab, says_hello, says_hello_udp};
use super::setup::{Setup, by_hand, client, container, mistakes, pod, pod_with, serve, service, settled, slice, works};

/// How a set-up is tried: by whom, at which address of it, at which port.
enum Try {
    /// From the machine, at the cluster IP.
    Inside(u16),
    /// The same over UDP.
    Udp(u16),
    /// From the host on the LAN, at the load balancer.
    Balancer(u16),
    /// From the host on the LAN, at this port of the machine.
    NodePort(u16),
    /// It is an alias, or has no address: there is nothing to connect to.
    Name,
}

fn setups() -> Vec<(Setup, Try)> {
    let both = || vec![service(json!({})), pod(json!({}))];
    let named = service(json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}));
    let unready = container(
        serve("tcp 0.0.0.0 8080"),
        json!({"readinessProbe": {"tcpSocket": {"port": 9999}, "periodSeconds": 1}}),
    );
    let balanced = |more: Value| {
        let mut made = service(json!({"spec": {"type": "LoadBalancer"}}));
        made["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        made
    };
    let udp = container(serve("udp 0.0.0.0 5353"), json!({"ports": [{"containerPort": 5353, "protocol": "UDP"}]}));
    let alias = service(json!({
        "metadata": {"name": "alias"},
        "spec": {"type": "ExternalName", "externalName": "web.an-alias.svc.cluster.local", "selector": null, "ports": null},
    }));
    vec![
        (works("plain", "svc/web", both()), Try::Inside(80)),
        (works("sent", "svc/web --live", both()), Try::Inside(80)),
        (works("named-port", "svc/web", vec![named, pod(json!({}))]), Try::Inside(80)),
        (
            works(
                "on-all-addresses",
                "svc/web",
                vec![service(json!({})), pod_with(container(serve("tcp :: 8080"), json!({})))],
            ),
            Try::Inside(80),
        ),
        (
            works("from-a-pod", "svc/web --from pod/client --port 80 --host web --live", {
                let mut all = both();
                all.push(client(json!({})));
                all
            }),
            Try::Inside(80),
        ),
        (
            works("headless", "svc/web", vec![service(json!({"spec": {"clusterIP": "None"}})), pod(json!({}))]),
            Try::Name,
        ),
        (
            works("an-alias", "svc/alias", {
                let mut all = both();
                all.push(alias);
                all
            }),
            Try::Name,
        ),
        (
            works(
                "datagrams",
                "svc/web --port 53/UDP",
                vec![
                    service(json!({"spec": {"ports": [{"port": 53, "targetPort": 5353, "protocol": "UDP"}]}})),
                    pod_with(udp),
                ],
            ),
            Try::Udp(53),
        ),
        (works("hand-made", "svc/web --live", vec![by_hand(json!({})), slice(json!({}))]), Try::Inside(80)),
        (
            works(
                "not-ready-published",
                "svc/web",
                vec![service(json!({"spec": {"publishNotReadyAddresses": true}})), pod_with(unready)],
            ),
            Try::Inside(80),
        ),
        (
            works(
                "affinity",
                "svc/web",
                vec![service(json!({"spec": {"sessionAffinity": "ClientIP"}})), pod(json!({}))],
            ),
            Try::Inside(80),
        ),
        (
            works(
                "local",
                "svc/web",
                vec![service(json!({"spec": {"internalTrafficPolicy": "Local"}})), pod(json!({}))],
            ),
            Try::Inside(80),
        ),
        (
            works(
                "node-port",
                "svc/web --from 192.0.2.200",
                vec![
                    service(
                        json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30200}]}}),
                    ),
                    pod(json!({})),
                ],
            ),
            Try::NodePort(30200),
        ),
        (
            works(
                "node-port-local",
                "svc/web --from outside",
                vec![
                    service(
                        json!({"spec": {"type": "NodePort", "externalTrafficPolicy": "Local", "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30201}]}}),
                    ),
                    pod(json!({})),
                ],
            ),
            Try::NodePort(30201),
        ),
        (works("balancer", "svc/web --from 192.0.2.200", vec![balanced(json!({})), pod(json!({}))]), Try::Balancer(80)),
        (
            works(
                "balancer-sources",
                "svc/web --from outside",
                vec![balanced(json!({"loadBalancerSourceRanges": ["192.0.2.0/24"]})), pod(json!({}))],
            ),
            Try::Balancer(80),
        ),
        (
            works(
                "two-ports",
                "svc/web",
                vec![
                    service(json!({"spec": {"ports": [
                        {"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": 8080},
                    ]}})),
                    pod(json!({})),
                ],
            ),
            Try::Inside(81),
        ),
    ]
}

#[test]
fn what_works_has_no_finding() {
    let Some(lab) = lab("what_works_has_no_finding", &["--pool", "192.0.2.64/28"]) else { return };
    let (setups, tries): (Vec<Setup>, Vec<Try>) = setups().into_iter().unzip();
    let said = settled(&lab, &setups);
    let mut mistakes = mistakes(&setups, &said);
    for (setup, attempt) in setups.iter().zip(&tries) {
        let at = |outside, port: u16| format!("{}:{port}", lab.address(setup.name, "web", outside).unwrap_or_default());
        let answered = match attempt {
            Try::Inside(port) => says_hello(&lab.machine, &at(false, *port)),
            Try::Udp(port) => says_hello_udp(&lab.machine, &at(false, *port)),
            Try::Balancer(port) => says_hello(&lab.host, &at(true, *port)),
            Try::NodePort(port) => says_hello(&lab.host, &format!("192.0.2.100:{port}")),
            Try::Name => true,
        };
        if !answered {
            mistakes.push(format!("{}: nobody answers", setup.name));
        }
    }
    for (namespace, name) in [("default", "kubernetes"), ("kube-system", "kube-dns")] {
        let said = lab.explain(namespace, &format!("svc/{name}"));
        if said.first().is_some() {
            mistakes.push(format!("{namespace}/{name}: {}", said.words()));
        }
    }
    let listening = said["plain"].report["steps"].to_string();
    assert!(listening.contains("0.0.0.0:8080/TCP (python3"), "{listening}");
    let live = &said["sent"].report["live"];
    assert!(live["endpoint"].as_str().is_some_and(|at| at.ends_with(":8080")), "{live}");
    assert!(live["trace"].as_array().is_some_and(|lines| !lines.is_empty()), "{live}");
    assert!(mistakes.is_empty(), "{} of {}:\n{}", mistakes.len(), setups.len(), mistakes.join("\n"));
}
