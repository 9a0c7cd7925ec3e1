//! Services that are not there, or not what the client takes them for.

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_explain::{Cause, From};

use crate::broken_endpoints::{manual, slice};
use crate::lab::{Lab, Row, row, warns};

pub(crate) fn rows() -> Vec<Row> {
    [existence(), aliases(), ports(), exposure()].into_iter().flatten().collect()
}

fn existence() -> Vec<Row> {
    vec![
        row("a namespace that does not exist", Cause::NamespaceMissing, Lab::new().about("shopp", "web")),
        row("a Service that does not exist", Cause::ServiceMissing, Lab::new().about("default", "queue")),
        row("a Service with a letter swapped", Cause::ServiceNameMisspelt, Lab::new().about("default", "wbe")),
        row("a Service of another namespace", Cause::ServiceInOtherNamespace, Lab::new().about("shop", "web")),
        warns(
            "a Service that waits for a finalizer",
            Cause::ServiceBeingDeleted,
            Lab::new()
                .late_service("metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/wait]}"),
        ),
    ]
}

fn alias(target: &str) -> Lab {
    Lab::new().service(&format!(
        "spec: {{type: ExternalName, externalName: '{target}', selector: null, clusterIP: '', clusterIPs: null, ports: null}}"
    ))
}

fn aliases() -> Vec<Row> {
    vec![
        row("an alias for an address", Cause::ExternalNameIsAddress, alias("192.0.2.80")),
        row("an alias for an IPv6 address", Cause::ExternalNameIsAddress, alias("2001:db8::80")),
        row("an alias for itself", Cause::ExternalNameLoops, alias("web.default.svc.cluster.local")),
        row(
            "two aliases for each other",
            Cause::ExternalNameLoops,
            alias("other.shop.svc.cluster.local").with(
                "{kind: Service, metadata: {name: other, namespace: shop},
                  spec: {type: ExternalName, externalName: web.default.svc.cluster.local}}",
            ),
        ),
        row(
            "an alias for a Service that does not exist",
            Cause::ExternalNameTargetMissing,
            alias("db.shop.svc.cluster.local"),
        ),
        row(
            "an alias for a Service that does not exist, in a cluster with another domain",
            Cause::ExternalNameTargetMissing,
            alias("db.shop.svc.k8s.example").domain("k8s.example"),
        ),
        warns("an alias for a server with TLS", Cause::ExternalNameChangesHost, speaking("name: db, port: 443")),
        warns(
            "an alias for a web server by its name",
            Cause::ExternalNameChangesHost,
            speaking("name: http-main, port: 81"),
        ),
        warns(
            "an alias for what says what it speaks",
            Cause::ExternalNameChangesHost,
            speaking("name: main, port: 81, appProtocol: kubernetes.io/wss"),
        ),
    ]
}

/// An alias with such a port.
fn speaking(port: &str) -> Lab {
    alias("server.example.com").service(&format!("spec: {{ports: [{{{port}, protocol: TCP}}]}}"))
}

fn ports() -> Vec<Row> {
    vec![
        row("no ports", Cause::NoPorts, Lab::new().service("spec: {ports: null}")),
        row("a port it does not have", Cause::PortUnknown, Lab::new().port("8080")),
        row("a port name with a letter missing", Cause::PortUnknown, Lab::new().port("htp")),
        row("the Pods' port at the cluster IP", Cause::TargetPortUsed, Lab::new().port("9376")),
        row(
            "the Pods' named port at the cluster IP",
            Cause::TargetPortUsed,
            Lab::new().service("spec: {ports: [{name: http, port: 80, targetPort: http, protocol: TCP}]}").port("9376"),
        ),
        row(
            "the node port at the cluster IP",
            Cause::NodePortUsed,
            Lab::new()
                .service("spec: {type: NodePort, ports: [{name: http, port: 80, targetPort: 9376, nodePort: 30080}]}")
                .port("30080"),
        ),
        row(
            "the Service's port at a headless Service",
            Cause::HeadlessPortUsed,
            Lab::new().service("spec: {clusterIP: None, clusterIPs: [None]}").port("80"),
        ),
        warns(
            "a headless Service without selector whose ports differ",
            Cause::HeadlessPortUsed,
            manual()
                .service("spec: {clusterIP: None, clusterIPs: [None], ports: [{name: http, port: 80, targetPort: 5432, protocol: TCP}]}")
                .with(&slice("{}")),
        ),
        row("UDP to a port of TCP", Cause::ProtocolDiffers, Lab::new().port("80").protocol(Protocol::Udp)),
        row(
            "no cluster IP allocated",
            Cause::ClusterIpMissing,
            Lab::new().service("spec: {clusterIP: '', clusterIPs: null}"),
        ),
        row(
            "a label for another proxy",
            Cause::LeftToOtherProxy,
            Lab::new().service("metadata: {labels: {service.kubernetes.io/service-proxy-name: cilium}}"),
        ),
        row(
            "a label that says headless",
            Cause::LabelledHeadless,
            Lab::new().service("metadata: {labels: {service.kubernetes.io/headless: ''}}"),
        ),
    ]
}

fn exposure() -> Vec<Row> {
    let outside = || Lab::new().from(From::Outside(None));
    vec![
        row("a ClusterIP from outside", Cause::NotExposed, outside()),
        row(
            "a headless Service from outside",
            Cause::NotExposed,
            outside().service("spec: {clusterIP: None, clusterIPs: [None]}"),
        ),
        row(
            "the cluster's port from outside",
            Cause::NodePortNeeded,
            outside()
                .service("spec: {type: NodePort, ports: [{name: http, port: 80, targetPort: 9376, nodePort: 30080}]}")
                .port("80"),
        ),
        row(
            "an external IP that another Service has",
            Cause::AddressTaken,
            outside().service("{metadata: {creationTimestamp: '2026-01-02T00:00:00Z'}, spec: {externalIPs: [192.0.2.99]}}").with(
                "{kind: Service, metadata: {name: early, namespace: default, creationTimestamp: '2026-01-01T00:00:00Z'},
                  spec: {selector: {app: web}, clusterIP: 10.96.0.30, clusterIPs: [10.96.0.30], externalIPs: [192.0.2.99],
                    ports: [{port: 80, targetPort: 9376}]}}",
            ),
        ),
        warns(
            "an external IP that another Service has, asked from inside",
            Cause::AddressTaken,
            Lab::new().service("{metadata: {creationTimestamp: '2026-01-02T00:00:00Z'}, spec: {externalIPs: [192.0.2.99]}}").with(
                "{kind: Service, metadata: {name: early, namespace: default, creationTimestamp: '2026-01-01T00:00:00Z'},
                  spec: {selector: {app: client}, clusterIP: 10.96.0.30, clusterIPs: [10.96.0.30], externalIPs: [192.0.2.99],
                    ports: [{port: 80, targetPort: 9376}]}}",
            ),
        ),
        row(
            "a client in another namespace that takes the Service for its own",
            Cause::ServiceInOtherNamespace,
            Lab::new().from(From::Pod(Key::new("shop", "nobody"))).about("shop", "web"),
        ),
    ]
}
