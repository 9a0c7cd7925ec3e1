//! Interfaces, addresses and routes, made and taken away.

use std::net::IpAddr;
use std::os::fd::AsFd;

use fairlead_kernel::Error;
use fairlead_kernel::link::{Links, Prefix, Route, Vxlan};
use fairlead_kernel::netns::Namespace;

use crate::lab::{in_namespace, tool};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn a_pod_gets_its_routed_link() {
    in_namespace("a_pod_gets_its_routed_link", || {
        let pod = Namespace::unnamed().unwrap();
        let mut node = Links::open().unwrap();
        node.add_veth("flpod1", "eth0", Some(pod.as_fd())).unwrap();
        let outer = node.index("flpod1").unwrap();
        node.set_mtu(outer, 1400).unwrap();
        node.set_up(outer).unwrap();
        let gateways = [Prefix::host(ip("10.244.0.1")), Prefix::host(ip("fd00:244::1"))];
        let addresses = [Prefix::host(ip("10.244.0.7")), Prefix::host(ip("fd00:244::7"))];
        for (gateway, address) in gateways.into_iter().zip(addresses) {
            node.add_address(outer, gateway).unwrap();
            node.add_route(&Route { destination: address, gateway: None, link: Some(outer), source: None }).unwrap();
        }
        pod.run(|| inside(gateways, addresses)).unwrap();

        let found = node.find("flpod1").unwrap().unwrap();
        assert_eq!((found.up, found.kind.as_str(), found.mtu), (true, "veth", 1400));
        assert!(node.addresses(outer).unwrap().contains(&gateways[0]));
        let routes = node.routes(ip("10.0.0.0")).unwrap();
        assert!(
            routes.iter().any(|route| route.destination == addresses[0] && route.link == Some(outer)),
            "{routes:?}"
        );
        answers();
        node.delete(outer).unwrap();
        assert_eq!(node.find("flpod1").unwrap(), None);
        assert!(node.delete(outer).unwrap_err().is_not_found());
    });
}

/// What the pod's own side of the link needs.
fn inside(gateways: [Prefix; 2], addresses: [Prefix; 2]) {
    let mut links = Links::open().unwrap();
    let eth0 = links.index("eth0").unwrap();
    links.set_hardware_address(eth0, [2, 0, 0, 0, 0, 7]).unwrap();
    links.set_up(eth0).unwrap();
    for (gateway, address) in gateways.into_iter().zip(addresses) {
        links.add_address(eth0, address).unwrap();
        links.add_route(&Route { destination: gateway, gateway: None, link: Some(eth0), source: None }).unwrap();
        let any = if gateway.address.is_ipv4() { ip("0.0.0.0") } else { ip("::") };
        let default = Prefix { address: any, length: 0 };
        let route = Route { destination: default, gateway: Some(gateway.address), link: Some(eth0), source: None };
        links.add_route(&route).unwrap();
        links.add_route(&route).unwrap();
    }
    let server = std::net::TcpListener::bind("10.244.0.7:80").unwrap();
    std::thread::spawn(move || drop(server.accept()));
}

/// The node reaches the pod through the link.
fn answers() {
    let limit = std::time::Duration::from_secs(5);
    std::net::TcpStream::connect_timeout(&"10.244.0.7:80".parse().unwrap(), limit).unwrap();
}

#[test]
fn addresses_and_routes_can_be_taken_away() {
    in_namespace("addresses_and_routes_can_be_taken_away", || {
        let mut links = Links::open().unwrap();
        let lo = links.index("lo").unwrap();
        links.set_up(lo).unwrap();
        let address = Prefix::host(ip("10.96.0.10"));
        links.add_address(lo, address).unwrap();
        links.add_address(lo, address).unwrap();
        assert!(links.addresses(lo).unwrap().contains(&address));
        links.delete_address(lo, address).unwrap();
        assert!(!links.addresses(lo).unwrap().contains(&address));
        let route = Route {
            destination: Prefix { address: ip("10.97.0.0"), length: 16 },
            gateway: None,
            link: Some(lo),
            source: None,
        };
        links.add_route(&route).unwrap();
        assert_eq!(links.routes(ip("10.0.0.0")).unwrap(), std::slice::from_ref(&route));
        links.delete_route(&route).unwrap();
        assert_eq!(links.routes(ip("10.0.0.0")).unwrap(), []);
    });
}

#[test]
fn a_link_moves_to_another_namespace() {
    in_namespace("a_link_moves_to_another_namespace", || {
        let other = Namespace::unnamed().unwrap();
        let mut links = Links::open().unwrap();
        links.add_veth("fla", "flb", None).unwrap();
        let index = links.index("flb").unwrap();
        links.move_to(index, other.as_fd(), "eth7").unwrap();
        assert_eq!(links.find("flb").unwrap(), None);
        let there = other.run(|| Links::open().unwrap().find("eth7").unwrap()).unwrap();
        assert!(there.is_some());
    });
}

