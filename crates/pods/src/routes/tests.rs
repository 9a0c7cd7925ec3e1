//! Which routes lead to the Pods of other Nodes?

use fairlead_kernel::link::Prefix;
use ipnet::IpNet;

use super::{Peer, plan};

/// This machine has 192.0.2.1/24 at link 2 and 198.51.100.1/25 at link 3. Of a way the range, the address of the Node and the link.
#[track_caller]
fn check(addresses: &[&str], ranges: &[&str], want: &[(&str, &str, Option<u32>)]) {
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
    let ways = plan(&[node], &near);
    let found: Vec<(String, String, Option<u32>)> =
        ways.iter().map(|way| (way.range.to_string(), way.through.to_string(), way.link)).collect();
    let want: Vec<(String, String, Option<u32>)> =
        want.iter().map(|(to, via, link)| ((*to).to_owned(), (*via).to_owned(), *link)).collect();
    assert_eq!(found, want);
}

#[test]
fn pods_of_a_node_are_reached_through_its_address_in_a_network_of_ours() {
    let range = "10.244.1.0/24";
    check(&["192.0.2.7"], &[range], &[(range, "192.0.2.7", Some(2))]);
    check(&["203.0.113.9", "198.51.100.9"], &[range], &[(range, "198.51.100.9", Some(3))]);
    // A Node that is not there yet.
    check(&[], &[range], &[]);
    check(&["192.0.2.7"], &[], &[]);
}

#[test]
fn what_is_no_neighbour_is_reached_through_a_tunnel() {
    let (range, range6) = ("10.244.1.0/24", "fd00:244:0:1::/64");
    // Beyond the half of the network that is ours.
    check(&["198.51.100.200"], &[range], &[(range, "198.51.100.200", None)]);
    // An address of its family is needed.
    check(&["192.0.2.7"], &[range, range6], &[(range, "192.0.2.7", Some(2)), (range6, "192.0.2.7", None)]);
    // A Node with our own address, or one that only a host route leads to, is no neighbour.
    check(&["192.0.2.1"], &[range], &[(range, "192.0.2.1", None)]);
    check(&["10.96.0.10"], &[range], &[(range, "10.96.0.10", None)]);
}
