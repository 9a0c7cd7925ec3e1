//! TLS with real clients and backends: openssl and curl.

use std::sync::Arc;

use fairlead_balancer::spec::TlsPolicy;
use fairlead_balancer::tls::{ALPN_HTTP, ClientTls, ServerTls};
use fairlead_testkit::need;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use place::{Authority, Backend, Listener, curl, openssl};

#[path = "tls/place.rs"]
mod place;

fn policy(name: &str) -> TlsPolicy {
    TlsPolicy { name: name.to_owned() }
}

fn listener(authority: &Authority, name: &str) -> Listener {
    let certificate = authority.certificate("web", &["web.example"]);
    Listener::start(Arc::new(ServerTls::new(&[certificate], &policy(name), &[]).expect("a policy")))
}

/// What a client that offers only this gets, `None` if it is refused.
fn offered(listener: &Listener, arguments: &str) -> Option<String> {
    let said = openssl(&format!("s_client -connect {} -brief {arguments}", listener.address), "ask\n");
    let line = said.lines().find_map(|line| line.strip_prefix("Ciphersuite: "));
    line.filter(|_| said.contains("CONNECTION ESTABLISHED")).map(str::to_owned)
}

#[test]
fn a_client_that_offers_only_what_the_policy_forbids_is_refused() {
    if !need::need("a_client_that_offers_only_what_the_policy_forbids_is_refused", "openssl") {
        return;
    }
    let authority = Authority::new();
    let security = "-cipher ALL:@SECLEVEL=0";
    let cases = [
        ("ELBSecurityPolicy-TLS-1-2-2017-01", "-tls1_2", Some("ECDHE-ECDSA-AES128-GCM-SHA256")),
        ("ELBSecurityPolicy-TLS-1-2-2017-01", "-tls1_3", None),
        ("ELBSecurityPolicy-TLS-1-2-2017-01", &*format!("-tls1_1 {security}"), None),
        ("ELBSecurityPolicy-TLS-1-2-2017-01", "-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256", None),
        ("ELBSecurityPolicy-TLS-1-2-2017-01", "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305", None),
        ("ELBSecurityPolicy-2016-08", &*format!("-tls1 {security}"), None),
        ("ELBSecurityPolicy-TLS13-1-3-2021-06", "-tls1_3", Some("TLS_AES_128_GCM_SHA256")),
        ("ELBSecurityPolicy-TLS13-1-3-2021-06", "-tls1_2", None),
        ("ELBSecurityPolicy-TLS13-1-2-FIPS-2023-04", "-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256", None),
        ("", "-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256", Some("TLS_CHACHA20_POLY1305_SHA256")),
        ("", "-tls1_2 -cipher ECDHE-ECDSA-CHACHA20-POLY1305", Some("ECDHE-ECDSA-CHACHA20-POLY1305")),
        ("", "-tls1_2 -cipher ECDHE-ECDSA-AES256-SHA384", None),
    ];
    for (name, arguments, expected) in cases {
        let found = offered(&listener(&authority, name), arguments);
        assert_eq!(found.as_deref(), expected, "{name} {arguments}");
    }
}

#[test]
fn the_order_of_suites_is_the_servers() {
    if !need::need("the_order_of_suites_is_the_servers", "openssl") {
        return;
    }
    let listener = listener(&Authority::new(), "ELBSecurityPolicy-TLS-1-2-2017-01");
    let both = "-tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256";
    assert_eq!(offered(&listener, both).as_deref(), Some("ECDHE-ECDSA-AES128-GCM-SHA256"));
}

#[test]
fn clients_get_the_certificate_of_the_host_they_name_and_believe_it() {
    if !need::need("clients_get_the_certificate_of_the_host_they_name_and_believe_it", "curl") {
        return;
    }
    let authority = Authority::new();
    let certificates = [
        authority.certificate("first", &["first.example"]),
        authority.rsa("second", &["second.example", "*.second.example"]),
    ];
    let tls = ServerTls::new(&certificates, &policy(""), &[]).expect("a policy");
    let listener = Listener::start(Arc::new(tls));
    for (host, good) in [
        ("first.example", true),
        ("second.example", true),
        ("www.second.example", true),
        ("a.b.second.example", false),
        ("third.example", false),
    ] {
        let (code, answer) = curl(&authority, host, listener.address, &["--tlsv1.3"]);
        assert_eq!(code == 0, good, "{host}: {answer}");
        if good {
            assert_eq!(answer, format!("agreed: TLS_AES_128_GCM_SHA256 TLSv1.3 {host}\n"));
        }
    }
    let (_, answer) = curl(&authority, "second.example", listener.address, &["--tls-max", "1.2"]);
    assert_eq!(answer, "agreed: ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 second.example\n");
}

