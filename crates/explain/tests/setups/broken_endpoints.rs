//! Pods that are ready, and ports, sockets and EndpointSlices that are not what they should be.

use fairlead_explain::Cause;

use crate::lab::{Lab, Row, row, warns};

pub(crate) fn rows() -> Vec<Row> {
    [targets(), sockets(), stale(), by_hand(), weights()].into_iter().flatten().collect()
}

fn targets() -> Vec<Row> {
    let target = |name: &str| {
        Lab::new().service(&format!("spec: {{ports: [{{name: http, port: 80, targetPort: {name}, protocol: TCP}}]}}"))
    };
    let port = |fields: &str| format!("spec: {{containers: [{{name: main, ports: [{fields}]}}]}}");
    vec![
        row("a target port no container names", Cause::TargetPortNameMissing, target("metrics")),
        row("containers without ports", Cause::TargetPortNameMissing, target("http").pods(&port(""))),
        row("a target port with a letter missing", Cause::TargetPortMisspelt, target("htp")),
        row(
            "a target port whose name is of UDP",
            Cause::TargetPortProtocolDiffers,
            target("http").pods(&port("{name: http, containerPort: 9376, protocol: UDP}")),
        ),
        warns(
            "a target port that one of two Pods lacks",
            Cause::TargetPortNameMissing,
            target("http").pod("web-2", &port("{name: other-one, containerPort: 9376}")),
        ),
        warns(
            "one port of two without a target",
            Cause::TargetPortNameMissing,
            Lab::new().service(
                "spec: {ports: [{name: http, port: 80, targetPort: 9376, protocol: TCP}, {name: metrics, port: 81, targetPort: metrics, protocol: TCP}]}",
            ),
        ),
        warns(
            "a number that containers do not declare, and nobody looked",
            Cause::TargetPortNotDeclared,
            target("8080").seen(|evidence| evidence.sockets.clear()),
        ),
    ]
}

fn sockets() -> Vec<Row> {
    let v6 = || {
        Lab::new()
            .service("spec: {clusterIP: 'fd00:96::20', clusterIPs: ['fd00:96::20'], ipFamilies: [IPv6]}")
            .pod("web-1", "status: {podIP: 'fd00:244:1::7', podIPs: [{ip: 'fd00:244:1::7'}]}")
            .pod("web-2", "status: {podIP: 'fd00:244:2::8', podIPs: [{ip: 'fd00:244:2::8'}]}")
            .pod("client", "status: {podIP: 'fd00:244:1::99', podIPs: [{ip: 'fd00:244:1::99'}]}")
    };
    vec![
        row("a program on another port", Cause::ListensOnOtherPort, Lab::new().all_listen("0.0.0.0:8080/TCP")),
        row("a program on loopback", Cause::ListensOnLoopback, Lab::new().all_listen("127.0.0.1:9376/TCP")),
        row("a program on IPv6 loopback", Cause::ListensOnLoopback, Lab::new().all_listen("[::1]:9376/TCP")),
        row("a program that speaks UDP", Cause::ListensOnOtherProtocol, Lab::new().all_listen("0.0.0.0:9376/UDP")),
        row("a program for IPv6 alone", Cause::ListensOnOtherFamily, Lab::new().all_listen("[::]:9376/TCP!")),
        row("a program for IPv4 alone", Cause::ListensOnOtherFamily, v6().all_listen("0.0.0.0:9376/TCP")),
        row(
            "a program on an address of another link",
            Cause::ListensOnOtherAddress,
            Lab::new().all_listen("172.16.0.9:9376/TCP"),
        ),
        row("Pods in which nothing listens", Cause::NothingListens, Lab::new().all_listen("")),
        row("Pods in which only UDP listens elsewhere", Cause::NothingListens, Lab::new().all_listen("0.0.0.0:53/UDP")),
        warns(
            "a program on loopback in one of two Pods",
            Cause::ListensOnLoopback,
            Lab::new().listens("web-2", "127.0.0.1:9376/TCP"),
        ),
        row(
            "a target port nobody listens on",
            Cause::ListensOnOtherPort,
            Lab::new().service("spec: {ports: [{name: http, port: 80, targetPort: 80, protocol: TCP}]}"),
        ),
    ]
}

fn stale() -> Vec<Row> {
    let dead = |lab: Lab| lab.seen(|evidence| evidence.controller.as_mut().expect("it was seen").alive = false);
    let moved = || {
        Lab::new()
            .late_pod("web-1", "status: {podIP: 10.244.1.17, podIPs: [{ip: 10.244.1.17}]}")
            .late_pod("web-2", "status: {podIP: 10.244.2.18, podIPs: [{ip: 10.244.2.18}]}")
    };
    vec![
        row("slices that nobody made", Cause::SlicesMissing, Lab::new().without_controller()),
        row(
            "slices that nobody made because nobody runs",
            Cause::ControllerNotRunning,
            dead(Lab::new().without_controller()),
        ),
        row("slices with the addresses of earlier Pods", Cause::SlicesStale, moved()),
        row("slices of earlier Pods because nobody runs", Cause::ControllerNotRunning, dead(moved())),
        warns(
            "slices that lack one of two Pods",
            Cause::SlicesStale,
            Lab::new().late_pod("web-2", "status: {podIP: 10.244.2.18, podIPs: [{ip: 10.244.2.18}]}"),
        ),
        warns("slices that are right though nobody runs", Cause::ControllerNotRunning, dead(Lab::new())),
        row(
            "slices with an earlier target port",
            Cause::SlicesStale,
            Lab::new().late_slice("web-0", "ports: [{name: http, port: 8080, protocol: TCP}]"),
        ),
        row(
            "slices that still call everybody unready",
            Cause::SlicesStale,
            Lab::new().late_slice("web-0", "endpoints: [{addresses: [10.244.1.7], conditions: {ready: false}}]"),
        ),
    ]
}

