//! Clients of the API that do not take what they asked for, or say nothing at all: an administrator
//! beside them is answered, and the process does not grow.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_testkit::{ADMIN_TOKEN, Server, full, need};
use h2::client::SendRequest;
use http::Request;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{PATIENCE, server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Bytes that the process may grow by, whatever clients do.
const MOST_GROWTH: u64 = 256 << 20;

/// Watches that one administrator may have (docs/security.md, "Resource limits").
const WATCHES_OF_AN_ADMINISTRATOR: usize = 5_000;

/// A way to the server that trusts its authority and agrees on HTTP/2.
struct Door {
    server: Server,
    connector: TlsConnector,
}

/// A connection of HTTP/2 that answers pings and reads nothing but what its windows let through,
/// until it reads nothing at all.
struct Deaf {
    requests: SendRequest<Bytes>,
    answers: Vec<h2::RecvStream>,
    silence: Arc<Notify>,
    _served: tokio::task::JoinHandle<()>,
}

impl Door {
    fn new(flags: &[&str]) -> Door {
        let server = server(&[&["--store", "memory"], flags].concat());
        let authority = fs::read(server.data_dir().join("pki/ca.crt")).expect("an authority");
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(certificate.expect("PEM")).expect("a root");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = builder.expect("versions").with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Door { server, connector: TlsConnector::from(Arc::new(config)) }
    }

    async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.server.client().address()).await?;
        self.connector.connect(ServerName::try_from("localhost").expect("a name"), stream).await
    }

    async fn deaf(&self, window: u32) -> Deaf {
        let stream = self.connect().await.expect("a connection");
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(1 << 30);
        let (requests, connection) = builder.handshake(stream).await.expect("HTTP/2");
        let silence = Arc::new(Notify::new());
        let silent = silence.clone();
        let served = tokio::spawn(async move {
            tokio::pin!(connection);
            tokio::select! {
                _ = connection.as_mut() => {}
                // Open, and not read any more.
                () = silent.notified() => std::future::pending().await,
            }
        });
        Deaf { requests, answers: Vec::new(), silence, _served: served }
    }

    /// Asks as an administrator in so many rounds of three requests; every answer must come, and be good. Prints how long they took,
    /// which on a busy machine proves nothing.
    #[allow(clippy::print_stdout, reason = "the figures are worth knowing")]
    async fn assert_serves(&self, rounds: usize) {
        let client = self.server.client();
        let asked = tokio::task::spawn_blocking(move || {
            let mut connection = client.connect(PATIENCE).expect("the server listens");
            let mut times = Vec::new();
            for round in 0..rounds {
                let began = Instant::now();
                let read = connection.send("GET", "/api/v1/services?limit=5", "", b"").expect("an answer");
                assert_eq!(read.status, 200, "{round}");
                let body = json!({"metadata": {"generateName": "polite-"}}).to_string();
                let written = connection.send("POST", CONFIG_MAPS, "application/json", body.as_bytes());
                assert_eq!(written.expect("an answer").status, 201, "{round}");
                let fresh = client.get("/readyz").expect("an answer on a new connection");
                assert_eq!(fresh.status, 200, "{round}");
                times.push(began.elapsed());
            }
            times.sort_unstable();
            println!("{rounds} rounds of three requests, p99 of a round {:.1?}", times[times.len() * 99 / 100]);
        });
        asked.await.expect("no panic");
    }

    fn memory(&self) -> u64 {
        let pid = self.server.pid().expect("it runs");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes << 10
    }
}

