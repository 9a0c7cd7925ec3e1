//! What holds for any Pods and any Service: the slices say what the specification says, none is above its maximum, a second
//! look changes nothing, and a change of one Pod writes at most two slices of a family.

use std::collections::BTreeSet;

use fairlead_api::view::{Pod, TargetPort};
use proptest::prelude::*;

use super::*;
use crate::sample::{Cluster, node, pod, service};

/// What a Pod may be, in the ways that matter.
#[derive(Debug, Clone)]
struct Backend {
    families: u8,
    address: u8,
    phase: &'static str,
    ready: bool,
    going: bool,
    node: &'static str,
    port: u8,
    named: bool,
}

fn backend() -> impl Strategy<Value = Backend> {
    let phase = prop_oneof![8 => Just("Running"), 1 => Just("Succeeded"), 1 => Just("Pending")];
    let node = prop_oneof![5 => Just("n1"), 3 => Just("n2"), 1 => Just("ghost")];
    let families = prop_oneof![1 => Just(0u8), 4 => Just(1), 2 => Just(2), 5 => Just(3)];
    (families, any::<u8>(), phase, any::<bool>(), prop::bool::weighted(0.2), node, 0..3u8, prop::bool::weighted(0.2))
        .prop_map(|(families, address, phase, ready, going, node, port, named)| Backend {
            families,
            address,
            phase,
            ready,
            going,
            node,
            port,
            named,
        })
}

impl Backend {
    fn pod(&self, name: usize) -> Pod {
        let mut pod = pod(&format!("p{name:02}"), "", "");
        pod.spec.node_name = self.node.to_owned();
        pod.status.phase = self.phase.to_owned();
        pod.status.pod_ips.clear();
        let ips = [
            format!("10.1.{name}.{}", self.address),
            format!("fd00::{:x}:{:x}", name + 1, u16::from(self.address) + 1),
        ];
        for (_, ip) in ips.into_iter().enumerate().filter(|(family, _)| self.families & (1 << family) != 0) {
            pod.status.pod_ips.push(fairlead_api::view::PodIp { ip });
        }
        pod.status.conditions[0].status = if self.ready { "True" } else { "False" }.to_owned();
        pod.metadata.deletion_timestamp = self.going.then(|| "2026-01-01T00:00:00Z".to_owned());
        if self.port > 0 {
            let ports = vec![fairlead_api::view::ContainerPort {
                name: "web".to_owned(),
                container_port: i32::from(self.port) * 1000,
                ..Default::default()
            }];
            pod.spec.containers = vec![fairlead_api::view::Container { ports, ..Default::default() }];
        }
        if self.named {
            (pod.spec.hostname, pod.spec.subdomain) = (format!("h{name}"), "web".to_owned());
        }
        pod
    }
}

fn any_service() -> impl Strategy<Value = Service> {
    let families = prop_oneof![Just("[IPv4]"), Just("[IPv6]"), Just("[IPv4, IPv6]"), Just("[IPv6, IPv4]")];
    let ports = prop_oneof![
        Just("[{port: 80, targetPort: 80}]"),
        Just("[{name: a, port: 80, targetPort: web}]"),
        Just("[{name: a, port: 80, targetPort: web}, {name: b, port: 81, targetPort: 81}]"),
        Just("null"),
    ];
    let near = prop_oneof![Just("null"), Just("PreferClose"), Just("PreferSameNode")];
    (families, ports, near, any::<bool>()).prop_map(|(families, ports, near, publish)| {
        let cluster_ip = if ports == "null" { "None" } else { "10.0.0.1" };
        service(&format!(
            "spec: {{ipFamilies: {families}, ports: {ports}, trafficDistribution: {near}, \
             publishNotReadyAddresses: {publish}, clusterIP: {cluster_ip}}}"
        ))
    })
}