#[test]
fn clients_choose_the_protocol_inside() {
    if !need::need("clients_choose_the_protocol_inside", "openssl") {
        return;
    }
    let certificate = Authority::new().certificate("web", &["web.example"]);
    let tls = ServerTls::new(&[certificate], &policy(""), ALPN_HTTP).expect("a policy");
    let listener = Listener::start(Arc::new(tls));
    for (offer, expected) in [("h2,http/1.1", "h2"), ("http/1.1", "http/1.1")] {
        let said = openssl(&format!("s_client -connect {} -alpn {offer}", listener.address), "ask\n");
        assert!(said.contains(&format!("ALPN protocol: {expected}\n")), "{offer}: {said}");
    }
    let said = openssl(&format!("s_client -connect {} -alpn smtp", listener.address), "ask\n");
    assert!(said.contains("alert no application protocol"), "{said}");
}

#[test]
fn a_rotated_certificate_is_seen_by_new_connections_only_and_sessions_live_on() {
    if !need::need("a_rotated_certificate_is_seen_by_new_connections_only_and_sessions_live_on", "openssl") {
        return;
    }
    let authority = Authority::new();
    let old = [authority.certificate("web", &["old.example"])];
    let tls = ServerTls::renewed(None, &old, &policy(""), &[]).expect("a policy");
    let same = ServerTls::renewed(Some(&tls), &old, &policy(""), &[]).expect("a policy");
    assert!(Arc::ptr_eq(&tls, &same), "nothing changed");
    let listener = Listener::start(tls.clone());
    let mut connected = listener.connect();
    let sessions = tempfile::tempdir().expect("a directory");
    let session = sessions.path().join("session").display().to_string();
    let ask = |more: &str| openssl(&format!("s_client -connect {} {more}", listener.address), "ask\n");
    assert!(ask(&format!("-tls1_3 -sess_out {session}")).contains("New, TLSv1.3"));

    let new = [authority.certificate("web", &["new.example"])];
    listener.replace(ServerTls::renewed(Some(&tls), &new, &policy(""), &[]).expect("a policy"));
    assert!(ask("").contains("CN = new.example"), "new connections get the new one");
    assert_eq!(connected.ask(), "agreed: TLS_AES_128_GCM_SHA256 TLSv1.3 old.example\n", "old ones go on");
    let again = ask(&format!("-tls1_3 -sess_in {session}"));
    assert!(again.contains("Reused, TLSv1.3"), "{again}");

    let old_version = format!("{session}12");
    assert!(ask(&format!("-tls1_2 -sess_out {old_version}")).contains("New, TLSv1.2"));
    assert!(ask(&format!("-tls1_2 -sess_in {old_version}")).contains("Reused, TLSv1.2"));
    assert!(ask(&format!("-tls1_2 -no_ticket -sess_out {old_version}")).contains("New, TLSv1.2"));
    assert!(ask(&format!("-tls1_2 -no_ticket -sess_in {old_version}")).contains("Reused, TLSv1.2"));
}

#[tokio::test]
async fn backends_are_encrypted_to_and_checked_as_far_as_there_is_an_authority() {
    if !need::need("backends_are_encrypted_to_and_checked_as_far_as_there_is_an_authority", "openssl") {
        return;
    }
    let (ours, others) = (Authority::new(), Authority::new());
    let hosts = ["web.shop.svc".to_owned(), "web.shop.svc.cluster.local".to_owned()];
    let cases = [
        (Backend::start(&others, &["whoever.example"]), None, true),
        (Backend::start(&ours, &["web.shop.svc.cluster.local"]), Some(&ours), true),
        (Backend::start(&ours, &["127.0.0.1"]), Some(&ours), true),
        (Backend::start(&ours, &["another.shop.svc"]), Some(&ours), false),
        (Backend::start(&others, &["web.shop.svc"]), Some(&ours), false),
        (Backend::without_certificate(), None, false),
    ];
    for (at, (backend, authority, good)) in cases.iter().enumerate() {
        let pem = authority.map(|authority| authority.pem.as_bytes());
        let tls = ClientTls::new(pem, &hosts, &[]).expect("an authority");
        let socket = TcpStream::connect(backend.address).await.expect("it listens");
        let connected = tls.connect(socket, backend.address.ip()).await;
        assert_eq!(connected.is_ok(), *good, "case {at}: {:?}", connected.err());
        if let (Ok(mut stream), true) = (connected, *good) {
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("sent");
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer).await;
            assert!(answer.starts_with("HTTP/1.0 200 ok"), "case {at}: {answer}");
        }
    }
}

#[tokio::test]
async fn what_is_not_tls_is_refused_and_nothing_piles_up() {
    let listener = listener(&Authority::new(), "");
    let hello_without_end = [&[22, 3, 1, 0x40, 0][..], &[1, 0xff, 0xff, 0xff], &[0; 0x3ffc]].concat();
    for junk in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0xff; 100], hello_without_end.repeat(64)] {
        let mut socket = TcpStream::connect(listener.address).await.expect("it listens");
        // It may be refused before all of it is sent.
        let _ = socket.write_all(&junk).await;
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer).await;
        assert!(answer.is_empty() || answer[0] == 21, "an alert or nothing: {answer:?}");
    }
    assert_eq!(listener.refused(), 3);
}

