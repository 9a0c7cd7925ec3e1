use proptest::prelude::*;

use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn proxied(client: &str, local: &str) -> Header {
    Header::Proxied { client: address(client), local: address(local) }
}

#[test]
fn lines_are_read() {
    let check = |line: &str, expected: Result<Option<(Header, usize)>, Malformed>| {
        assert_eq!(parse(line.as_bytes()), expected, "{line:?}");
    };
    let whole = |line: &str, header: Header| {
        check(line, Ok(Some((header, line.len()))));
        // What follows is not the header's.
        assert_eq!(parse(format!("{line}PROXY GET /\r\n").as_bytes()), Ok(Some((header, line.len()))));
        for end in 0..line.len() {
            check(&line[..end], Ok(None));
        }
    };
    whole("PROXY TCP4 192.0.2.202 10.0.42.7 12345 7\r\n", proxied("192.0.2.202:12345", "10.0.42.7:7"));
    whole("PROXY TCP6 2001:db8::1 fd00::1 1 65535\r\n", proxied("[2001:db8::1]:1", "[fd00::1]:65535"));
    whole("PROXY TCP6 ::ffff:192.0.2.1 fd00::1 1 2\r\n", proxied("192.0.2.1:1", "[fd00::1]:2"));
    whole("PROXY UNKNOWN\r\n", Header::Own);
    whole("PROXY UNKNOWN ff:ff 1 2 whatever\r\n", Header::Own);
    for bad in [
        "GET / HTTP/1.1\r\n",
        "PROXY",
        "PROXY TCP4 192.0.2.202 10.0.42.7 12345\r\n",
        "PROXY TCP4 192.0.2.202 10.0.42.7 12345 7 8\r\n",
        "PROXY TCP4  192.0.2.202 10.0.42.7 12345 7\r\n",
        "PROXY TCP4 192.0.2.202 10.0.42.7 12345 7\n",
        "PROXY TCP4 192.0.2.202 10.0.42.7 65536 7\r\n",
        "PROXY TCP4 192.0.2.202 10.0.42.7 012 7\r\n",
        "PROXY TCP4 192.0.2.202 10.0.42.7 +12 7\r\n",
        "PROXY TCP4 192.0.2.999 10.0.42.7 12 7\r\n",
        "PROXY TCP4 fd00::1 fd00::2 12 7\r\n",
        "PROXY TCP6 10.0.0.1 10.0.0.2 12 7\r\n",
        "PROXY UDP4 10.0.0.1 10.0.0.2 12 7\r\n",
        "PROXY UNKNOWNS\r\n",
        "proxy TCP4 10.0.0.1 10.0.0.2 12 7\r\n",
        "\r\n\r\nGET",
    ] {
        if bad != "PROXY" {
            check(bad, Err(Malformed));
        }
    }
    check(&format!("PROXY UNKNOWN {}", "x".repeat(92)), Ok(None));
    check(&format!("PROXY UNKNOWN {}", "x".repeat(93)), Err(Malformed));
    check("", Ok(None));
}

