//! Orders as the reference controllers were seen to write them.

use fairlead_api::view::{Protocol, SubsetPort};

use super::*;

/// Names and numbers of TCP ports, in the order seen.
const SEEN: &[&[(&str, i32)]] = &[&[("http", 8080), ("metrics", 9100)]];

#[test]
fn ports_are_in_the_order_seen() {
    for seen in SEEN {
        let mut ports: Vec<_> = seen.iter().map(|(name, port)| slice_port(name, *port)).collect();
        let expected = ports.clone();
        ports.reverse();
        sort_slice_ports(&mut ports);
        assert_eq!(ports, expected);

        let ports: Vec<_> = seen.iter().map(|(name, port)| subset_port_of(name, *port)).collect();
        let expected = EndpointSubset { ports: ports.clone(), ..EndpointSubset::default() };
        let mut subsets = [EndpointSubset { ports: ports.into_iter().rev().collect(), ..EndpointSubset::default() }];
        sort_subsets(&mut subsets);
        assert_eq!(subsets, [expected]);
    }
}

#[test]
fn hashes_are_fnv_1a_of_128_bits() {
    assert_eq!(fnv1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
}

#[test]
fn subsets_are_printed_as_spew_does() {
    let mut text = String::new();
    let target = ObjectReference { kind: "Pod".to_owned(), uid: "u".to_owned(), ..ObjectReference::default() };
    let found = EndpointAddress { ip: "10.1.0.1".to_owned(), target_ref: Some(target), ..EndpointAddress::default() };
    list(&mut text, "Addresses", "v1.EndpointAddress", &[found], address);
    assert_eq!(
        text,
        "Addresses:([]v1.EndpointAddress)[{IP:(string)10.1.0.1 Hostname:(string) NodeName:(*string)<nil> \
         TargetRef:(*v1.ObjectReference){Kind:(string)Pod Namespace:(string) Name:(string) UID:(types.UID)u \
         APIVersion:(string) ResourceVersion:(string) FieldPath:(string)}}]"
    );
}

fn slice_port(name: &str, port: i32) -> EndpointPort {
    let name = Some(name.to_owned());
    EndpointPort { name, protocol: Some(Protocol::Tcp), port: Some(port), app_protocol: None }
}

fn subset_port_of(name: &str, port: i32) -> SubsetPort {
    SubsetPort { name: name.to_owned(), port, ..SubsetPort::default() }
}
