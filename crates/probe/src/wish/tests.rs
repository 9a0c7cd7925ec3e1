use super::*;

#[test]
fn checks_are_read_and_written_alike() {
    for text in ["http:/healthz", "http:8081/a?b", "https:/", "tcp", "tcp:9", "grpc", "grpc:a.B", "exec:test -f /x"] {
        let wish: Wish = text.parse().expect(text);
        assert_eq!(wish.to_string(), text);
    }
    let wish: Result<Wish, _> = "http".parse();
    assert_eq!(wish, Ok(Wish::Http { scheme: Scheme::Http, port: None, path: "/".to_owned() }));
    for text in ["", "ftp:/x", "http:x/y", "http:0/y", "http:70000/", "tcp:x", "exec:", "exec: "] {
        assert_eq!(text.parse::<Wish>(), Err(Unreadable(text.to_owned())), "{text}");
    }
}

#[test]
fn a_check_needs_a_port() {
    let check = |text: &str, served: Option<u16>, expect: Option<u16>| {
        let port = text.parse::<Wish>().expect(text).check("h", served).map(|check| match check {
            Check::Http(Http { port, .. }) | Check::Tcp { port, .. } | Check::Grpc { port, .. } => port,
        });
        assert_eq!(port, expect, "{text}");
    };
    check("http:/", Some(80), Some(80));
    check("http:81/", Some(80), Some(81));
    check("tcp:81", None, Some(81));
    check("tcp", None, None);
    check("grpc", Some(80), Some(80));
    check("exec:true", Some(80), None);
}
