use std::net::Ipv4Addr;

use fairlead_testkit::http::{exchange, get};
use tokio::io::AsyncReadExt;

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

#[tokio::test]
async fn one_connection_too_many_is_closed_and_the_next_is_not() {
    let (address, _stop) = server();
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        idle.push(TcpStream::connect(address).await.expect("a connection"));
    }
    // Taken in their order: this one finds no room.
    let mut late = TcpStream::connect(address).await.expect("a connection");
    assert!(matches!(late.read(&mut [0; 8]).await, Ok(0) | Err(_)), "closed at once");
    drop(idle);
    while get(address, "/").await.0 != 200 {
        tokio::task::yield_now().await;
    }
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
    let Ok(six) = listen("[::]:0".parse().expect("an address")) else { return };
    let port = six.local_addr().expect("its address").port();
    listen((Ipv4Addr::UNSPECIFIED, port).into()).expect("the same port in the other family");
}
