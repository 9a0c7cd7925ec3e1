//! A change costs its own size, whatever else is there, and reads as people would write it.

use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{AddressType, Endpoint, EndpointPort, EndpointSlice, Protocol, Service, ServicePort};
use fairlead_plan::{Change, Family, PlanChange, Planner};
use fairlead_program::{iptables, ipvs, nft};

fn service(number: usize) -> Change {
    let mut service = Service::default();
    service.spec.cluster_ip = format!("10.96.{}.{}", number / 250, number % 250);
    service.spec.ports = vec![ServicePort { port: 80, ..ServicePort::default() }];
    Change::Service(Key::new("default", format!("web-{number}")), Some(Arc::new(service)))
}

fn slice(number: usize, endpoints: &[u8]) -> Change {
    let mut slice = EndpointSlice::default();
    slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), format!("web-{number}"));
    slice.address_type = AddressType::V4;
    slice.ports = vec![EndpointPort { port: Some(8080), protocol: Some(Protocol::Tcp), ..EndpointPort::default() }];
    let address = |at: &u8| vec![format!("10.244.{}.{at}", number % 250)];
    slice.endpoints = endpoints.iter().map(|at| Endpoint { addresses: address(at), ..Endpoint::default() }).collect();
    Change::Slice(Key::new("default", format!("web-{number}-1")), Some(Arc::new(slice)))
}

/// A cluster with so many Services of three endpoints each.
fn cluster(services: usize) -> Planner {
    let mut planner = Planner::default();
    planner.apply((0..services).flat_map(|number| [service(number), slice(number, &[1, 2, 3])]));
    planner
}

fn nft_steps(services: usize, change: impl Fn(&mut Planner) -> PlanChange) -> String {
    let mut planner = cluster(services);
    let (mut nft, _) = nft::Nft::new(planner.plan(), nft::Options::default());
    let change = change(&mut planner);
    let step = |op: &nft::Op| match op {
        nft::Op::AddElements(_, set, elements) => format!("+{} {set}", elements.len()),
        nft::Op::DeleteElements(_, set, elements) => format!("-{} {set}", elements.len()),
        other => format!("{other:?}"),
    };
    nft.apply(planner.plan(), &change).iter().map(step).collect::<Vec<_>>().join(", ")
}

#[test]
fn changes_of_nftables_are_as_small_as_they_can_be() {
    for services in [10, 400] {
        let check = |expected: &str, change: &dyn Fn(&mut Planner) -> PlanChange| {
            assert_eq!(nft_steps(services, change), expected, "among {services} Services");
        };
        check("-1 endpoints, +1 endpoints", &|planner| planner.apply([slice(7, &[1, 2, 4])]));
        check("-1 pools, +1 endpoints, +1 pools", &|planner| planner.apply([slice(7, &[1, 2, 3, 4])]));
        check("-2 endpoints, -1 pools, +1 endpoints, +1 pools", &|planner| planner.apply([slice(7, &[2, 3])]));
        check("-3 endpoints, -1 frontends, -1 pools, +1 frontends, +1 guarded", &|planner| {
            planner.apply([slice(7, &[])])
        });
        check("+1 cluster-ips, +3 endpoints, +1 frontends, +1 pools", &|planner| {
            planner.apply([service(1000), slice(1000, &[1, 2, 3])])
        });
        check("", &|planner| planner.apply([slice(7, &[3, 2, 1])]));
    }
}

fn ipvs_steps(services: usize, change: impl Fn(&mut Planner) -> PlanChange) -> String {
    let mut planner = cluster(services);
    let (mut ipvs, _) = ipvs::Ipvs::new(planner.plan(), ipvs::Options::default());
    let change = change(&mut planner);
    let filter = |op: &nft::Op| match op {
        nft::Op::AddElements(_, set, elements) => format!("+{} {set}", elements.len()),
        nft::Op::DeleteElements(_, set, elements) => format!("-{} {set}", elements.len()),
        other => format!("{other:?}"),
    };
    let step = |op: &ipvs::Op| match op {
        ipvs::Op::AddServer(..) => "+server".to_owned(),
        ipvs::Op::DeleteServer(..) => "-server".to_owned(),
        ipvs::Op::AddEndpoint(..) => "+endpoint".to_owned(),
        ipvs::Op::DeleteEndpoint(..) => "-endpoint".to_owned(),
        ipvs::Op::AddAddress(..) => "+address".to_owned(),
        ipvs::Op::Filter(ops) => ops.iter().map(filter).collect::<Vec<_>>().join(", "),
        other => format!("{other:?}"),
    };
    ipvs.apply(planner.plan(), &change).iter().map(step).collect::<Vec<_>>().join("; ")
}

