use crate::{Look, Value, json};

use super::*;
use crate::alloc::ip_address_object;

/// A store of three Services whose allocations are well; each case damages it.
struct Store {
    services: Vec<Value>,
    addresses: Vec<Value>,
    ranges: Vec<&'static str>,
    ports: PortMap,
    slices: Vec<Value>,
    endpoints: Vec<Value>,
}

fn service(name: &str, created: u8, ips: &[&str], ports: &[(u16, &str)]) -> Value {
    let kind = if ports.is_empty() { "ClusterIP" } else { "NodePort" };
    let ports: Vec<Value> =
        ports.iter().map(|(port, protocol)| json!({"port": 80, "nodePort": port, "protocol": protocol})).collect();
    json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7",
            "creationTimestamp": format!("2026-01-02T03:04:0{created}Z")},
        "spec": {"type": kind, "clusterIP": ips.first(), "clusterIPs": ips, "ports": ports},
    })
}

fn address(ip: &str, service: &str) -> Value {
    let mut object = ip_address_object(ip.parse().expect("an address"), "shop", service);
    object["metadata"]["uid"] = json!(format!("uid-{ip}"));
    object["metadata"]["resourceVersion"] = json!("8");
    object
}

fn map(used: &[u16]) -> PortMap {
    let mut ports = NodePorts::new(30000..=30099);
    used.iter().for_each(|port| assert!(ports.take(*port)));
    PortMap::Read(ports)
}

impl Store {
    fn well() -> Store {
        Store {
            services: vec![
                service("web", 1, &["10.0.0.1", "fd00::1"], &[]),
                service("dns", 2, &["10.0.0.2"], &[(30001, "TCP"), (30001, "UDP")]),
                service("headless", 3, &["None"], &[]),
                json!({"metadata": {"namespace": "shop", "name": "away"},
                    "spec": {"type": "ExternalName", "externalName": "a.b", "ports": [{"port": 1, "nodePort": 30009}]}}),
            ],
            addresses: vec![address("10.0.0.1", "web"), address("fd00::1", "web"), address("10.0.0.2", "dns")],
            ranges: vec!["10.0.0.0/24", "fd00::/112"],
            ports: map(&[30001]),
            slices: Vec::new(),
            endpoints: Vec::new(),
        }
    }

    fn examine(&self, seen: &Seen, now: i64) -> Findings {
        let bytes = |values: &[Value]| -> Vec<Vec<u8>> { values.iter().map(|v| v.to_string().into_bytes()).collect() };
        let (services, addresses) = (bytes(&self.services), bytes(&self.addresses));
        let (slices, endpoints) = (bytes(&self.slices), bytes(&self.endpoints));
        let read: Vec<_> = services.iter().filter_map(|json| Service::read(json).ok()).collect();
        let slices = slices.iter().filter_map(|json| HandMade::slice(json).expect("a slice"));
        let endpoints = endpoints.iter().filter_map(|json| HandMade::endpoints(json).expect("Endpoints"));
        let world = World {
            incomplete: read.len() < services.len(),
            services: read,
            addresses: addresses.iter().map(|json| Address::read(json).expect("an address")).collect(),
            ranges: self.ranges.iter().map(|text| text.parse().expect("a range")).collect(),
            ports: self.ports.clone(),
            endpoints: slices.chain(endpoints).collect(),
        };
        examine(&world, &(30000..=30099), seen, now)
    }
}

fn shown(findings: &Findings) -> Vec<String> {
    let line = |finding: &Finding| {
        let reason = finding.problem.reason().map_or("-", |(reason, _)| reason);
        format!("{reason} {}: {} => {:?}", finding.about.name, finding.problem, finding.mend)
    };
    findings.list.iter().map(line).collect()
}

/// What the first pass over a damaged store finds.
fn check(damage: impl FnOnce(&mut Store), expected: &[&str]) {
    let mut store = Store::well();
    damage(&mut store);
    assert_eq!(shown(&store.examine(&Seen::default(), 1000)), expected);
}

