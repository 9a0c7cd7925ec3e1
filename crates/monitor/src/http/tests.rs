use std::net::Ipv4Addr;

use fairlead_testkit::http::{exchange, get};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// A server on a free port of loopback, until the token is cancelled.
fn server() -> (SocketAddr, CancellationToken) {
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let (address, stop) = (listener.local_addr().expect("its address"), CancellationToken::new());
    tokio::spawn(serve(listener, stop.clone(), |question: Question| async move {
        answer(StatusCode::OK, "text/plain", question.path)
    }));
    (address, stop)
}

#[tokio::test]
async fn an_answer_has_its_status_type_and_length() {
    let (address, _stop) = server();
    let (status, head, body) = get(address, "/x?y=1").await;
    assert_eq!((status, body.as_str()), (200, "/x"));
    assert!(
        head.contains("content-type: text/plain\r\n") && head.contains("x-content-type-options: nosniff"),
        "{head}"
    );
    assert!(head.contains("content-length: 2"), "{head}");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let (address, _stop) = server();
    let large = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(3 * HEAD_SIZE));
    assert!(exchange(address, &large).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn garbage_is_answered_and_hurts_nobody() {
    let (address, _stop) = server();
    assert!(exchange(address, "\0\u{1}nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert_eq!(get(address, "/").await.0, 200);
}

/// Connects from an address of loopback.
async fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind((from, 0).into()).expect("a port");
    socket.connect(to).await.expect("a connection")
}

async fn is_answered(stream: &mut TcpStream) -> bool {
    let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut begin = [0; 12];
    asked.is_ok() && stream.read_exact(&mut begin).await.is_ok() && &begin == b"HTTP/1.1 200"
}

#[tokio::test]
async fn a_client_with_many_connections_does_not_keep_others_out() {
    let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(serve(listener, CancellationToken::new(), |_: Question| async {
        answer(StatusCode::OK, "text/plain", "ok")
    }));
    // All connections of this test come from addresses that no other test uses.
    let mut held = Vec::new();
    for _ in 0..600 {
        held.push(connect_from(Ipv4Addr::new(127, 0, 9, 1), address).await);
    }
    for _ in 0..20 {
        assert!(is_answered(&mut connect_from(Ipv4Addr::new(127, 0, 9, 2), address).await).await);
    }
    // The client itself is answered on its latest connection.
    assert!(is_answered(held.last_mut().expect("connections")).await);
    assert!(!is_answered(&mut held[0]).await, "the idlest was closed");
}

#[tokio::test]
async fn many_ports_do_not_multiply_the_places_of_a_client() {
    let mut addresses = Vec::new();
    for _ in 0..20 {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        addresses.push(listener.local_addr().expect("its address"));
        tokio::spawn(serve(listener, CancellationToken::new(), |_: Question| async {
            answer(StatusCode::OK, "text/plain", "ok")
        }));
    }
    let from = Ipv4Addr::new(127, 0, 9, 3);
    let mut held = Vec::new();
    for number in 0..400 {
        held.push(connect_from(from, addresses[number % addresses.len()]).await);
    }
    // The last connection is answered, so all before it were accepted.
    assert!(is_answered(held.last_mut().expect("connections")).await);
    let table = PROCESS.get().expect("a server has begun");
    let mut open = 0;
    for mut stream in held {
        open += u64::from(is_answered(&mut stream).await);
    }
    assert!(open <= table.limits().per_sender, "{open} connections are open");
}

#[tokio::test]
async fn a_body_without_end_is_not_read() {
    let (address, _stop) = server();
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n").await.expect("a head");
    let body = vec![0; 1 << 16];
    let sent = async {
        let mut sent = 0;
        while stream.write_all(&body).await.is_ok() {
            sent += body.len();
        }
        sent
    };
    let sent = tokio::time::timeout(Duration::from_secs(20), sent).await.expect("the connection is closed");
    assert!(sent < 64 << 20, "{sent} bytes were read");
}

#[tokio::test]
async fn an_answer_that_is_not_read_ends_its_connection() {
    let (near, far) = tokio::io::duplex(64);
    let mut stream = WriteDeadline::new(near, Duration::from_millis(20));
    let error = stream.write_all(&[0; 1000]).await.expect_err("nobody reads");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(far);
}

#[tokio::test]
async fn a_stopped_server_is_gone_with_its_connections() {
    let (address, stop) = server();
    let mut open = TcpStream::connect(address).await.expect("a connection");
    assert_eq!(get(address, "/").await.0, 200);
    stop.cancel();
    assert!(matches!(open.read(&mut [0; 8]).await, Ok(0) | Err(_)));
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // The port is free at once, although connections have just ended.
    listen(address).expect("the same port again");
}

#[tokio::test]
async fn each_family_has_a_listener_of_its_own() {
    // Another process may have the port in the other family, but not twenty times.
    let mut refused = None;
    for _ in 0..20 {
        let Ok(six) = listen("[::]:0".parse().expect("an address")) else { return };
        let port = six.local_addr().expect("its address").port();
        match listen((Ipv4Addr::UNSPECIFIED, port).into()) {
            Ok(_) => return,
            Err(error) => refused = Some(error),
        }
    }
    panic!("the same port in the other family: {refused:?}");
}