impl Deaf {
    /// Sends a request; returns the code of the answer, or `None` if the server has closed the
    /// connection.
    async fn ask(&mut self, method: &str, path: &str, token: Option<&str>) -> Option<u16> {
        let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let ready = tokio::time::timeout(Duration::from_secs(2), self.requests.clone().ready()).await;
        let mut requests = ready.ok()?.ok()?;
        let (answer, _) = requests.send_request(request.body(()).expect("a request"), true).ok()?;
        let (head, body) = tokio::time::timeout(PATIENCE, answer).await.ok()?.ok()?.into_parts();
        self.answers.push(body);
        Some(head.status.as_u16())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_not_taken_keep_nobody_from_being_served() {
    let door = Door::new(&[]);
    let mut attackers = Vec::new();
    for method in ["GET", "GET", "GET", "POST"] {
        let mut deaf = door.deaf(0).await;
        for _ in 0..250 {
            if deaf.ask(method, if method == "GET" { "/readyz" } else { CONFIG_MAPS }, None).await.is_none() {
                break;
            }
        }
        attackers.push(deaf);
    }
    assert!(attackers.iter().all(|attacker| attacker.answers.len() == 250));
    door.assert_serves(20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_give_way() {
    let door = Door::new(&["--max-connections", "50"]);
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(door.connect().await);
    }
    let mut half_open = Vec::new();
    for _ in 0..200 {
        half_open.push(TcpStream::connect(door.server.client().address()).await.expect("a connection"));
    }
    door.assert_serves(20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_are_not_read_do_not_fill_the_memory() {
    let door = Door::new(&[]);
    let (connections, writes, rounds) = if full() { (40, 200, 350) } else { (4, 40, 5) };
    let large = json!({"metadata": {"name": "large"}, "data": {"text": "x".repeat(20_000)}}).to_string();
    assert_eq!(door.server.client().request("POST", CONFIG_MAPS, &large).expect("an answer").status, 201);
    let idle = door.memory();
    let mut attackers = Vec::new();
    let mut opened = 0;
    for _ in 0..connections {
        let mut deaf = door.deaf((1 << 31) - 1).await;
        for _ in 0..250 {
            let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=0");
            match deaf.ask("GET", &path, Some(ADMIN_TOKEN)).await {
                Some(200) => opened += 1,
                code => assert_eq!(code, Some(429), "after {opened} watches"),
            }
        }
        deaf.silence.notify_one();
        attackers.push(deaf);
    }
    assert_eq!(opened, (250 * connections).min(WATCHES_OF_AN_ADMINISTRATOR));
    let client = door.server.client();
    let written = tokio::task::spawn_blocking(move || {
        let mut connection = client.connect(PATIENCE).expect("the server listens");
        for number in 0..writes {
            let patch = json!({"data": {"number": number.to_string()}}).to_string();
            let path = format!("{CONFIG_MAPS}/large");
            let answer = connection.send("PATCH", &path, "application/merge-patch+json", patch.as_bytes());
            assert_eq!(answer.expect("an answer").status, 200);
        }
    });
    let sampled = async {
        let mut most = 0;
        while !written.is_finished() {
            most = door.memory().max(most);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        most
    };
    let (mut most, ()) = tokio::join!(sampled, door.assert_serves(rounds));
    written.await.expect("no panic");
    most = door.memory().max(most);
    assert!(most < idle + MOST_GROWTH, "{} MiB became {} MiB", idle >> 20, most >> 20);
    drop(attackers);
    if full() {
        let most = idle + MOST_GROWTH / 2;
        let mut rounds = 0..120;
        while door.memory() > most {
            assert!(rounds.next().is_some(), "{} MiB are kept of {} MiB", door.memory() >> 20, idle >> 20);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_are_not_read_do_not_fill_the_memory() {
    let door = Door::new(&[]);
    let client = door.server.client();
    let made = tokio::task::spawn_blocking(move || {
        let mut connection = client.connect(PATIENCE).expect("the server listens");
        for number in 0..150 {
            let object =
                json!({"metadata": {"name": format!("large-{number}")}, "data": {"text": "x".repeat(100_000)}});
            let answer = connection.send("POST", CONFIG_MAPS, "application/json", object.to_string().as_bytes());
            assert_eq!(answer.expect("an answer").status, 201);
        }
    });
    made.await.expect("no panic");
    let idle = door.memory();
    let forms =
        ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/vnd.kubernetes.protobuf"];
    let mut attackers = Vec::new();
    for form in forms {
        let mut deaf = door.deaf(1_000).await;
        for _ in 0..if full() { 200 } else { 40 } {
            let request = Request::get(format!("https://localhost{CONFIG_MAPS}"))
                .header("authorization", format!("Bearer {ADMIN_TOKEN}"))
                .header("accept", form)
                .body(())
                .expect("a request");
            // A connection is cut whose answers are not taken for half a minute.
            let Ok(mut requests) = deaf.requests.clone().ready().await else { break };
            let Ok((answer, _)) = requests.send_request(request, true) else { break };
            let Ok(answer) = tokio::time::timeout(PATIENCE, answer).await.expect("in time") else { break };
            assert!(matches!(answer.status().as_u16(), 200 | 429), "{}", answer.status());
            deaf.answers.push(answer.into_body());
        }
        assert!(!deaf.answers.is_empty(), "{form}");
        attackers.push(deaf);
    }
    door.assert_serves(if full() { 350 } else { 5 }).await;
    let most = door.memory();
    assert!(most < idle + MOST_GROWTH, "{} MiB became {} MiB", idle >> 20, most >> 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_many_small_objects_do_not_fill_the_memory() {
    if !full() {
        return need::skip("lists_of_many_small_objects_do_not_fill_the_memory", "./test --full");
    }
    let door = Door::new(&[]);
    let fillers = (0..8).map(|filler| {
        let client = door.server.client();
        tokio::task::spawn_blocking(move || {
            let mut connection = client.connect(PATIENCE).expect("the server listens");
            for number in 0..12_500 {
                let metadata = json!({"name": format!("small-{filler}-{number}")});
                let object = json!({"metadata": metadata, "data": {"text": "x".repeat(400)}}).to_string();
                let answer = connection.send("POST", CONFIG_MAPS, "application/json", object.as_bytes());
                assert_eq!(answer.expect("an answer").status, 201);
            }
        })
    });
    for filler in fillers.collect::<Vec<_>>() {
        filler.await.expect("no panic");
    }
    let idle = door.memory();
    let mut attackers = Vec::new();
    for _ in 0..4 {
        let mut deaf = door.deaf(1_000).await;
        // 100,000 objects of 600 bytes in each answer.
        for _ in 0..16 {
            match deaf.ask("GET", CONFIG_MAPS, Some(ADMIN_TOKEN)).await {
                // The connection is cut: its answers were not taken for half a minute.
                None => break,
                code => assert!(matches!(code, Some(200 | 429)), "{code:?}"),
            }
        }
        attackers.push(deaf);
    }
    door.assert_serves(350).await;
    let most = door.memory();
    assert!(most < idle + MOST_GROWTH, "{} MiB became {} MiB", idle >> 20, most >> 20);
}