/// What is found once a leak is old enough, after nothing was found before.
fn check_later(damage: impl FnOnce(&mut Store), expected: &[&str]) {
    let mut store = Store::well();
    damage(&mut store);
    let mut seen = Seen::default();
    for now in [1000, 1030, 1059] {
        let findings = store.examine(&seen, now);
        assert_eq!(shown(&findings), [""; 0], "at {now}");
        seen = findings.seen;
    }
    assert_eq!(shown(&store.examine(&seen, 1060)), expected);
}

const WEB: &str = r#"Owner { namespace: "shop", name: "web", revision: 7 }"#;

#[test]
fn nothing_is_wrong_with_a_store_that_is_well() {
    check(|_| {}, &[]);
    check_later(|_| {}, &[]);
}

#[test]
fn a_missing_address_is_made() {
    check(
        |store| drop(store.addresses.remove(0)),
        &[&format!(
            "ClusterIPNotAllocated web: Cluster IP [IPv4]: 10.0.0.1 is not allocated; repairing => Create(10.0.0.1, {WEB})"
        )],
    );
    check(
        |store| drop(store.addresses.remove(1)),
        &[&format!(
            "ClusterIPNotAllocated web: Cluster IP [IPv6]: fd00::1 is not allocated; repairing => Create(fd00::1, {WEB})"
        )],
    );
    // As it was written before there were two families.
    check(
        |store| {
            store.services[0]["spec"]["clusterIPs"] = Value::Null;
            store.addresses.remove(0);
            store.addresses.remove(0);
        },
        &[&format!(
            "ClusterIPNotAllocated web: Cluster IP [IPv4]: 10.0.0.1 is not allocated; repairing => Create(10.0.0.1, {WEB})"
        )],
    );
}

#[test]
fn an_address_that_names_something_else_is_pointed_back() {
    let expected = &[&*format!(
        "ClusterIPNotAllocated web: the ClusterIP [IPv4]: 10.0.0.1 for Service shop/web has a wrong reference; repairing => \
         Point(10.0.0.1, 8, {WEB})"
    )];
    let parents = [
        json!({"group": "gateway.networking.k8s.io", "resource": "gateways", "namespace": "shop", "name": "web"}),
        json!({"group": "", "resource": "services", "namespace": "shop", "name": "gone"}),
        json!({"group": "", "resource": "services", "namespace": "other", "name": "web"}),
        json!({"resource": "services", "namespace": "shop", "name": "dns"}),
        Value::Null,
    ];
    for parent in parents {
        check(|store| store.addresses[0]["spec"]["parentRef"] = parent, expected);
    }
}

#[test]
fn labels_of_the_allocator_are_put_back_in_silence() {
    let expected = &[&*format!(
        "- web: IPAddress 10.0.0.1 lacks the labels of the allocator; repairing => Point(10.0.0.1, 8, {WEB})"
    )];
    check(|store| store.addresses[0]["metadata"]["labels"] = Value::Null, expected);
    for (label, value) in [("ip-family", "IPv6"), ("managed-by", "me")] {
        check(
            |store| store.addresses[0]["metadata"]["labels"].set(format!("ipaddress.kubernetes.io/{label}"), value),
            expected,
        );
    }
}

#[test]
fn of_two_services_with_one_address_the_one_that_is_named_has_it() {
    let expected = |name: &str| {
        format!(
            "ClusterIPAlreadyAllocated {name}: Cluster IP [IPv4]:10.0.0.1 was assigned to multiple services; please recreate \
             service => Nothing"
        )
    };
    check(|store| store.services.push(service("twin", 4, &["10.0.0.1"], &[])), &[&expected("twin")]);
    check(
        |store| {
            store.services.push(service("twin", 4, &["10.0.0.1"], &[]));
            store.addresses[0] = address("10.0.0.1", "twin");
        },
        &[&expected("web")],
    );
    // If neither is named, the older one.
    check(
        |store| {
            store.services.insert(0, service("twin", 4, &["10.0.0.1"], &[]));
            store.addresses.remove(0);
        },
        &[
            &format!(
                "ClusterIPNotAllocated web: Cluster IP [IPv4]: 10.0.0.1 is not allocated; repairing => Create(10.0.0.1, {WEB})"
            ),
            &expected("twin"),
        ],
    );
}