/// A Service whose endpoints are made by hand.
pub(crate) fn manual() -> Lab {
    Lab::empty().with(
        "{kind: Service, metadata: {name: web, namespace: default, uid: web-uid}, spec: {clusterIP: 10.96.0.20,
           clusterIPs: [10.96.0.20], ipFamilies: [IPv4], ports: [{name: http, port: 80, protocol: TCP}]}}",
    )
}

/// A slice with these fields over ones that fit.
pub(crate) fn slice(fields: &str) -> String {
    let usual = fairlead_api::json!({"kind": "EndpointSlice",
        "metadata": {"name": "db-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["198.51.100.7"]}],
        "ports": [{"name": "http", "port": 5432, "protocol": "TCP"}]});
    let fields: fairlead_api::Value = serde_saphyr::from_str(fields).expect("YAML");
    fairlead_api::patch::merge(&usual, fields.to_string().as_bytes()).expect("an object").value.to_string()
}

fn by_hand() -> Vec<Row> {
    let with = |fields: &str| manual().with(&slice(fields));
    let label = |name: &str| format!("metadata: {{labels: {{kubernetes.io/service-name: {name}}}}}");
    let endpoints = |labels: &str| {
        manual().with(&format!(
            "{{kind: Endpoints, metadata: {{name: web, namespace: default, labels: {{{labels}}}}},
               subsets: [{{addresses: [{{ip: 198.51.100.7}}], ports: [{{name: http, port: 5432}}]}}]}}"
        ))
    };
    vec![
        row("no selector and no slices", Cause::NoEndpointsByHand, manual()),
        row("a slice without endpoints", Cause::NoEndpointsByHand, with("endpoints: null")),
        row("a slice with a misspelt label", Cause::SliceLabelWrong, with(&label("wbe"))),
        row("a slice without the label", Cause::SliceLabelWrong, with("metadata: {name: web-1, labels: null}")),
        row("a slice in another namespace", Cause::SliceInOtherNamespace, with("metadata: {namespace: shop}")),
        row(
            "a slice whose port has another name",
            Cause::SlicePortNameDiffers,
            with("ports: [{name: web, port: 5432, protocol: TCP}]"),
        ),
        row(
            "a slice whose port has no name",
            Cause::SlicePortNameDiffers,
            with("ports: [{port: 5432, protocol: TCP}]"),
        ),
        row("a slice without ports", Cause::SlicePortNameDiffers, with("ports: null")),
        row(
            "a slice whose port is UDP",
            Cause::SlicePortProtocolDiffers,
            with("ports: [{name: http, port: 5432, protocol: UDP}]"),
        ),
        row(
            "a slice of IPv6 addresses",
            Cause::SliceFamilyDiffers,
            with("{addressType: IPv6, endpoints: [{addresses: ['2001:db8::7']}]}"),
        ),
        row(
            "a slice of names",
            Cause::SliceFamilyDiffers,
            with("{addressType: FQDN, endpoints: [{addresses: [db.example.com]}]}"),
        ),
        row(
            "endpoints that failed their health check",
            Cause::EndpointsNotReady,
            with("endpoints: [{addresses: [198.51.100.7], conditions: {ready: false}}]"),
        ),
        warns(
            "endpoints that are all about to go",
            Cause::EndpointsTerminating,
            with(
                "endpoints: [{addresses: [198.51.100.7], conditions: {ready: false, serving: true, terminating: true}}]",
            ),
        ),
        row(
            "an endpoint that is another Service",
            Cause::EndpointIsClusterIp,
            with("endpoints: [{addresses: [10.96.0.10]}]"),
        ),
        row(
            "Endpoints that ask not to be mirrored",
            Cause::EndpointsNotMirrored,
            endpoints("endpointslice.kubernetes.io/skip-mirror: 'true'"),
        ),
        row("Endpoints that nobody mirrored", Cause::EndpointsNotMirrored, endpoints("")),
    ]
}

fn weights() -> Vec<Row> {
    vec![
        row(
            "all Pods have weight 0",
            Cause::AllWeightsZero,
            Lab::new().pods("metadata: {annotations: {fairlead.dev/weight: '0'}}"),
        ),
        row(
            "a slice by hand with weight 0",
            Cause::AllWeightsZero,
            manual().with(&slice("metadata: {annotations: {fairlead.dev/weight: '0'}}")),
        ),
    ]
}