#[test]
fn what_begins_a_header_is_known_in_whatever_pieces_it_comes() {
    let check = |bytes: &[u8], expected: Opening| {
        for size in 1..=bytes.len() {
            let mut suspicion = Suspicion::default();
            let heard: Vec<Opening> = bytes.chunks(size).map(|piece| suspicion.hear(piece)).collect();
            let decided = heard.iter().find(|one| **one != Opening::Undecided).unwrap_or(&Opening::Undecided);
            assert_eq!(*decided, expected, "{bytes:?} by {size}");
        }
    };
    check(b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", Opening::Header);
    check(b"PROXY nonsense", Opening::Header);
    check(b"PROXY", Opening::Undecided);
    check(b"PROXIES", Opening::Other);
    check(b"proxy TCP4", Opening::Other);
    check(b" PROXY TCP4", Opening::Other);
    check(b"\r\n\r\n\0\r\nQUIT", Opening::Undecided);
    check(b"\r\n\r\n\0\r\nQUIT\n\x21\x11", Opening::Header);
    check(b"\r\nhello", Opening::Other);
    check(b"\x16\x03\x01", Opening::Other);
    assert_eq!(Suspicion::default().hear(b""), Opening::Undecided);
}

/// Version 2 with this command, family and rest.
fn binary_of(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    bytes.extend(rest);
    bytes
}

#[test]
fn binary_headers_are_read() {
    let check = |bytes: &[u8], expected: Result<Option<(Header, usize)>, Malformed>| {
        assert_eq!(parse(bytes), expected, "{bytes:02x?}");
    };
    let whole = |bytes: &[u8], header: Header| {
        check(bytes, Ok(Some((header, bytes.len()))));
        check(&[bytes, b"and more"].concat(), Ok(Some((header, bytes.len()))));
        (0..bytes.len()).for_each(|end| check(&bytes[..end], Ok(None)));
    };
    let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0x30, 0x39, 0, 80];
    whole(&binary_of(0x21, 0x11, &v4), proxied("192.0.2.1:12345", "10.0.0.1:80"));
    whole(&binary_of(0x21, 0x11, &[&v4[..], &[4, 0, 1, 9]].concat()), proxied("192.0.2.1:12345", "10.0.0.1:80"));
    let v6 = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[1], &[0xfd], &[0; 14], &[2], &[0, 1, 0, 2]].concat();
    whole(&binary_of(0x21, 0x21, &v6), proxied("[2001:db8::1]:1", "[fd00::2]:2"));
    whole(&binary_of(0x20, 0x00, &[]), Header::Own);
    whole(&binary_of(0x20, 0x11, &v4), Header::Own);
    whole(&binary_of(0x20, 0x31, &[b'/'; 216]), Header::Own);
    whole(&binary_of(0x21, 0x00, &[]), Header::Own);
    // Datagrams and UNIX sockets are no connections of a listener of TCP.
    check(&binary_of(0x21, 0x12, &v4), Err(Malformed));
    check(&binary_of(0x21, 0x22, &v6), Err(Malformed));
    check(&binary_of(0x21, 0x31, &[b'/'; 216]), Err(Malformed));
    check(&binary_of(0x21, 0x32, &[b'/'; 216]), Err(Malformed));
    check(&binary_of(0x21, 0x10, &v4), Err(Malformed));
    check(&binary_of(0x21, 0x01, &v4), Err(Malformed));
    check(&binary_of(0x21, 0x11, &v4[..11]), Err(Malformed));
    check(&binary_of(0x21, 0x21, &v6[..35]), Err(Malformed));
    check(&binary_of(0x22, 0x11, &v4), Err(Malformed));
    check(&binary_of(0x11, 0x11, &v4), Err(Malformed));
    check(&binary_of(0x21, 0x77, &v4), Err(Malformed));
    check(&binary_of(0x21, 0x11, &[0; LONGEST - 15]), Err(Malformed));
    whole(&binary_of(0x20, 0x11, &[0; LONGEST - 16]), Header::Own);
}

#[test]
fn what_follows_the_addresses_must_be_whole() {
    let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0x30, 0x39, 0, 80];
    let v6 = [7; 36];
    let check = |extensions: &[u8], is_header: bool| {
        for (family, addresses) in [(0x11, &v4[..]), (0x21, &v6), (0x00, &[])] {
            let bytes = binary_of(0x21, family, &[addresses, extensions].concat());
            assert_eq!(parse(&bytes).is_ok(), is_header, "{family:02x} {extensions:02x?}");
            // The front speaks for itself: its block is discarded.
            assert_eq!(parse(&binary_of(0x20, family, extensions)), Ok(Some((Header::Own, 16 + extensions.len()))));
        }
    };
    check(&[], true);
    check(&[4, 0, 0], true);
    check(&[4, 0, 1, 9, 0xee, 0, 2, 1, 1], true);
    check(&[4], false);
    check(&[4, 0], false);
    check(&[4, 0, 1], false);
    check(&[4, 0, 2, 9], false);
    check(&[4, 0xff, 0xff, 9], false);
    check(&[4, 0, 1, 9, 4, 0], false);
    check(&[&[5, 0, 128][..], &[1; 128]].concat(), true);
    check(&[&[5, 0, 129][..], &[1; 129]].concat(), false);
    // TLS: five bytes, and values of its own.
    check(&[0x20, 0, 5, 1, 0, 0, 0, 0], true);
    check(&[0x20, 0, 4, 1, 0, 0, 0], false);
    check(&[0x20, 0, 9, 1, 0, 0, 0, 0, 0x21, 0, 1, b'1'], true);
    check(&[0x20, 0, 9, 1, 0, 0, 0, 0, 0x21, 0, 2, b'1'], false);
    check(&[0x20, 0, 7, 1, 0, 0, 0, 0, 0x21, 0], false);
    // A checksum has four bytes.
    check(&[3, 0, 3, 0, 0, 0], false);
    check(&[3, 0, 0], false);
}