#[test]
fn addresses_that_cannot_be_are_told_about() {
    check(
        |store| store.services[1]["spec"]["clusterIPs"] = json!(["ten"]),
        &["ClusterIPNotValid dns: Cluster IP ten is not a valid IP; please recreate Service => Nothing"],
    );
    let outside = |name: &str, ip: &str| {
        format!(
            "ClusterIPOutOfRange {name}: Cluster IP {ip} is not within any configured Service CIDR; please recreate service \
             => Nothing"
        )
    };
    check(|store| store.ranges.truncate(1), &[&outside("web", "[IPv6]: fd00::1")]);
    // The first and the last of a range are not given out.
    check(
        |store| store.ranges[0] = "10.0.0.0/31",
        &[&outside("web", "[IPv4]: 10.0.0.1"), &outside("dns", "[IPv4]: 10.0.0.2")],
    );
    check(
        |store| store.ranges[0] = "10.0.0.1/32",
        &[&outside("web", "[IPv4]: 10.0.0.1"), &outside("dns", "[IPv4]: 10.0.0.2")],
    );
}

#[test]
fn an_address_without_a_service_goes_after_a_while() {
    check_later(
        |store| store.addresses.push(address("10.0.0.9", "gone")),
        &[
            "IPAddressNotAllocated 10.0.0.9: IPAddress: 10.0.0.9 for Service shop/gone appears to have leaked: cleaning up => \
           Delete(\"10.0.0.9\", 8, Some(Parent { namespace: \"shop\", name: \"gone\", revision: None }))",
        ],
    );
    check_later(
        |store| store.addresses.push(address("10.0.0.9", "web")),
        &[
            "IPAddressWrongReference 10.0.0.9: IPAddress: 10.0.0.9 for Service shop/web has a wrong reference; cleaning up => \
           Delete(\"10.0.0.9\", 8, Some(Parent { namespace: \"shop\", name: \"web\", revision: Some(7) }))",
        ],
    );
    check_later(
        |store| {
            let mut modified = address("10.0.0.9", "web");
            modified["spec"]["parentRef"] = json!({"group": "g", "resource": "r", "name": "n"});
            store.addresses.push(modified);
        },
        &[
            "IPAddressNotAllocated 10.0.0.9: IPAddress 10.0.0.9 appears to have been modified, not referencing a Service \
           &ParentReference{Group:g,Resource:r,Namespace:,Name:n,}: cleaning up => Delete(\"10.0.0.9\", 8, None)",
        ],
    );
    // Made for something else: none of our business.
    check_later(
        |store| {
            let mut other = address("10.0.0.9", "gone");
            other["metadata"]["labels"]["ipaddress.kubernetes.io/managed-by"] = json!("gateway");
            store.addresses.push(other);
        },
        &[],
    );
}

#[test]
fn an_address_that_was_made_again_is_a_new_leak() {
    let mut store = Store::well();
    store.addresses.push(address("10.0.0.9", "gone"));
    let seen = store.examine(&Seen::default(), 1000).seen;
    store.addresses[3]["metadata"]["uid"] = json!("another");
    assert_eq!(shown(&store.examine(&seen, 2000)), [""; 0]);
}

#[test]
fn node_ports_that_are_not_marked_are_marked() {
    let expected = "PortNotAllocated dns: Port 30001 is not allocated; repairing => SetPort(30001)";
    check(|store| store.ports = map(&[]), &[expected]);
    check(|store| store.ports = PortMap::Absent, &[expected]);
    check(
        |store| store.ports = PortMap::Damaged,
        &["- : the node port map cannot be read; making a new one => NewMap", expected],
    );
}

#[test]
fn node_ports_that_cannot_be_are_told_about() {
    check(
        |store| store.services.push(service("twin", 0, &[], &[(30001, "TCP")])),
        &["PortAlreadyAllocated dns: Port 30001 was assigned to multiple services; please recreate service => Nothing"],
    );
    check(
        |store| store.services[1]["spec"]["ports"][1]["protocol"] = json!("TCP"),
        &["PortAlreadyAllocated dns: Port 30001 was assigned to multiple services; please recreate service => Nothing"],
    );
    for port in [80, 30100, 99999] {
        let expected = format!(
            "PortOutOfRange dns: Port {port} is not within the port range 30000-30099; please recreate service => Nothing"
        );
        check(
            |store| {
                store.ports = PortMap::Absent;
                store.services[1]["spec"]["ports"] = json!([{"port": 1, "nodePort": port}]);
            },
            &[&expected],
        );
    }
}

