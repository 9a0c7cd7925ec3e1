use serde_json::json;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_node_object_tells_its_primary_addresses() {
    let check = |addresses: &[(&str, &str)], expected: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(|(kind, ip)| json!({"type": kind, "address": ip})).collect();
        let object = json!({"metadata": {"name": "n1"}, "status": {"addresses": addresses}});
        let node = Node::of(&serde_json::from_value(object).unwrap());
        assert_eq!(node.ips, expected.iter().map(|text| ip(text)).collect::<Vec<_>>());
    };
    check(&[("Hostname", "n1"), ("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2")], &["10.0.0.1"]);
    check(&[("ExternalIP", "192.0.2.1"), ("InternalIP", "10.0.0.1")], &["10.0.0.1"]);
    check(&[("ExternalIP", "192.0.2.1"), ("InternalIP", "fd00::1")], &["fd00::1", "192.0.2.1"]);
    check(&[("InternalIP", "nonsense")], &[]);
}

#[test]
fn a_packet_is_told_by_where_it_comes_from() {
    let ranges = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
    let check = |detection: LocalDetection, pod_ranges: &[&str], table: &[(&str, &str, Source)]| {
        let addresses = [ip("172.30.0.1"), ip("10.50.1.1"), ip("10.50.9.1")].into();
        let node = Node { detection, pod_ranges: ranges(pod_ranges), addresses, ..Node::default() };
        for (address, interface, expected) in table {
            let from = if interface.is_empty() { Ingress::Output } else { Ingress::Interface((*interface).to_owned()) };
            assert_eq!(node.source(&from, ip(address)), *expected, "{address} on {interface:?}");
        }
    };
    let cluster = || LocalDetection::Ranges(ranges(&["10.50.0.0/16"]));
    let nobody =
        [("10.50.1.7", "cni0", Source::Outside), ("172.30.0.1", "", Source::Node), ("127.0.0.1", "", Source::Node)];
    check(LocalDetection::None, &[], &nobody);
    check(cluster(), &[], &[("10.50.1.7", "cni0", Source::Pod), ("10.50.2.7", "eth0", Source::Pod)]);
    check(
        cluster(),
        &["10.50.1.0/24"],
        &[
            ("10.50.1.7", "cni0", Source::Pod),
            ("10.50.2.7", "eth0", Source::OtherPod),
            ("10.50.1.1", "", Source::Pod),
            ("10.50.9.1", "", Source::Pod),
            ("10.50.9.2", "eth0", Source::OtherPod),
            ("172.30.0.1", "", Source::Node),
            ("192.0.2.1", "eth0", Source::Outside),
        ],
    );
    let bridge = LocalDetection::Bridge("cni0".to_owned());
    let by_bridge =
        [("10.50.1.7", "cni0", Source::Pod), ("10.50.1.7", "cni01", Source::Outside), ("10.50.1.1", "", Source::Node)];
    check(bridge, &["10.50.1.0/24"], &by_bridge);
    let prefix = LocalDetection::InterfacePrefix("ve".to_owned());
    check(prefix, &[], &[("10.50.1.7", "veth7", Source::Pod), ("10.50.1.7", "eth0", Source::Outside)]);
}

#[test]
fn node_ports_are_listed_for_renderers() {
    let node = |ranges: &[&str], localhost| Node {
        ips: vec![ip("172.30.0.1"), ip("fd30::1")],
        addresses: ["172.30.0.1", "172.30.1.1", "127.0.0.1", "fd30::1"].map(ip).into(),
        node_port_addresses: NodePortAddresses::Ranges(ranges.iter().map(|range| range.parse().unwrap()).collect()),
        localhost_node_ports: localhost,
        ..Node::default()
    };
    let only = |nets: &[&str]| NodePorts::Only(nets.iter().map(|net| net.parse().unwrap()).collect());
    let (v4, v6) = (Family::V4, Family::V6);
    assert_eq!(node(&[], false).node_ports(v4), NodePorts::All { loopback: false });
    assert_eq!(node(&[], true).node_ports(v4), NodePorts::All { loopback: true });
    assert_eq!(node(&[], true).node_ports(v6), NodePorts::All { loopback: false });
    assert_eq!(node(&["172.30.0.0/24"], true).node_ports(v4), only(&["172.30.0.1/32"]));
    assert_eq!(node(&["172.30.0.0/24"], true).node_ports(v6), NodePorts::All { loopback: false });
    assert_eq!(node(&["127.0.0.0/8"], false).node_ports(v4), only(&[]));
    assert_eq!(node(&["127.0.0.0/16"], true).node_ports(v4), only(&["127.0.0.0/16"]));
    assert_eq!(node(&["64.0.0.0/2"], true).node_ports(v4), only(&["127.0.0.0/8"]));
    let primary = Node { node_port_addresses: NodePortAddresses::Primary, ..node(&[], true) };
    assert_eq!(primary.node_ports(v4), only(&["172.30.0.1/32"]));
    assert_eq!(primary.node_ports(v6), only(&["fd30::1/128"]));
}
