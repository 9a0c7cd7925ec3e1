//! Which Pods are endpoints, row by row.

use crate::sample::{Cluster, pod, service, text};

use super::*;

/// One Pod behind a Service: what its slice says, or why it is not there.
fn check(service_fields: &str, pod_fields: &str, expected: &str) {
    let mut cluster = Cluster::new(service(service_fields), vec![pod("a", "10.1.0.1", pod_fields)]);
    let changes = cluster.sync();
    let reasons = changes.left_out.iter().map(|left| left.reason.to_string());
    let found: Vec<_> = text(&cluster.slices).into_iter().chain(reasons).collect();
    assert_eq!(found.join("; "), expected, "{service_fields} {pod_fields}");
}

const READY: &str = "status: {conditions: [{type: Ready, status: 'True'}]}";
const NOT_READY: &str = "status: {conditions: [{type: Ready, status: 'False'}]}";
const PUBLISH: &str = "spec: {publishNotReadyAddresses: true}";
const GOING: &str = "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}}";
const GOING_NOT_READY: &str = "{metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}, status: {conditions: null}}";

#[test]
fn conditions_say_what_the_pod_says() {
    check("", READY, "IPv4 :80/TCP | a=10.1.0.1 ready serving @n1 z1");
    check("", NOT_READY, "IPv4 :80/TCP | a=10.1.0.1 @n1 z1");
    check("", "status: {conditions: null}", "IPv4 :80/TCP | a=10.1.0.1 @n1 z1");
    check("", GOING, "IPv4 :80/TCP | a=10.1.0.1 serving terminating @n1 z1");
    check("", GOING_NOT_READY, "IPv4 :80/TCP | a=10.1.0.1 terminating @n1 z1");
}

#[test]
fn publishing_makes_ready_but_not_serving() {
    check(PUBLISH, NOT_READY, "IPv4 :80/TCP | a=10.1.0.1 ready @n1 z1");
    check(PUBLISH, GOING, "IPv4 :80/TCP | a=10.1.0.1 ready serving terminating @n1 z1");
    check(PUBLISH, GOING_NOT_READY, "IPv4 :80/TCP | a=10.1.0.1 ready terminating @n1 z1");
}

#[test]
fn pods_that_ended_or_have_no_address_are_left_out() {
    check("", "status: {phase: Pending}", "IPv4 :80/TCP | a=10.1.0.1 ready serving @n1 z1");
    check("", "status: {phase: Succeeded}", "IPv4; the Pod is in phase Succeeded");
    check("", "status: {phase: Failed}", "IPv4; the Pod is in phase Failed");
    check(PUBLISH, "status: {phase: Failed}", "IPv4; the Pod is in phase Failed");
    check("", "status: {podIPs: null}", "IPv4; the Pod has no IP address");
    check(PUBLISH, "status: {podIPs: null}", "IPv4; the Pod has no IP address");
    check("", "status: {podIPs: null, podIP: 10.1.0.9}", "IPv4 :80/TCP | a=10.1.0.9 ready serving @n1 z1");
}

#[test]
fn a_pod_on_the_network_of_its_node_counts() {
    check("", "spec: {hostNetwork: true}", "IPv4 :80/TCP | a=10.1.0.1 ready serving @n1 z1");
}

#[test]
fn a_pod_whose_node_is_missing_counts_only_if_all_are_published() {
    let ghost = "spec: {nodeName: ghost}";
    check("", ghost, "IPv4; the Node \"ghost\" of the Pod does not exist");
    check(PUBLISH, ghost, "IPv4 :80/TCP | a=10.1.0.1 ready serving @ghost");
    check("", "spec: {nodeName: null}", "IPv4; the Node \"\" of the Pod does not exist");
    check(PUBLISH, "spec: {nodeName: null}", "IPv4 :80/TCP | a=10.1.0.1 ready serving");
}

