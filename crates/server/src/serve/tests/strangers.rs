//! Clients that mean harm: silent, idle, too many, or deaf to their answers. A well-behaved client
//! beside them is served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairlead_runtime::Account;
use h2::client::SendRequest;
use tokio::io::AsyncWriteExt;

use super::*;
use crate::auth::User;

/// Time after which something that has to happen counts as missing.
const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

/// A client of HTTP/2 with windows of a chosen size. Its connection is served, pings included,
/// until the server ends it.
struct Deaf {
    requests: SendRequest<Bytes>,
    ended: tokio::task::JoinHandle<()>,
}

async fn deaf(house: &House, window: u32) -> Deaf {
    let stream = house.connect(None, b"h2").await.expect("a connection");
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(window);
    let (requests, connection) = builder.handshake(stream).await.expect("HTTP/2");
    let ended = tokio::spawn(async move { drop(connection.await) });
    Deaf { requests, ended }
}

impl Deaf {
    /// Sends a request; returns the code of its answer, and the answer, which is not read.
    async fn ask(&mut self, path: &str) -> Option<(u16, h2::RecvStream)> {
        let request = Request::builder().uri(format!("https://localhost{path}")).body(()).expect("a request");
        let mut requests = self.requests.clone().ready().await.ok()?;
        let (answer, _) = requests.send_request(request, true).ok()?;
        let (head, body) = answer.await.ok()?.into_parts();
        Some((head.status.as_u16(), body))
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("in time")
}

async fn polite(house: &House) -> u16 {
    soon(house.get(None, b"h2", "/polite")).await.0
}

fn of_length(bytes: usize) -> impl Fn(Request<Incoming>) -> std::future::Ready<(u16, String)> + Clone + Send + 'static {
    move |request| {
        let length = if request.uri().path() == "/polite" { 2 } else { bytes };
        std::future::ready((200, "x".repeat(length)))
    }
}

