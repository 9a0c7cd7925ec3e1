use super::*;

fn ends(client: &str) -> Ends {
    let client = client.parse().expect("an address");
    Ends { client, local: "203.0.113.1:443".parse().expect("an address"), peer: client }
}

fn check(client: &str, said: &[(Name, &str)], expected: &str) {
    let forwarded = Forwarded::new(&ends(client), true);
    let mut heard = Said::default();
    said.iter().for_each(|(name, value)| heard.hear(*name, value.as_bytes()));
    let mut out = Vec::new();
    forwarded.write((!said.is_empty()).then_some(&heard), &mut out);
    assert_eq!(String::from_utf8_lossy(&out).replace("\r\n", "\n"), expected);
}

#[test]
fn a_backend_learns_the_client_its_scheme_and_its_port() {
    check(
        "192.0.2.7:1234",
        &[],
        "X-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: https\nX-Forwarded-Port: 443\nForwarded: for=192.0.2.7;proto=https\n",
    );
    check(
        "[2001:db8::7]:1234",
        &[],
        "X-Forwarded-For: 2001:db8::7\nX-Forwarded-Proto: https\nX-Forwarded-Port: 443\n\
         Forwarded: for=\"[2001:db8::7]\";proto=https\n",
    );
    check(
        "[::ffff:192.0.2.7]:1234",
        &[],
        "X-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: https\nX-Forwarded-Port: 443\nForwarded: for=192.0.2.7;proto=https\n",
    );
}

#[test]
fn what_a_trusted_front_says_is_kept_and_added_to() {
    check(
        "192.0.2.7:1234",
        &[
            (Name::XForwardedFor, "198.51.100.1"),
            (Name::XForwardedFor, "198.51.100.2"),
            (Name::XForwardedProto, "http"),
            (Name::XForwardedPort, "8080"),
            (Name::Forwarded, "for=198.51.100.1"),
        ],
        "X-Forwarded-For: 198.51.100.1, 198.51.100.2, 192.0.2.7\nX-Forwarded-Proto: http\nX-Forwarded-Port: 8080\n\
         Forwarded: for=198.51.100.1, for=192.0.2.7;proto=https\n",
    );
}

#[test]
fn trust_depends_on_who_connected() {
    let range: IpNet = "192.0.2.0/24".parse().expect("a range");
    assert!(Forwarded::new(&ends("192.0.2.7:1"), false).trusted(&[range]));
    assert!(!Forwarded::new(&ends("198.51.100.7:1"), false).trusted(&[range]));
    assert!(!Forwarded::new(&ends("192.0.2.7:1"), false).trusted(&[]));
}