#[test]
fn routes_of_an_owner_are_found_among_others() {
    in_namespace("routes_of_an_owner_are_found_among_others", || {
        let mut links = Links::open().unwrap();
        links.add_veth("fla", "flb", None).unwrap();
        let link = links.index("fla").unwrap();
        [link, links.index("flb").unwrap()].into_iter().for_each(|index| links.set_up(index).unwrap());
        links.add_address(link, Prefix { address: ip("192.0.2.1"), length: 24 }).unwrap();
        let route = |to: &str, through: &str| {
            let destination = Prefix { address: ip(to), length: 24 };
            Route { destination, gateway: Some(ip(through)), link: Some(link), source: None }
        };
        let (ours, others) = (route("10.244.1.0", "192.0.2.2"), route("10.244.2.0", "192.0.2.3"));
        links.add_route(&others).unwrap();
        links.add_owned_route(207, &ours).unwrap();
        assert_eq!(links.owned_routes(207, ip("0.0.0.0")).unwrap(), std::slice::from_ref(&ours));
        assert!(tool("ip", &["route"]).contains("10.244.1.0/24 via 192.0.2.2 dev fla proto 207"));
        // Nobody else's is changed or deleted.
        assert!(links.add_owned_route(207, &route("10.244.2.0", "192.0.2.9")).unwrap_err().is_exists());
        assert!(links.delete_owned_route(207, &others).unwrap_err().is_not_found());
        links.delete_owned_route(207, &ours).unwrap();
        assert_eq!(links.owned_routes(207, ip("0.0.0.0")).unwrap(), []);
        assert!(links.routes(ip("0.0.0.0")).unwrap().contains(&others));
    });
}

#[test]
fn a_tunnel_knows_where_machines_are() {
    in_namespace("a_tunnel_knows_where_machines_are", || {
        let mut links = Links::open().unwrap();
        // A machine without any address has no gateways either.
        links.add_veth("fla", "flb", None).unwrap();
        let outer = links.index("fla").unwrap();
        links.set_up(outer).unwrap();
        links.add_address(outer, Prefix { address: ip("192.0.2.1"), length: 24 }).unwrap();
        let hardware = [2, 0xf1, 192, 0, 2, 1];
        links.add_vxlan("flvx", &Vxlan { id: 207, local: ip("192.0.2.1"), port: 4789, hardware }).unwrap();
        let link = links.find("flvx").unwrap().unwrap();
        assert_eq!((link.kind.as_str(), link.hardware), ("vxlan", hardware));
        links.set_up(link.index).unwrap();
        let other = [2, 0xf1, 192, 0, 2, 7];
        links.add_tunnel(link.index, other, ip("192.0.2.7")).unwrap();
        for (to, length) in [("10.244.1.0", 24), ("fd00:244:0:1::", 64)] {
            links.add_neighbour(link.index, ip(to), other).unwrap();
            let destination = Prefix { address: ip(to), length };
            let route = Route { destination, gateway: Some(ip(to)), link: Some(link.index), source: None };
            links.add_owned_route_on_link(207, &route).unwrap();
            assert_eq!(links.owned_routes(207, ip(to)).unwrap(), [route]);
        }
        let shown = tool("ip", &["-d", "link", "show", "flvx"]);
        assert!(shown.contains("vxlan id 207 local 192.0.2.1") && shown.contains("dstport 4789 nolearning"), "{shown}");
        assert!(
            tool("bridge", &["fdb", "show", "dev", "flvx"]).contains("02:f1:c0:00:02:07 dst 192.0.2.7 self permanent")
        );
    });
}

#[test]
fn a_dummy_is_made_or_said_to_be_absent() {
    in_namespace("a_dummy_is_made_or_said_to_be_absent", || {
        let known = tool("ip", &["link", "show"]).contains("fldummy");
        assert!(!known);
        match Links::open().unwrap().add_dummy("fldummy") {
            Ok(()) => assert!(tool("ip", &["link", "show"]).contains("fldummy")),
            Err(error) => assert!(matches!(error, Error::Absent(_)), "{error}"),
        }
    });
}

#[test]
fn a_refused_request_says_why() {
    in_namespace("a_refused_request_says_why", || {
        let mut links = Links::open().unwrap();
        let error = links.add_veth("a name that is too long", "x", None).unwrap_err();
        let Error::Refused(refusal) = &error else { panic!("{error}") };
        assert_eq!(refusal.request, "new veth link a name that is too long");
        assert!(refusal.reason.is_some() || refusal.errno != 0, "{error}");
        links.add_veth("fla", "flb", None).unwrap();
        assert!(links.add_veth("fla", "flc", None).unwrap_err().is_exists());
    });
}
