//! Which routes lead to the Pods of other Nodes?

use fairlead_kernel::link::Prefix;
use ipnet::IpNet;

use super::{Peer, plan};

/// This machine has 192.0.2.1/24 at link 2 and 198.51.100.1/25 at link 3.
#[track_caller]
fn check(addresses: &[&str], ranges: &[&str], want: &[(&str, &str, u32)], problems: usize) {
    let near = [(1, "127.0.0.1/8"), (2, "192.0.2.1/24"), (3, "198.51.100.1/25"), (4, "10.96.0.10/32")];
    let near = near.map(|(link, text)| {
        let network: IpNet = text.parse().unwrap();
        (link, Prefix { address: network.addr(), length: network.prefix_len() })
    });
    let node = Peer {
        name: "other".to_owned(),
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        ranges: ranges.iter().map(|text| text.parse().unwrap()).collect(),
    };
    let (routes, said) = plan(&[node], &near);
    let found: Vec<(String, String, u32)> = routes
        .iter()
        .map(|route| {
            let to = format!("{}/{}", route.destination.address, route.destination.length);
            (to, route.gateway.unwrap().to_string(), route.link.unwrap())
        })
        .collect();
    let want: Vec<(String, String, u32)> =
        want.iter().map(|(to, via, link)| ((*to).to_owned(), (*via).to_owned(), *link)).collect();
    assert_eq!((found, said.len()), (want, problems), "{said:?}");
}

#[test]
fn pods_of_a_node_are_reached_through_its_address_in_a_network_of_ours() {
    check(&["192.0.2.7"], &["10.244.1.0/24"], &[("10.244.1.0/24", "192.0.2.7", 2)], 0);
    check(&["203.0.113.9", "198.51.100.9"], &["10.244.1.0/24"], &[("10.244.1.0/24", "198.51.100.9", 3)], 0);
    // Beyond the half of the network that is ours.
    check(&["198.51.100.200"], &["10.244.1.0/24"], &[], 1);
    // An address of its family is needed.
    check(
        &["192.0.2.7"],
        &["10.244.1.0/24", "fd00:244:0:1::/64"],
        &[("10.244.1.0/24", "192.0.2.7", 2)],
        1,
    );
    // A Node with our own address, or one that only a host route leads to, is no neighbour.
    check(&["192.0.2.1"], &["10.244.1.0/24"], &[], 1);
    check(&["10.96.0.10"], &["10.244.1.0/24"], &[], 1);
    check(&["192.0.2.7"], &[], &[], 0);
}