#[test]
fn every_family_has_its_own_slices_and_addresses() {
    let dual = "spec: {ipFamilies: [IPv4, IPv6]}";
    let both = "status: {podIPs: [{ip: 10.1.0.1}, {ip: 'FD00:0::1'}]}";
    check(dual, both, "IPv4 :80/TCP | a=10.1.0.1 ready serving @n1 z1; IPv6 :80/TCP | a=fd00::1 ready serving @n1 z1");
    check(dual, "", "IPv4 :80/TCP | a=10.1.0.1 ready serving @n1 z1; IPv6; the Pod has no IPv6 address");
    check("spec: {ipFamilies: [IPv6]}", both, "IPv6 :80/TCP | a=fd00::1 ready serving @n1 z1");
    check("spec: {ipFamilies: [IPv6]}", "", "IPv6; the Pod has no IPv6 address");
    check("", "status: {podIPs: [{ip: '::ffff:10.1.0.7'}]}", "IPv4 :80/TCP | a=10.1.0.7 ready serving @n1 z1");
    check("", "status: {podIPs: [{ip: 010.001.0.7}]}", "IPv4 :80/TCP | a=10.1.0.7 ready serving @n1 z1");
}

#[test]
fn a_service_that_names_no_family_has_that_of_its_cluster_ip_or_both() {
    let check = |fields: &str, expected: &[Family]| assert_eq!(families(&service(fields)), expected, "{fields}");
    check("spec: {ipFamilies: null}", &[Family::V4]);
    check("spec: {ipFamilies: null, clusterIP: 'fd00::1'}", &[Family::V6]);
    check("spec: {ipFamilies: null, clusterIP: None}", &[Family::V4, Family::V6]);
}

#[test]
fn a_hostname_needs_the_service_as_subdomain() {
    let named = "IPv4 :80/TCP | a=10.1.0.1 \"h\" ready serving @n1 z1";
    let plain = "IPv4 :80/TCP | a=10.1.0.1 ready serving @n1 z1";
    check("", "spec: {hostname: h, subdomain: web}", named);
    check("spec: {clusterIP: None}", "spec: {hostname: h, subdomain: web}", named);
    check("", "spec: {hostname: h, subdomain: other}", plain);
    check("", "spec: {hostname: h}", plain);
    check("", "spec: {subdomain: web}", plain);
}

#[test]
fn named_ports_are_found_by_name_and_protocol() {
    let by_name = "spec: {ports: [{name: http, port: 80, targetPort: web}]}";
    let ports = |ports: &str| format!("spec: {{containers: [{{name: c, ports: [{ports}]}}]}}");
    let found = "IPv4 http:8080/TCP | a=10.1.0.1 ready serving @n1 z1";
    let missing = "IPv4 | a=10.1.0.1 ready serving @n1 z1; the Pod has no TCP container port named \"web\", to which port \"http\" leads";
    check(by_name, &ports("{name: web, containerPort: 8080}"), found);
    check(by_name, &ports("{name: web, containerPort: 53, protocol: UDP}, {name: web, containerPort: 8080}"), found);
    check(by_name, &ports("{name: other, containerPort: 8080}"), missing);
    check(by_name, &ports("{name: web, containerPort: 8080, protocol: UDP}"), missing);
    let init = |policy: &str| {
        format!(
            "spec: {{initContainers: [{{name: i, restartPolicy: {policy}, ports: [{{name: web, containerPort: 8080}}]}}]}}"
        )
    };
    check(by_name, &init("Always"), found);
    check(by_name, &init("null"), missing);
}

#[test]
fn a_pod_that_lacks_one_port_has_the_others() {
    let fields = "spec: {ports: [{name: a, port: 80, targetPort: web}, {name: b, port: 81, targetPort: 8081, appProtocol: http}]}";
    check(
        fields,
        "",
        "IPv4 b:8081/TCP/http | a=10.1.0.1 ready serving @n1 z1; \
         the Pod has no TCP container port named \"web\", to which port \"a\" leads",
    );
}

#[test]
fn a_headless_service_needs_no_ports() {
    check("spec: {clusterIP: None, ports: null}", "", "IPv4 | a=10.1.0.1 ready serving @n1 z1");
}

#[test]
fn what_makes_no_other_endpoint_concerns_no_service() {
    let check = |fields: &str, expected: bool| {
        assert_eq!(differs(&pod("a", "10.1.0.1", ""), &pod("a", "10.1.0.1", fields)), expected, "{fields}");
    };
    check("metadata: {annotations: {x: z}, resourceVersion: '8'}", false);
    check("status: {phase: Pending}", false);
    check("status: {phase: Failed}", true);
    check("metadata: {labels: {app: other}}", true);
    check("metadata: {uid: other}", true);
    check("status: {podIPs: [{ip: 10.1.0.2}]}", true);
    check(NOT_READY, true);
    check(GOING, true);
}