/// One line an endpoint: all that the specification says of it.
fn specified(cluster: &Cluster) -> BTreeSet<String> {
    let service = &cluster.service.spec;
    let mut lines = BTreeSet::new();
    for (pod, family) in
        cluster.pods.iter().flat_map(|pod| service.ip_families.iter().map(move |family| (pod, *family)))
    {
        let ip =
            pod.status.pod_ips.iter().map(|pod_ip| &pod_ip.ip).find(|ip| ip.contains(':') == (family == Family::V6));
        let node = cluster.nodes.get(&pod.spec.node_name);
        let (Some(ip), "Running" | "Pending") = (ip, pod.status.phase.as_str()) else { continue };
        if node.is_none() && !service.publish_not_ready_addresses {
            continue;
        }
        let serving = pod.status.conditions[0].status == "True";
        let terminating = pod.metadata.deletion_timestamp.is_some();
        let ready = service.publish_not_ready_addresses || (serving && !terminating);
        let web = pod.spec.containers.first().map(|container| container.ports[0].container_port);
        let ports = service.ports.iter().filter_map(|port| match port.target_port {
            TargetPort::Number(number) => Some((port.name.as_str(), number)),
            TargetPort::Name(_) => web.map(|number| (port.name.as_str(), number)),
        });
        let zone = node.and_then(|node| node.zone());
        let near = service.traffic_distribution.as_deref().filter(|_| ready);
        let (zones, nodes) = (zone.filter(|_| near.is_some()), near.filter(|near| *near == "PreferSameNode"));
        lines.insert(format!(
            "{family} {:?} {ip} {:?} {ready} {serving} {terminating} {} {zone:?} for {zones:?} {:?} of {}",
            ports.collect::<BTreeSet<_>>(),
            Some(&pod.spec.hostname).filter(|hostname| !hostname.is_empty()),
            pod.spec.node_name,
            nodes.map(|_| &pod.spec.node_name),
            pod.metadata.name,
        ));
    }
    lines
}

/// The same of what was written. An endpoint in two slices is an error.
fn written(cluster: &Cluster) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (slice, endpoint) in
        cluster.slices.iter().flat_map(|slice| slice.endpoints.iter().map(move |endpoint| (slice, endpoint)))
    {
        let flag = |flag: Option<bool>| flag.expect("every condition is said");
        let said = endpoint.conditions;
        let ports =
            slice.ports.iter().map(|port| (port.name.as_deref().expect("a name"), port.port.expect("a number")));
        let hint = |list: fn(&fairlead_api::view::EndpointHints) -> &Vec<fairlead_api::view::Hint>| {
            endpoint.hints.as_ref().and_then(|hints| list(hints).first()).map(|hint| &hint.name)
        };
        let line = format!(
            "{} {:?} {} {:?} {} {} {} {} {:?} for {:?} {:?} of {}",
            slice.address_type.as_str(),
            ports.collect::<BTreeSet<_>>(),
            endpoint.addresses.join(","),
            endpoint.hostname,
            flag(said.ready),
            flag(said.serving),
            flag(said.terminating),
            endpoint.node_name.as_deref().unwrap_or_default(),
            endpoint.zone.as_deref(),
            hint(|hints| &hints.for_zones),
            hint(|hints| &hints.for_nodes),
            endpoint.target_ref.as_ref().expect("a target").name,
        );
        assert!(lines.insert(line.clone()), "twice: {line}");
    }
    lines
}

fn check(cluster: &mut Cluster) -> Changes<EndpointSlice> {
    let changes = cluster.sync();
    assert_eq!(written(cluster), specified(cluster));
    for family in &cluster.service.spec.ip_families {
        let of_family: Vec<_> = cluster.slices.iter().filter(|slice| slice.address_type == (*family).into()).collect();
        assert!(!of_family.is_empty(), "there is always a slice");
        assert!(of_family.iter().all(|slice| slice.endpoints.len() <= cluster.max));
        let empty = of_family.iter().filter(|slice| slice.endpoints.is_empty()).count();
        assert!(empty == 0 || of_family.len() == 1, "an empty slice is alone");
    }
    assert_eq!(cluster.plan().changes.writes(), 0, "a second look changes nothing");
    changes
}

/// Ports, addresses and readiness that the specification has in Endpoints.
fn specified_endpoints(cluster: &Cluster) -> BTreeSet<(i32, String, bool)> {
    let service = &cluster.service.spec;
    let mut all = BTreeSet::new();
    for pod in &cluster.pods {
        let ips = pod.status.pod_ips.iter().map(|pod_ip| &pod_ip.ip);
        let Some(ip) = ips.into_iter().find(|ip| ip.contains(':') == (service.ip_families[0] == Family::V6)) else {
            continue;
        };
        if pod.status.phase == "Succeeded" || (pod.is_terminating() && !service.publish_not_ready_addresses) {
            continue;
        }
        let ready = service.publish_not_ready_addresses || pod.status.conditions[0].status == "True";
        let web = pod.spec.containers.first().map(|container| container.ports[0].container_port);
        let ports = service.ports.iter().filter_map(|port| match port.target_port {
            TargetPort::Number(number) => Some(number),
            TargetPort::Name(_) => web,
        });
        let ports = ports.chain(service.ports.is_empty().then_some(0));
        all.extend(ports.map(|port| (port, ip.clone(), ready)));
    }
    all
}

