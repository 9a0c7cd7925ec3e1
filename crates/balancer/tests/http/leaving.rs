//! Backends that leave: what they have goes on for the time to drain, and no longer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_balancer::spec::Speaks;
use futures_util::{SinkExt, StreamExt};
use http::Response;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::lab::{Client, Server, Wish, in_lab, read_head, status, until};
use crate::streams::{ask, block_on, connect, eventually, get};
use crate::tunnels::web_socket;
use crate::web_sockets::{backend_of_http_2, open, open_by_upgrade, ready};

const DRAIN: Duration = Duration::from_millis(600);
/// Times are counted in milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);

/// How long a WebSocket on which there is always something goes on after its backends have left.
async fn outlives<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>, wish: &Wish) -> Duration {
    socket.send(Message::text("here")).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().is_text());
    let begun = Instant::now();
    wish.set(&[]);
    let talk = async {
        while socket.send(Message::text("still here")).await.is_ok() && matches!(socket.next().await, Some(Ok(_))) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), talk).await.unwrap();
    begun.elapsed()
}

/// Between which versions: what backends speak, and whether the client speaks HTTP/2.
const BETWEEN: [(Speaks, bool); 4] =
    [(Speaks::Http, false), (Speaks::Http, true), (Speaks::H2c, false), (Speaks::H2c, true)];

#[test]
fn a_web_socket_ends_when_its_backend_has_been_gone_for_the_time_to_drain() {
    in_lab("a_web_socket_ends_when_its_backend_has_been_gone_for_the_time_to_drain", || {
        let (server, server2) = (Server::start(web_socket), backend_of_http_2(true));
        for (index, (speaks, in_stream)) in BETWEEN.into_iter().enumerate() {
            let at = if speaks == Speaks::H2c { server2 } else { server.at };
            let wish = Wish { speaks, drain: Some(DRAIN), ..Wish::to(&[at]) }.beside(index);
            let engine = wish.start();
            let lived = block_on(async {
                match in_stream {
                    true => outlives(open(&ready(wish.at()).await).await, &wish).await,
                    false => outlives(open_by_upgrade(wish.at()).await.unwrap(), &wish).await,
                }
            });
            assert!(lived + ROUNDING >= DRAIN, "{speaks:?} {in_stream} {lived:?}");
            assert_eq!(engine.look()[0].totals.ended, 1, "{speaks:?} {in_stream}");
        }
    });
}

/// What backends were asked, and whether they may answer.
#[derive(Default)]
struct Talk {
    asked: AtomicUsize,
    released: AtomicBool,
}

impl Talk {
    fn asked(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
    }

    fn released(&self) -> bool {
        self.released.load(Ordering::SeqCst)
    }
}

/// Begins an answer to `/endless` and ends none; to `/soon` it answers when it is told to; to others never.
fn backend(talk: Arc<Talk>) -> Server {
    Server::start(move |mut stream| {
        let Some(head) = read_head(&mut stream, &mut Vec::new()) else { return };
        talk.asked();
        let answer = match head.split(' ').nth(1) {
            Some("/endless") => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
            Some("/soon") => {
                until("it is told to answer", || talk.released());
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
            }
            _ => "",
        };
        let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
        // Until we hang up.
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    })
}

/// The same in HTTP/2.
fn backend2(talk: Arc<Talk>) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    let serve = async move {
        let listener = TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let talk = talk.clone();
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let talk = talk.clone();
                    tokio::spawn(async move {
                        talk.asked();
                        let path = request.uri().path();
                        if path == "/soon" {
                            eventually(|| talk.released()).await;
                        }
                        // Until we take it back.
                        if path == "/silent" {
                            let _ = std::future::poll_fn(|task| respond.poll_reset(task)).await;
                            return;
                        }
                        let mut to = respond.send_response(Response::new(()), false).unwrap();
                        to.send_data(Bytes::from("hi"), path == "/soon").unwrap();
                        let _ = std::future::poll_fn(|task| to.poll_reset(task)).await;
                    });
                }
            });
        }
    };
    thread::spawn(|| block_on(serve));
    at
}

/// The status of a whole answer; `None`: it was broken off.
fn asked(at: SocketAddr, path: &str, in_stream: bool) -> Option<u16> {
    match in_stream {
        true => block_on(async { ask(&connect(at).await, get(path), None).await.ok().map(|heard| heard.status) }),
        false => Client::to(at).get(path).map(|(head, _)| status(&head)),
    }
}

#[test]
fn an_exchange_has_the_time_to_drain_when_its_backend_leaves() {
    in_lab("an_exchange_has_the_time_to_drain_when_its_backend_leaves", || {
        let (long, mut index) = (Duration::from_secs(60), 0);
        for (speaks, in_stream) in BETWEEN {
            for (path, drain, expected) in
                [("/soon", long, Some(200)), ("/silent", DRAIN, Some(504)), ("/endless", DRAIN, None)]
            {
                let talk = Arc::<Talk>::default();
                let (server, server2) = (backend(talk.clone()), backend2(talk.clone()));
                let at = if speaks == Speaks::H2c { server2 } else { server.at };
                let wish = Wish { speaks, drain: Some(drain), ..Wish::to(&[at]) }.beside(index);
                index += 1;
                let engine = wish.start();
                let to = wish.at();
                let answer = thread::spawn(move || asked(to, path, in_stream));
                until("it is asked", || talk.asked.load(Ordering::SeqCst) == 1);
                let begun = Instant::now();
                wish.set(&[]);
                talk.released.store(true, Ordering::SeqCst);
                let told = format!("{path} {speaks:?} {in_stream}");
                assert_eq!(answer.join().unwrap(), expected, "{told}");
                assert!(expected == Some(200) || begun.elapsed() + ROUNDING >= DRAIN, "{told} {:?}", begun.elapsed());
                assert_eq!(engine.look()[0].totals.ended, u64::from(path != "/soon"), "{told}");
            }
        }
    });
}

#[test]
fn a_web_socket_goes_on_with_a_backend_that_comes_back() {
    in_lab("a_web_socket_goes_on_with_a_backend_that_comes_back", || {
        let (server, other) = (Server::start(web_socket), Server::start(web_socket));
        let wish = Wish { drain: Some(DRAIN), ..Wish::to(&[server.at, other.at]) };
        let _engine = wish.start();
        block_on(async {
            let mut stays = open_by_upgrade(wish.at()).await.unwrap();
            let leaves = open_by_upgrade(wish.at()).await.unwrap();
            wish.set(&[other.at]);
            wish.set(&[server.at, other.at]);
            // The other one goes, and by then the time of the first would be over.
            wish.set(&[server.at]);
            let mut ended = leaves;
            let ended = tokio::time::timeout(Duration::from_secs(20), ended.next()).await.unwrap();
            assert!(!matches!(ended, Some(Ok(_))), "{ended:?}");
            stays.send(Message::text("still here")).await.unwrap();
            assert!(stays.next().await.unwrap().unwrap().is_text());
        });
    });
}