#[tokio::test]
async fn a_client_that_agrees_on_http2_and_says_nothing_is_cut() {
    let house = house(Limits { handshake: SHORT, ..Limits::default() }, of_length(2)).await;
    for said in
        [b"".as_slice(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0"]
    {
        let mut stream = house.connect(None, b"h2").await.expect("a connection");
        stream.write_all(said).await.expect("it is open");
        let mut heard = Vec::new();
        let _ = soon(stream.read_to_end(&mut heard)).await;
    }
    assert_eq!(polite(&house).await, 200);
}

#[tokio::test]
async fn an_http2_connection_without_requests_is_closed_though_it_answers_pings() {
    let house = house(Limits { idle: SHORT, ..Limits::default() }, of_length(2)).await;
    let silent = deaf(&house, 65_535).await;
    soon(silent.ended).await.expect("no panic");
    let mut asked_once = deaf(&house, 65_535).await;
    assert_eq!(asked_once.ask("/polite").await.map(|(code, _)| code), Some(200));
    soon(asked_once.ended).await.expect("no panic");
}

#[tokio::test]
async fn idle_strangers_give_way_to_newcomers_and_known_clients_stay() {
    let house = house(Limits { connections: 8, reserved: 2, ..Limits::default() }, |request| async move {
        if request.uri().path() == "/known" {
            let user = User { name: "ann".to_owned(), ..User::default() };
            request.extensions().get::<Connection>().expect("a connection").vouch(&user);
        }
        (200, String::new())
    })
    .await;
    let mut known = deaf(&house, 65_535).await;
    assert_eq!(known.ask("/known").await.map(|(code, _)| code), Some(200));
    let mut strangers = Vec::new();
    for _ in 0..40 {
        strangers.push(house.connect(None, b"h2").await);
        assert_eq!(polite(&house).await, 200);
    }
    assert_eq!(known.ask("/polite").await.map(|(code, _)| code), Some(200));
    assert!(!known.ended.is_finished());
}

#[tokio::test]
async fn answers_that_are_not_taken_are_cut_and_hold_no_seat() {
    for (length, window) in [(2, 0), (100_000, 1), (1_000_000, 65_535)] {
        let house = house(Limits { stall: SHORT, ..Limits::default() }, of_length(length)).await;
        let mut client = deaf(&house, window).await;
        let mut answers = Vec::new();
        for _ in 0..100 {
            let Some(answer) = client.ask("/").await else { break };
            answers.push(answer);
        }
        assert_eq!(polite(&house).await, 200);
        soon(client.ended).await.expect("no panic");
    }
}

#[tokio::test]
async fn an_http1_client_that_does_not_read_is_cut() {
    let house = house(Limits { stall: SHORT, ..Limits::default() }, of_length(64 << 20)).await;
    let mut stream = house.connect(None, b"http/1.1").await.expect("a connection");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("it is open");
    // The server closes while nothing is read; afterwards only what the kernels held is left.
    let (mut tcp, _) = stream.into_inner();
    let mut seen = [0; 1];
    soon(tcp.peek(&mut seen)).await.expect("an answer");
    soon(async {
        while tcp.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(polite(&house).await, 200);
}

#[tokio::test]
async fn a_client_that_reads_slowly_but_steadily_gets_everything() {
    let house = house(Limits { stall: Duration::from_secs(2), ..Limits::default() }, of_length(300_000)).await;
    let mut client = deaf(&house, 20_000).await;
    let (code, mut body) = client.ask("/").await.expect("an answer");
    assert_eq!(code, 200);
    let mut length = 0;
    while let Some(data) = soon(body.data()).await {
        let data = data.expect("data");
        length += data.len();
        tokio::time::sleep(Duration::from_millis(20)).await;
        body.flow_control().release_capacity(data.len()).expect("a window");
    }
    assert_eq!(length, 300_000);
}

#[tokio::test]
async fn answers_under_way_are_bounded_in_bytes() {
    let house = house(Limits { answers: 16 << 20, ..Limits::default() }, of_length(1 << 20)).await;
    let mut client = deaf(&house, 0).await;
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(soon(client.ask("/")).await.expect("an answer"));
    }
    let codes: Vec<u16> = answers.iter().map(|(code, _)| *code).collect();
    assert!(codes[..2].iter().all(|code| *code == 200), "{codes:?}");
    assert!(codes[4..].iter().all(|code| *code == 429), "{codes:?}");
    // A small answer of another connection needs nothing of what is used up.
    assert_eq!(polite(&house).await, 200);
    drop((answers, client));
    let mut again = deaf(&house, 65_535).await;
    soon(async { while again.ask("/").await.is_none_or(|(code, _)| code != 200) {} }).await;
}

#[tokio::test]
async fn strangers_with_too_many_open_requests_are_displaced() {
    let house = house(Limits { strangers_requests: 50, ..Limits::default() }, of_length(2)).await;
    let mut attackers = Vec::new();
    let mut answers = Vec::new();
    for _ in 0..4 {
        let mut client = deaf(&house, 0).await;
        for _ in 0..40 {
            let Some(answer) = soon(client.ask("/")).await else { break };
            answers.push(answer);
        }
        attackers.push(client);
        assert_eq!(polite(&house).await, 200);
    }
    soon(attackers.swap_remove(0).ended).await.expect("no panic");
}

#[tokio::test]
async fn half_open_handshakes_do_not_keep_others_out() {
    let house = house(Limits { handshakes: 16, ..Limits::default() }, of_length(2)).await;
    let mut half_open = Vec::new();
    for _ in 0..100 {
        half_open.push(TcpStream::connect(house.address).await.expect("a connection"));
    }
    assert_eq!(polite(&house).await, 200);
    // The oldest were closed.
    assert_eq!(soon(half_open[0].read(&mut [0; 1])).await.unwrap_or(0), 0);
}

fn table(limits: Limits) -> Connections {
    Connections::new(limits, &Account::default())
}

fn from(address: impl Into<IpAddr>) -> SocketAddr {
    SocketAddr::new(address.into(), 4711)
}

#[tokio::test]
async fn an_address_at_its_limit_displaces_its_own_connections_only() {
    let table = table(Limits { connections: 100, reserved: 0, per_address: 10, ..Limits::default() });
    let other = table.admit(from(Ipv4Addr::new(192, 0, 2, 1))).expect("room");
    other.greet();
    for number in 0..50u16 {
        let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, number);
        table.admit(from(address)).expect("room of its own").greet();
    }
    assert_eq!(table.count(), 11);
    assert!(tokio::time::timeout(Duration::ZERO, other.cut()).await.is_err());
    // Loopback is bounded by the total alone.
    for _ in 0..80 {
        table.admit(from(Ipv4Addr::LOCALHOST)).expect("room").greet();
    }
    assert_eq!(table.count(), 91);
}

#[tokio::test]
async fn handshakes_of_one_address_do_not_take_those_of_others() {
    let table = table(Limits { handshakes: 80, ..Limits::default() });
    let other = table.admit(from(Ipv4Addr::new(192, 0, 2, 1))).expect("room");
    for _ in 0..200 {
        table.admit(from(Ipv4Addr::new(192, 0, 2, 2))).expect("room of its own");
    }
    assert_eq!(table.count(), 11);
    assert!(tokio::time::timeout(Duration::ZERO, other.cut()).await.is_err());
    // From many addresses: the oldest go, the newest stay.
    let mut newest = other;
    for number in 0..=255 {
        newest = table.admit(from(Ipv4Addr::new(198, 51, 100, number))).expect("room");
    }
    assert_eq!(table.count(), 80);
    assert!(tokio::time::timeout(Duration::ZERO, newest.cut()).await.is_err());
}

#[tokio::test]
async fn busy_known_clients_are_never_displaced() {
    let table = table(Limits { connections: 4, reserved: 0, per_address: 4, ..Limits::default() });
    let mut requests = Vec::new();
    for number in 1..=4 {
        let link = table.admit(from(Ipv4Addr::new(192, 0, 2, number))).expect("room");
        link.greet();
        link.vouch(&User { name: format!("user-{number}"), ..User::default() });
        requests.push(link.open().expect("a known client"));
    }
    assert!(table.admit(from(Ipv4Addr::new(192, 0, 2, 9))).is_none());
    drop(requests.pop());
    assert!(table.admit(from(Ipv4Addr::new(192, 0, 2, 9))).is_some());
}

#[test]
fn connections_leave_descriptors_to_other_parts() {
    for descriptors in [64, 1_024, 20_000, 1_048_576] {
        let machine = MachineLimits { descriptors, memory: 1 << 30 };
        let limits = Limits::of(machine);
        assert!(limits.connections as u64 <= (descriptors / 3).max(16), "{descriptors}: {limits:?}");
        assert!(limits.reserved < limits.connections && limits.answers <= 96 << 20, "{limits:?}");
    }
}
