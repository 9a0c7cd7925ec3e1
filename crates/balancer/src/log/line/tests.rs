use super::*;

fn entry() -> Entry {
    let micros = Duration::from_micros;
    Entry {
        time: "2015-05-13T23:39:43.945958Z".parse().expect("a time"),
        client: "192.168.131.39:2817".parse().expect("an address"),
        backend: Some("10.0.0.1:80".parse().expect("an address")),
        times: [Some(micros(73)), Some(micros(1048)), Some(micros(57))],
        status: (200, 200),
        bytes: (0, 29),
        request: Some("GET http://www.example.com:80/ HTTP/1.1".to_owned()),
        agent: Some("curl/7.38.0".to_owned()),
        tls: None,
    }
}

#[track_caller]
fn check(entry: &Entry, expected: &str) {
    let mut line = String::new();
    write("my-loadbalancer", entry, &mut line);
    assert_eq!(line, format!("{expected}\n"));
}

/// The examples of AWS' documentation.
#[test]
fn lines_read_as_those_of_aws() {
    check(
        &entry(),
        "2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 \
         200 200 0 29 \"GET http://www.example.com:80/ HTTP/1.1\" \"curl/7.38.0\" - -",
    );
    let micros = Duration::from_micros;
    let bytes = Entry {
        times: [Some(micros(1065)), Some(micros(15)), Some(micros(23))],
        status: (0, 0),
        bytes: (57, 502),
        request: None,
        agent: None,
        tls: Some(("ECDHE-ECDSA-AES128-GCM-SHA256".to_owned(), "TLSv1.2".to_owned())),
        ..entry()
    };
    check(
        &bytes,
        "2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.001065 0.000015 0.000023 \
         - - 57 502 \"- - - \" \"-\" ECDHE-ECDSA-AES128-GCM-SHA256 TLSv1.2",
    );
}

#[test]
fn what_did_not_come_about_is_a_dash_or_minus_one() {
    let time = "2026-01-02T03:04:05Z".parse().expect("a time");
    let client = "[2001:db8::1]:5".parse().expect("an address");
    let refused = Entry { time, client, backend: None, times: [None; 3], status: (503, 0), ..entry() };
    check(
        &refused,
        "2026-01-02T03:04:05.000000Z my-loadbalancer [2001:db8::1]:5 - -1 -1 -1 503 - 0 29 \
         \"GET http://www.example.com:80/ HTTP/1.1\" \"curl/7.38.0\" - -",
    );
}

#[test]
fn clients_cannot_write_lines_of_their_own() {
    let mut line = String::new();
    let agent = Some("a\" 200\r\n2015 \u{7f}ü".to_owned());
    write("lb", &Entry { agent, ..entry() }, &mut line);
    assert!(line.ends_with("\"a\\x22 200\\x0d\\x0a2015 \\x7fü\" - -\n"), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn long_agents_are_cut_between_letters() {
    let mut line = String::new();
    write("lb", &Entry { agent: Some("ü".repeat(5000)), ..entry() }, &mut line);
    assert_eq!(line.matches('ü').count(), 4096);
    let mut line = String::new();
    write("lb", &Entry { agent: Some(format!("x{}", "ü".repeat(5000))), ..entry() }, &mut line);
    assert_eq!(line.matches('ü').count(), 4095);
}
