//! WebSockets where a side speaks HTTP/2, in streams (RFC 8441).

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use fairlead_balancer::spec::Speaks;
use futures_util::{SinkExt, StreamExt};
use h2::client::SendRequest;
use h2::ext::Protocol;
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::lab::{Server, Wish, in_lab};
use crate::streams::{ask, block_on, connect, eventually};
use crate::tunnels::web_socket;

/// A request for a protocol instead of an answer.
fn wanted(protocol: &'static str) -> Request<()> {
    let request = Request::connect("http://web.example/chat").header("sec-websocket-version", "13");
    request.extension(Protocol::from_static(protocol)).body(()).unwrap()
}

/// The two halves of a stream as one connection.
fn joined(mut from: RecvStream, mut to: SendStream<Bytes>) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (mut reader, mut writer) = tokio::io::split(theirs);
    tokio::spawn(async move {
        while let Some(Ok(data)) = from.data().await {
            let _ = from.flow_control().release_capacity(data.len());
            if writer.write_all(&data).await.is_err() {
                return;
            }
        }
        let _ = writer.shutdown().await;
    });
    tokio::spawn(async move {
        let mut piece = vec![0; 16 << 10];
        while let Ok(count @ 1..) = reader.read(&mut piece).await {
            if to.send_data(Bytes::copy_from_slice(&piece[..count]), false).is_err() {
                return;
            }
        }
        let _ = to.send_data(Bytes::new(), true);
    });
    ours
}

/// A client that was told that it may have what it asks for.
pub(crate) async fn ready(at: SocketAddr) -> SendRequest<Bytes> {
    let send = connect(at).await;
    eventually(|| send.is_extended_connect_protocol_enabled()).await;
    send
}

pub(crate) async fn open(send: &SendRequest<Bytes>) -> WebSocketStream<DuplexStream> {
    let (response, to) = send.clone().ready().await.unwrap().send_request(wanted("websocket"), false).unwrap();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 200);
    for name in ["sec-websocket-accept", "upgrade", "connection", "content-length"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    WebSocketStream::from_raw_socket(joined(response.into_body(), to), Role::Client, None).await
}

async fn echo<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>) {
    while let Some(Ok(message)) = socket.next().await {
        if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
            return;
        }
    }
}

/// A backend that speaks HTTP/2 and sends back what it gets in WebSockets, if it offers them.
pub(crate) fn backend_of_http_2(offers: bool) -> SocketAddr {
    backend(offers, First::Served).0
}

/// What becomes of the first stream of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Served,
    /// That too, but no other one is.
    Last,
    /// Nothing; others are served.
    Refused,
}

/// The same, and how many connections it has had a stream on.
fn backend(offers: bool, first: First) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let (at, connections) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = connections.clone();
    let serve = async move {
        let listener = TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, offers, first, counted.clone()));
        }
    };
    thread::spawn(move || block_on(serve));
    (at, connections)
}

async fn serve(stream: TcpStream, offers: bool, first: First, connections: Arc<AtomicUsize>) {
    let mut builder = h2::server::Builder::new();
    if offers {
        builder.enable_connect_protocol();
    }
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    let mut streams = 0;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        streams += 1;
        if streams == 1 {
            connections.fetch_add(1, Ordering::SeqCst);
            match first {
                First::Served => {}
                // What follows on it is said after that.
                First::Last => connection.graceful_shutdown(),
                First::Refused => {
                    respond.send_reset(h2::Reason::REFUSED_STREAM);
                    continue;
                }
            }
        }
        let protocol = request.extensions().get::<Protocol>().map(|one| one.as_str().to_owned());
        assert_eq!(protocol.as_deref(), Some("websocket"));
        assert_eq!(
            (request.uri().path(), &request.headers()["x-forwarded-for"]),
            ("/chat", &"127.0.0.1".parse().unwrap())
        );
        let to = respond.send_response(Response::new(()), false).unwrap();
        let stream = joined(request.into_body(), to);
        tokio::spawn(async { echo(WebSocketStream::from_raw_socket(stream, Role::Server, None).await).await });
    }
}