fn check_endpoints(cluster: &mut Cluster) {
    cluster.sync_endpoints();
    let subsets = &cluster.endpoints.as_ref().expect("there are always Endpoints").subsets;
    let entries = crate::legacy::entries(subsets);
    let said = entries.map(|(port, address, ready)| (port.map_or(0, |port| port.port), address.ip.clone(), ready));
    let said: Vec<_> = said.collect();
    assert_eq!(said.len(), said.iter().collect::<BTreeSet<_>>().len(), "nothing is said twice");
    assert_eq!(said.into_iter().collect::<BTreeSet<_>>(), specified_endpoints(cluster));
    assert_eq!(cluster.sync_endpoints().writes(), 0, "a second look changes nothing");
}

/// Writes by family; deletions by the family of the slice that goes.
fn most_writes(before: &[EndpointSlice], changes: &Changes<EndpointSlice>) -> usize {
    let deleted = before.iter().filter(|slice| changes.delete.contains(&slice.metadata.name));
    let all: Vec<_> =
        changes.create.iter().chain(&changes.update).chain(deleted).map(|slice| slice.address_type).collect();
    [AddressType::V4, AddressType::V6]
        .iter()
        .map(|family| all.iter().filter(|of| *of == family).count())
        .max()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn slices_say_what_is_specified_with_few_writes(
        services in prop::collection::vec(any_service(), 1..4),
        first in prop::collection::vec(backend(), 0..20),
        steps in prop::collection::vec((0..24usize, prop::option::weighted(0.8, backend())), 0..25),
        max in 1..6usize,
    ) {
        let pods = first.iter().enumerate().map(|(at, backend)| backend.pod(at)).collect();
        let mut cluster = Cluster::new(services[0].clone(), pods);
        cluster.max = max;
        cluster.nodes.insert("n2".to_owned(), node("n2", "", ""));
        check(&mut cluster);
        for (at, backend) in steps {
            let name = format!("p{at:02}");
            cluster.pods.retain(|pod| pod.metadata.name != name);
            cluster.pods.extend(backend.map(|backend| backend.pod(at)));
            check_endpoints(&mut cluster);
            let before = cluster.slices.clone();
            let changes = check(&mut cluster);
            prop_assert!(most_writes(&before, &changes) <= 2, "{changes:?}");
        }
        for service in services {
            cluster.service = service;
            check(&mut cluster);
        }
    }

    /// In topology mode all ready endpoints have a hint for one zone that counts, or none has.
    #[test]
    fn topology_hints_are_all_or_none_and_come_to_rest(
        steps in prop::collection::vec((0..24usize, prop::option::weighted(0.8, backend())), 1..40),
        cpus in prop::collection::vec(1..5u8, 2..4),
        max in 2..8usize,
    ) {
        let mut cluster = Cluster::new(
            service("metadata: {annotations: {service.kubernetes.io/topology-mode: Auto}}"),
            Vec::new(),
        );
        cluster.max = max;
        cluster.nodes = cpus.iter().enumerate().map(|(at, cpu)| {
            let name = format!("n{}", at + 1);
            (name.clone(), node(&name, &format!("z{at}"), &format!("status: {{allocatable: {{cpu: '{cpu}'}}}}")))
        }).collect();
        for (at, backend) in steps {
            let name = format!("p{at:02}");
            cluster.pods.retain(|pod| pod.metadata.name != name);
            cluster.pods.extend(backend.map(|backend| backend.pod(at)));
            cluster.sync();
            let ready = cluster.slices.iter().flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.is_ready());
            let zones: Vec<_> = ready.map(|endpoint| endpoint.hints.as_ref().map(|hints| hints.for_zones.len())).collect();
            prop_assert!(zones.iter().all(|zones| *zones == Some(1)) || zones.iter().all(Option::is_none), "{zones:?}");
            prop_assert_eq!(cluster.plan().changes.writes(), 0);
        }
    }
}