#[test]
fn changes_of_ipvs_are_as_small_as_they_can_be() {
    for services in [10, 400] {
        let check = |expected: &str, change: &dyn Fn(&mut Planner) -> PlanChange| {
            assert_eq!(ipvs_steps(services, change), expected, "among {services} Services");
        };
        check("+endpoint; -endpoint", &|planner| planner.apply([slice(7, &[1, 2, 4])]));
        check("+endpoint", &|planner| planner.apply([slice(7, &[1, 2, 3, 4])]));
        check("-endpoint", &|planner| planner.apply([slice(7, &[2, 3])]));
        // New connections are refused before anything else happens; the server stays for those there are.
        check("-1 frontends, +1 frontends, +1 guarded; -endpoint; -endpoint; -endpoint", &|planner| {
            planner.apply([slice(7, &[])])
        });
        check("+server; +endpoint; +endpoint; +1 frontends, +1 vips; +address", &|planner| {
            planner.apply([service(1000), slice(1000, &[1, 2])])
        });
        check("", &|planner| planner.apply([slice(7, &[3, 2, 1])]));
    }
}

#[test]
fn a_change_of_iptables_writes_only_its_own_chains() {
    let mut planner = cluster(400);
    let change = planner.apply([slice(7, &[1, 4])]);
    let ops = iptables::diff(planner.plan(), &change, &iptables::Options::default());
    let text = &iptables::restore(&ops)[&Family::V4];
    let [pool, new, old1, old2] = ["SVC", "SEP", "SEP", "SEP"].map(|kind| format!("FAIRLEAD-{kind}-"));
    let lines: Vec<&str> = text.lines().collect();
    let expected = [
        "*nat",
        &format!(":{pool}"),
        &format!(":{new}"),
        &format!(":{old1}"),
        &format!(":{old2}"),
        &format!("-A {pool}"),
        &format!("-A {pool}"),
        &format!("-A {new}"),
        &format!("-X {old1}"),
        &format!("-X {old2}"),
        "COMMIT",
    ];
    assert_eq!(lines.len(), expected.len(), "{text}");
    assert!(lines.iter().zip(expected).all(|(line, start)| line.starts_with(start)), "{text}");
    assert!(lines[5].contains("-m statistic --mode random --probability 0.5000000000"), "{text}");
    assert!(lines[7].ends_with("-p tcp -j DNAT --to-destination 10.244.7.4:8080"), "{text}");
}

#[test]
fn a_program_of_nftables_reads_as_nft_prints_it() {
    let text = nft::render(cluster(1).plan(), nft::Options::default()).to_string();
    for line in [
        "table ip fairlead {",
        "type ipv4_addr . inet_proto . inet_service : mark",
        "elements = { 10.96.0.0 . tcp . 80 : 0x00000001 }",
        "0x00000001 . 0x00000002 counter packets 0 bytes 0 : 10.244.0.3 . 8080 }",
        "type nat hook prerouting priority -100; policy accept;",
        "dnat to meta mark . numgen random mod 3 map @endpoints",
        "ct status dnat ip saddr . ip daddr @hairpin masquerade fully-random",
        "meta mark & 0x00004000 != 0x00000000 meta mark set meta mark & 0xffffbfff masquerade fully-random",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn a_program_of_ipvs_reads_as_its_tools_print_it() {
    let text = ipvs::render(cluster(1).plan(), &ipvs::Options::default()).to_string();
    for line in [
        "fl-ipvs0 10.96.0.0\n10.96.0.0:80/TCP rr \n  -> 10.244.0.1:8080 weight 1\n",
        "table ip fairlead-ipvs {",
        "elements = { 10.96.0.0 }",
        "type filter hook prerouting priority -105; policy accept;",
        "meta mark & 0xfe000000 == 0xf6000000 meta mark set meta mark & 0x00004000",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn a_trace_of_ipvs_says_which_server_sends_a_packet_where() {
    let planner = cluster(1);
    let program = ipvs::render(planner.plan(), &ipvs::Options::default());
    let (src, dst) = ([10, 244, 0, 1].into(), [10, 96, 0, 0].into());
    let from = fairlead_plan::Ingress::Interface("cni0".to_owned());
    let packet = fairlead_plan::Packet { src, dst, port: 80, protocol: Protocol::Tcp, from };
    let steps = ipvs::trace(&program, planner.plan().node(), &packet, 0, 1).steps();
    let sent = "IPVS: the virtual server 10.96.0.0:80/TCP sends it to 10.244.0.2:8080";
    assert_eq!(steps.last().map(String::as_str), Some(sent), "{steps:#?}");
}