/// Several at once on one connection, with messages small and large, and ended in order.
fn check(wish: &Wish) {
    block_on(async {
        let send = ready(wish.at()).await;
        let talks = (0..3).map(|_| async { talk(open(&send).await).await });
        let all = futures_util::future::join_all(talks);
        tokio::time::timeout(Duration::from_secs(30), all).await.unwrap();
    });
}

/// Messages small and large, and an end in order.
async fn talk<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>) {
    for length in [1, 100, 100_000, 1 << 20] {
        socket.send(Message::binary(vec![7; length])).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap().into_data(), vec![7; length]);
    }
    socket.close(None).await.unwrap();
    assert!(matches!(socket.next().await, Some(Ok(Message::Close(_))) | None));
}

/// One on which nothing is said ends; meanwhile, and afterwards, another goes on.
async fn goes_on_until_ended<S: AsyncRead + AsyncWrite + Unpin>(
    mut talking: WebSocketStream<S>,
    mut silent: WebSocketStream<S>,
) {
    let ends = async {
        let mut ended = pin!(silent.next());
        loop {
            talking.send(Message::text("still here")).await.unwrap();
            assert!(talking.next().await.unwrap().unwrap().is_text());
            if let Ok(ended) = tokio::time::timeout(Duration::from_millis(100), &mut ended).await {
                break ended;
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ends).await.unwrap();
    assert!(!matches!(ended, Some(Ok(_))), "{ended:?}");
    talking.send(Message::text("still here")).await.unwrap();
    assert!(talking.next().await.unwrap().unwrap().is_text());
}

/// A client of HTTP/1 asks for a WebSocket.
pub(crate) async fn open_by_upgrade(at: SocketAddr) -> Result<WebSocketStream<TcpStream>, Error> {
    let stream = TcpStream::connect(at).await.unwrap();
    tokio_tungstenite::client_async("ws://web.example/chat", stream).await.map(|(socket, _)| socket)
}

#[test]
fn a_web_socket_in_a_stream_reaches_a_backend_of_http_1() {
    in_lab("a_web_socket_in_a_stream_reaches_a_backend_of_http_1", || {
        let server = Server::start(web_socket);
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        check(&wish);
        assert_eq!(server.count(), 3);
    });
}

#[test]
fn a_web_socket_in_a_stream_reaches_a_backend_of_http_2_that_offers_it() {
    in_lab("a_web_socket_in_a_stream_reaches_a_backend_of_http_2_that_offers_it", || {
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&[backend_of_http_2(true)]) };
        let _engine = wish.start();
        check(&wish);
        wish.set(&[backend_of_http_2(false)]);
        block_on(async {
            let heard = ask(&ready(wish.at()).await, wanted("websocket"), None).await.unwrap();
            assert_eq!(heard.status, 501);
        });
    });
}

#[test]
fn a_web_socket_of_http_1_reaches_a_backend_of_http_2_that_offers_it() {
    in_lab("a_web_socket_of_http_1_reaches_a_backend_of_http_2_that_offers_it", || {
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&[backend_of_http_2(true)]) };
        let _engine = wish.start();
        block_on(async {
            let talks = (0..3).map(|_| async { talk(open_by_upgrade(wish.at()).await.unwrap()).await });
            let all = futures_util::future::join_all(talks);
            tokio::time::timeout(Duration::from_secs(30), all).await.unwrap();
        });
        wish.set(&[backend_of_http_2(false)]);
        let refused = block_on(open_by_upgrade(wish.at())).err();
        assert!(matches!(&refused, Some(Error::Http(answer)) if answer.status() == 501), "{refused:?}");
    });
}

#[test]
fn a_silent_web_socket_of_http_1_ends_and_others_go_on() {
    in_lab("a_silent_web_socket_of_http_1_ends_and_others_go_on", || {
        let wish = Wish { speaks: Speaks::H2c, idle: Duration::from_secs(2), ..Wish::to(&[backend_of_http_2(true)]) };
        let _engine = wish.start();
        block_on(async {
            let silent = open_by_upgrade(wish.at()).await.unwrap();
            let talking = open_by_upgrade(wish.at()).await.unwrap();
            goes_on_until_ended(talking, silent).await;
        });
    });
}

