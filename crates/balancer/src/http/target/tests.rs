use super::*;

#[test]
fn a_target_has_one_of_four_forms() {
    let long = format!("/{}", "a".repeat(LONGEST));
    let cases = [
        ("GET", "/", Ok(Target::Path("/"))),
        ("GET", "/a?b=c", Ok(Target::Path("/a?b=c"))),
        ("GET", "//a", Ok(Target::Path("//a"))),
        ("OPTIONS", "*", Ok(Target::Path("*"))),
        ("GET", "*", Err(Refusal::TARGET)),
        ("GET", "http://a.example/b", Ok(Target::Absolute { host: "a.example", path: "/b" })),
        ("GET", "HTTPS://a:8443?x", Ok(Target::Absolute { host: "a:8443", path: "?x" })),
        ("GET", "http://a", Ok(Target::Absolute { host: "a", path: "" })),
        ("GET", "http://user@a/", Err(Refusal::TARGET)),
        ("GET", "http:///a", Err(Refusal::TARGET)),
        ("GET", "ftp://a/", Err(Refusal::TARGET)),
        ("GET", "a/b", Err(Refusal::TARGET)),
        ("GET", "/a#b", Err(Refusal::TARGET)),
        ("GET", "/a b", Err(Refusal::TARGET)),
        ("CONNECT", "a:443", Ok(Target::Tunnel("a:443"))),
        ("CONNECT", "[::1]:443", Ok(Target::Tunnel("[::1]:443"))),
        ("CONNECT", "a", Err(Refusal::TARGET)),
        ("CONNECT", ":443", Err(Refusal::TARGET)),
        ("CONNECT", "/a", Err(Refusal::TARGET)),
        ("GET", &long, Err(Refusal::LONG_TARGET)),
    ];
    for (method, text, expected) in cases {
        assert_eq!(Target::read(method, text), expected, "{method} {text}");
    }
}

#[test]
fn a_host_is_a_name_or_an_address_with_a_port_or_without() {
    let good = ["", "a", "a.example", "a:80", "192.0.2.1", "[2001:db8::1]", "[::1]:8080", "a_b", "a:"];
    let bad = ["a b", "a/b", "a@b", "a:b", "a:80:80", "[::1", "[]", "[::1]80", "a,b", "a\\b", "a:123456", "[g::]"];
    for host in good {
        assert!(is_host(host.as_bytes()), "{host:?}");
    }
    for host in bad {
        assert!(!is_host(host.as_bytes()), "{host:?}");
    }
}