#[tokio::test]
async fn a_megabyte_goes_through_both_ways() {
    let listener = listener(&Authority::new(), "");
    let tls = ClientTls::new(None, &[], &[]).expect("no authority is needed");
    let socket = TcpStream::connect(listener.address).await.expect("it listens");
    let stream = tls.connect(socket, listener.address.ip()).await.expect("a handshake");
    let (mut reader, mut writer) = tokio::io::split(stream);
    let bytes: Vec<u8> = (0..1 << 20).map(|at: u32| at.to_le_bytes()[(at % 3) as usize]).collect();
    let (sent, mut echoed) = (bytes.clone(), vec![0; bytes.len() + 5]);
    let sending = async {
        writer.write_all(b"echo\n").await.expect("sent");
        writer.write_all(&sent).await.expect("sent");
        writer.flush().await.expect("sent");
    };
    let receiving = async { reader.read_exact(&mut echoed).await.expect("received") };
    tokio::join!(sending, receiving);
    assert!(echoed[5..] == bytes[..], "what came back is what was sent");
}

#[tokio::test]
async fn what_came_before_the_end_is_read_whichever_way_it_ends() {
    for (proper, size) in [(true, 0), (true, 100_000), (false, 5), (false, 100_000)] {
        let certificate = Authority::new().certificate("web", &["web.example"]);
        let server = ServerTls::new(&[certificate], &policy(""), &[]).expect("a policy");
        let client = ClientTls::new(None, &[], &[]).expect("no authority is needed");
        let (near, far) = tokio::io::duplex(1 << 20);
        let address = "127.0.0.1".parse().expect("an address");
        let (server, client) = tokio::join!(server.accept(near), client.connect(far, address));
        let (mut server, mut client) = (server.expect("a handshake"), client.expect("a handshake"));
        client.write_all(&vec![7; size]).await.expect("sent");
        client.flush().await.expect("sent");
        if proper {
            client.shutdown().await.expect("said");
        }
        drop(client);
        let mut got = Vec::new();
        let end = server.read_to_end(&mut got).await;
        assert_eq!(got.len(), size, "nothing is lost");
        // Who breaks off without a word may not be the one who is believed to have said everything.
        assert_eq!(end.is_ok(), proper, "{size}: {end:?}");
    }
}

#[tokio::test]
async fn no_connection_fails_while_certificates_and_policies_change() {
    let authority = Authority::new();
    let certificates = [["a.example"], ["b.example"]].map(|hosts| [authority.certificate("web", &hosts)]);
    let mut tls = ServerTls::renewed(None, &certificates[0], &policy(""), &[]).expect("a policy");
    let listener = Listener::start(tls.clone());
    let client = ClientTls::new(Some(authority.pem.as_bytes()), &hosts(), &[]).expect("an authority");
    for round in 0..120 {
        if round % 3 == 0 {
            let name = ["", "ELBSecurityPolicy-TLS13-1-2-2021-06", "ELBSecurityPolicy-2016-08"][round / 3 % 3];
            let certificate = &certificates[round / 3 % 2];
            tls = ServerTls::renewed(Some(&tls), certificate, &policy(name), &[]).expect("a policy");
            listener.replace(tls.clone());
        }
        let socket = TcpStream::connect(listener.address).await.expect("it listens");
        let mut stream = client.connect(socket, listener.address.ip()).await.expect("a handshake");
        stream.write_all(b"ask\n").await.expect("sent");
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).await.expect("an answer");
    }
    assert_eq!(listener.refused(), 0);
}

fn hosts() -> [String; 2] {
    ["a.example".to_owned(), "b.example".to_owned()]
}

#[tokio::test]
async fn uploads_arrive_whole_over_real_sockets() {
    let certificate = Authority::new().certificate("web", &["web.example"]);
    let server = ServerTls::new(&[certificate], &policy(""), &[]).expect("a policy");
    let client = ClientTls::new(None, &[], &[]).expect("no authority is needed");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    for _ in 0..5 {
        let sending = async {
            let socket = TcpStream::connect(address).await.expect("it listens");
            let mut stream = client.connect(socket, address.ip()).await.expect("a handshake");
            stream.write_all(&vec![7; 3 << 20]).await.expect("sent");
            stream.shutdown().await.expect("said");
            stream.read_to_end(&mut Vec::new()).await.expect("an end")
        };
        let receiving = async {
            let (socket, _) = listener.accept().await.expect("a connection");
            let mut stream = server.accept(socket).await.expect("a handshake");
            let mut got = Vec::new();
            stream.read_to_end(&mut got).await.expect("all of it");
            stream.shutdown().await.expect("said");
            got.len()
        };
        assert_eq!(tokio::join!(sending, receiving), (0, 3 << 20));
    }
}