#[test]
fn what_is_no_web_socket_is_answered_as_it_is() {
    in_lab("what_is_no_web_socket_is_answered_as_it_is", || {
        let cases = [
            ("websocket", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", 404),
            ("websocket", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200),
            // Somebody who says yes to everything.
            ("websocket", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", 502),
            ("connect-udp", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 501),
        ];
        for (index, (protocol, answer, expected)) in cases.into_iter().enumerate() {
            let server = Server::answering(answer);
            let wish = Wish::to(&[server.at]).beside(index);
            let _engine = wish.start();
            let heard = block_on(async { ask(&ready(wish.at()).await, wanted(protocol), None).await.unwrap() });
            assert_eq!(heard.status, expected, "{answer}");
            assert_eq!(server.heads().len(), usize::from(protocol == "websocket"));
        }
    });
}

#[test]
fn a_silent_web_socket_in_a_stream_ends_and_others_go_on() {
    in_lab("a_silent_web_socket_in_a_stream_ends_and_others_go_on", || {
        let server = Server::start(web_socket);
        let wish = Wish { idle: Duration::from_secs(2), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        block_on(async {
            let send = ready(wish.at()).await;
            let (silent, talking) = (open(&send).await, open(&send).await);
            goes_on_until_ended(talking, silent).await;
        });
    });
}

#[test]
fn a_backend_hears_when_a_web_socket_is_cut() {
    in_lab("a_backend_hears_when_a_web_socket_is_cut", || {
        let ended = Arc::new(AtomicUsize::new(0));
        let seen = ended.clone();
        let server = Server::start(move |stream| {
            web_socket(stream);
            seen.fetch_add(1, Ordering::SeqCst);
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        block_on(async {
            let send = ready(wish.at()).await;
            let (response, mut to) =
                send.clone().ready().await.unwrap().send_request(wanted("websocket"), false).unwrap();
            let response = response.await.unwrap();
            assert_eq!(ended.load(Ordering::SeqCst), 0);
            to.send_reset(h2::Reason::CANCEL);
            eventually(|| ended.load(Ordering::SeqCst) == 1).await;
            drop(response);
        });
    });
}

/// Opens a WebSocket in a stream of a connection, or by an upgrade of another one, and talks.
async fn talk_anew(in_stream: bool, send: &SendRequest<Bytes>, at: SocketAddr) {
    match in_stream {
        true => talk(open(send).await).await,
        false => talk(open_by_upgrade(at).await.unwrap()).await,
    }
}

#[test]
fn a_web_socket_that_a_connection_does_not_take_is_asked_for_again() {
    in_lab("a_web_socket_that_a_connection_does_not_take_is_asked_for_again", || {
        let cases = [(First::Last, true), (First::Last, false), (First::Refused, true), (First::Refused, false)];
        for (index, (case, in_stream)) in cases.into_iter().enumerate() {
            let (at, connections) = backend(true, case);
            let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&[at]) }.beside(index);
            let _engine = wish.start();
            block_on(async {
                let send = ready(wish.at()).await;
                if case == First::Refused {
                    talk_anew(in_stream, &send, wish.at()).await;
                    assert_eq!(connections.load(Ordering::SeqCst), 1, "the same connection serves the next stream");
                    return;
                }
                let mut first = open(&send).await;
                first.send(Message::text("here")).await.unwrap();
                assert!(first.next().await.unwrap().unwrap().is_text());
                // By now it is known that the connection takes no more.
                talk_anew(in_stream, &send, wish.at()).await;
                assert_eq!(connections.load(Ordering::SeqCst), 2);
                first.send(Message::text("still here")).await.unwrap();
                assert!(first.next().await.unwrap().unwrap().is_text());
            });
        }
    });
}
