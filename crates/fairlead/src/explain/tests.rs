use super::*;

#[test]
fn clients_are_read_as_people_write_them() {
    let pod = |namespace: &str, name: &str| Ok(From::Pod(Key::new(namespace, name)));
    let cases = [
        ("pod/x", pod("shop", "x")),
        ("po/x", pod("shop", "x")),
        ("pod/other/x", pod("other", "x")),
        ("node", Ok(From::Node(None))),
        ("node/n1", Ok(From::Node(Some("n1".to_owned())))),
        ("outside", Ok(From::Outside(None))),
        ("192.0.2.7", Ok(From::Outside("192.0.2.7".parse().ok()))),
        ("2001:db8::7", Ok(From::Outside("2001:db8::7".parse().ok()))),
        ("pod/", Err(())),
        ("pod/a/b/c", Err(())),
        ("elsewhere", Err(())),
        ("", Err(())),
    ];
    for (text, expected) in cases {
        let read = text.parse::<Client>().map(|client| client.resolve("shop")).map_err(drop);
        assert_eq!(read, expected, "{text}");
    }
}

#[test]
fn ports_are_numbers_or_names_with_a_protocol_behind() {
    let cases = [
        ("80", Some(("80", None))),
        ("http", Some(("http", None))),
        ("53/udp", Some(("53", Some(Protocol::Udp)))),
        ("dns/UDP", Some(("dns", Some(Protocol::Udp)))),
        ("80/http", None),
        ("/TCP", None),
        ("", None),
    ];
    for (text, expected) in cases {
        let expected = expected.map(|(port, protocol)| Port(port.to_owned(), protocol));
        assert_eq!(text.parse::<Port>().ok(), expected, "{text}");
    }
}