#[test]
fn the_port_of_health_checks_is_used_only_where_they_are_made() {
    let with = |policy: &'static str| {
        move |store: &mut Store| {
            let spec = &mut store.services[1]["spec"];
            (spec["type"], spec["externalTrafficPolicy"]) = (json!("LoadBalancer"), json!(policy));
            spec["healthCheckNodePort"] = json!(30005);
        }
    };
    check(with("Local"), &["PortNotAllocated dns: Port 30005 is not allocated; repairing => SetPort(30005)"]);
    check(with("Cluster"), &[]);
}

#[test]
fn node_ports_without_a_service_are_freed_after_a_while() {
    check_later(
        |store| store.ports = map(&[30001, 30044]),
        &["- : the node port 30044 appears to have leaked: cleaning up => ClearPort(30044)"],
    );
}

#[test]
fn a_leak_needs_three_sightings_and_a_minute() {
    let mut store = Store::well();
    store.ports = map(&[30001, 30044]);
    let passes = |times: &[i64]| {
        times.iter().fold(Findings::default(), |findings, now| store.examine(&findings.seen, *now)).list.len()
    };
    assert_eq!(passes(&[0, 1000]), 0, "seen twice");
    assert_eq!(passes(&[0, 500, 1000]), 1, "seen three times");
    assert_eq!(passes(&[0, 1, 2, 3, 59]), 0, "less than a minute");
    assert_eq!(passes(&[0, 1, 60]), 1);
    // It belonged to somebody in between.
    let seen = store.examine(&store.examine(&Seen::default(), 0).seen, 100).seen;
    let between = Store::well().examine(&seen, 200).seen;
    assert_eq!(store.examine(&between, 300).list.len(), 0);
}

#[test]
fn nothing_is_freed_while_a_service_cannot_be_read() {
    let mut store = Store::well();
    store.ports = map(&[30001, 30044]);
    store.addresses.push(address("10.0.0.9", "gone"));
    store.services.push(json!({"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"ports": "none"}}));
    let mut seen = Seen::default();
    for now in [0, 1000, 2000, 3000] {
        let findings = store.examine(&seen, now);
        assert_eq!(shown(&findings), [""; 0]);
        seen = findings.seen;
    }
    store.services.pop();
    assert_eq!(store.examine(&seen, 4000).list.len(), 0, "it is the first sighting that counts");
}

#[test]
fn an_endpoint_made_by_hand_may_not_be_a_cluster_ip() {
    let slice = |labels: Value| {
        json!({"metadata": {"namespace": "shop", "name": "mine", "labels": labels},
            "endpoints": [{"addresses": ["192.0.2.1"]}, {"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.1"]}]})
    };
    let expected = "EndpointIsServiceIP mine: Endpoint 10.0.0.2 is the cluster IP of Service shop/dns; the endpoints of a \
                    Service cannot be cluster IPs => Nothing";
    check(|store| store.slices.push(slice(json!({"kubernetes.io/service-name": "mine"}))), &[expected]);
    check(|store| store.slices.push(slice(Value::Null)), &[expected]);
    let made = json!({"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"});
    check(|store| store.slices.push(slice(made)), &[]);
    let addresses =
        [json!([{"addresses": [{"ip": "10.0.0.2"}]}]), json!([{"notReadyAddresses": [{"ip": "10.0.0.2"}]}])];
    for subsets in addresses {
        let endpoints = json!({"metadata": {"namespace": "shop", "name": "mine"}, "subsets": subsets});
        check(|store| store.endpoints.push(endpoints), &[expected]);
    }
    check(|store| store.endpoints.push(json!({"metadata": {"name": "mine"}, "subsets": null})), &[]);
}

mod random;