#[test]
fn a_checksum_must_be_right_where_there_is_one() {
    let v4 = [192, 0, 2, 1, 10, 0, 0, 1, 0x30, 0x39, 0, 80];
    let sealed = |before: &[u8], after: &[u8]| {
        let mut bytes = binary_of(0x21, 0x11, &[&v4[..], before, &[3, 0, 4, 0, 0, 0, 0], after].concat());
        let sum = crc32c::of(&[&bytes]).to_be_bytes();
        let place = 28 + before.len() + 3;
        bytes[place..place + 4].copy_from_slice(&sum);
        (bytes, place)
    };
    for (before, after) in [(&[][..], &[][..]), (&[4, 0, 1, 9], &[]), (&[], &[1, 0, 2, b'h', b'2'])] {
        let (bytes, _) = sealed(before, after);
        assert_eq!(parse(&bytes), Ok(Some((proxied("192.0.2.1:12345", "10.0.0.1:80"), bytes.len()))));
        // Whatever bit was changed on the way behind the signature and the lengths.
        for place in 16..28 {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            assert_eq!(parse(&changed), Err(Malformed), "{place}");
        }
    }
    let (mut wrong, place) = sealed(&[], &[]);
    wrong[place] ^= 0x80;
    assert_eq!(parse(&wrong), Err(Malformed));
    // A checksum of zeros is wrong, and there may be one only.
    let zero = binary_of(0x21, 0x11, &[&v4[..], &[3, 0, 4, 0, 0, 0, 0]].concat());
    assert_eq!(parse(&zero), Err(Malformed));
    let (once, _) = sealed(&[], &[]);
    let twice = binary_of(0x21, 0x11, &[&once[16..], &[3, 0, 4, 0, 0, 0, 0]].concat());
    assert_eq!(parse(&twice), Err(Malformed));
}

#[test]
fn what_is_written_is_what_the_documents_show_and_reads_the_same() {
    let written = |version, client: &str, local: &str| {
        let mut out = Vec::new();
        write(version, address(client), address(local), None, &mut out);
        assert_eq!(parse(&out), Ok(Some((proxied(client, local), out.len()))));
        out
    };
    let line = written(ProxyVersion::V1, "192.0.2.202:12345", "10.0.42.7:7");
    assert_eq!(line, b"PROXY TCP4 192.0.2.202 10.0.42.7 12345 7\r\n");
    let line = written(ProxyVersion::V1, "[2001:db8::1]:1", "[fd00::1]:2");
    assert_eq!(line, b"PROXY TCP6 2001:db8::1 fd00::1 1 2\r\n");
    assert_eq!(written(ProxyVersion::V2, "192.0.2.1:12345", "10.0.0.1:80").len(), 28);
    assert_eq!(written(ProxyVersion::V2, "[2001:db8::1]:1", "[fd00::1]:2").len(), 52);
    written(ProxyVersion::V1, "192.0.2.1:12345", "[fd00::1]:2");
    written(ProxyVersion::V2, "192.0.2.1:12345", "[fd00::1]:2");
    for (version, length) in [(ProxyVersion::V1, 15), (ProxyVersion::V2, 16)] {
        let mut out = Vec::new();
        write_own(version, &mut out);
        assert_eq!(parse(&out), Ok(Some((Header::Own, length))));
    }
}

#[test]
fn version_2_tells_of_tls() {
    let tls = TlsFacts {
        suite: "TLS_AES_128_GCM_SHA256",
        version: "TLSv1.3",
        alpn: Some("h2"),
        sni: Some("shop.example.com".into()),
        resumed: false,
    };
    let mut out = Vec::new();
    write(ProxyVersion::V2, address("192.0.2.1:1"), address("10.0.0.1:2"), Some(&tls), &mut out);
    let expected = [
        &[0x01, 0, 2][..],
        b"h2",
        &[0x02, 0, 16],
        b"shop.example.com",
        &[0x20, 0, 40, 1, 0, 0, 0, 1, 0x21, 0, 7],
        b"TLSv1.3",
        &[0x23, 0, 22],
        b"TLS_AES_128_GCM_SHA256",
    ];
    assert_eq!(out[28..], expected.concat());
    assert_eq!(parse(&out), Ok(Some((proxied("192.0.2.1:1", "10.0.0.1:2"), out.len()))));
}

/// Bytes that are often almost a header.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    let line =
        "PROXY (TCP4|TCP6|UNKNOWN)( [0-9a-f.:]{1,15}){0,4}( [0-9]{1,6}){0,2}\\r?\\n?".prop_map(String::into_bytes);
    let binary = (any::<u8>(), any::<u8>(), 0u16..300, proptest::collection::vec(any::<u8>(), 0..300)).prop_map(
        |(command, family, length, rest)| {
            let mut bytes = SIGNATURE.to_vec();
            bytes.extend([0x20 | (command & 3), family & 0x33]);
            bytes.extend(length.to_be_bytes());
            bytes.extend(rest);
            bytes
        },
    );
    prop_oneof![line, binary, proptest::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #[test]
    fn a_header_is_the_same_whatever_follows_and_no_part_of_it_is_one(bytes in almost(), more in any::<[u8; 4]>()) {
        if let Ok(Some((header, length))) = parse(&bytes) {
            prop_assert!(length <= bytes.len());
            prop_assert_eq!(parse(&[&bytes[..], &more].concat()), Ok(Some((header, length))));
            for end in 0..length {
                prop_assert_eq!(parse(&bytes[..end]), Ok(None));
            }
        }
    }
}
