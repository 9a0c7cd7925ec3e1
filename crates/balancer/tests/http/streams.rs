//! HTTP/2: streams of clients, streams to backends, and both.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use fairlead_balancer::spec::Speaks;
use http::{HeaderMap, Request, Response};
use tokio::net::{TcpListener, TcpStream};

pub(crate) use crate::client2::{Heard, ask, block_on, connect, get, post};
use crate::lab::{Client, Server, Wish, in_lab, status};

/// A backend that speaks HTTP/2 and answers as gRPC servers do: its name and what it got, then trailers.
pub(crate) struct Grpc {
    pub(crate) at: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Grpc {
    pub(crate) fn start(name: &'static str) -> Grpc {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (connections.clone(), requests.clone());
        thread::spawn(move || {
            block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, name, counts.clone()));
                }
            });
        });
        Grpc { at, connections, requests }
    }
}

async fn serve(stream: TcpStream, name: &'static str, counts: (Arc<AtomicUsize>, Arc<AtomicUsize>)) {
    let (connections, requests) = counts;
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    connections.fetch_add(1, Ordering::SeqCst);
    while let Some(Ok((request, respond))) = connection.accept().await {
        requests.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(answer(name, request, respond));
    }
}

async fn answer(name: &str, request: Request<h2::RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    let (parts, mut body) = request.into_parts();
    let client = parts.headers.get("x-forwarded-for").map_or("nobody", |value| value.to_str().unwrap()).to_owned();
    let head = Response::builder().header("content-type", "application/grpc").header("x-client", client);
    let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
    stream.send_data(Bytes::from(format!("{name}:")), false).unwrap();
    while let Some(Ok(data)) = body.data().await {
        body.flow_control().release_capacity(data.len()).unwrap();
        if stream.send_data(data, false).is_err() {
            return;
        }
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
}

pub(crate) async fn eventually(is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), so).await.unwrap();
}

#[test]
fn streams_of_one_client_go_to_backends_of_http_1_in_turn() {
    in_lab("streams_of_one_client_go_to_backends_of_http_1_in_turn", || {
        let servers = [Server::named("one"), Server::named("two")];
        let wish = Wish::to(&servers.each_ref().map(|server| server.at));
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            let asked = (0..20).map(|_| ask(&send, get("/a?b"), None));
            let heard = futures_util::future::join_all(asked).await;
            let names: Vec<Vec<u8>> = heard.into_iter().map(|heard| heard.unwrap().body).collect();
            assert_eq!(names.iter().filter(|name| *name == b"one").count(), 10);
        });
        let head = &servers[0].heads()[0];
        assert_eq!(
            head,
            "GET /a?b HTTP/1.1\r\nHost: web.example\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n\
             X-Forwarded-Port: 7000\r\nForwarded: for=127.0.0.1;proto=http\r\n\r\n"
        );
    });
}

#[test]
fn bodies_and_trailers_pass_between_the_versions() {
    in_lab("bodies_and_trailers_pass_between_the_versions", || {
        let server = Server::talking(|head, body| {
            let mut answer = match head.contains("chunked-please") {
                false => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes(),
                true => {
                    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len()).into_bytes()
                }
            };
            answer.extend_from_slice(body);
            if head.contains("chunked-please") {
                answer.extend_from_slice(b"\r\n0\r\nX-Sum: 1\r\n\r\n");
            }
            Some(answer)
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            for length in [1, 1000, 40_000, 3 << 20] {
                let body: Vec<u8> = (0..length).map(|index| (index / 11) as u8).collect();
                for path in ["/", "/chunked-please"] {
                    let heard = ask(&send, post(path), Some(body.clone())).await.unwrap();
                    assert_eq!(heard.status, 200);
                    assert!(heard.body == body, "{path} {length}");
                    let sum = heard.trailers.and_then(|trailers| trailers.get("x-sum").cloned());
                    assert_eq!(sum.is_some(), path == "/chunked-please");
                }
            }
        });
        assert!(server.heads()[0].contains("\r\nTransfer-Encoding: chunked\r\n"));
    });
}

#[test]
fn requests_of_grpc_are_spread_although_connections_last() {
    in_lab("requests_of_grpc_are_spread_although_connections_last", || {
        let servers = [Grpc::start("a"), Grpc::start("b"), Grpc::start("c")];
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&servers.each_ref().map(|server| server.at)) };
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            for _ in 0..30 {
                let heard = ask(&send, post("/pkg.Service/Call"), Some(b"hello".to_vec())).await.unwrap();
                assert_eq!(heard.headers["content-type"], "application/grpc");
                assert_eq!(heard.headers["x-client"], "127.0.0.1");
                assert!(heard.body.ends_with(b":hello"));
                assert_eq!(heard.trailers.unwrap()["grpc-status"], "0");
            }
            let large = vec![7; 3 << 20];
            let heard = ask(&send, post("/pkg.Service/Call"), Some(large.clone())).await.unwrap();
            assert!(heard.body[2..] == large[..]);
        });
        let spread: Vec<usize> = servers.iter().map(|server| server.requests.load(Ordering::SeqCst)).collect();
        assert!(spread.iter().all(|count| (10..=11).contains(count)), "{spread:?}");
        assert!(servers.iter().all(|server| server.connections.load(Ordering::SeqCst) == 1));
    });
}

#[test]
fn a_client_of_http_1_reaches_a_backend_of_http_2() {
    in_lab("a_client_of_http_1_reaches_a_backend_of_http_2", || {
        let server = Grpc::start("a");
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        for length in [0, 5, 50_000, 1 << 20] {
            let body = "x".repeat(length);
            client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"));
            let (head, heard) = client.hear().unwrap();
            assert_eq!(status(&head), 200);
            assert!(head.contains("Transfer-Encoding: chunked"), "{head}");
            assert!(heard == format!("a:{body}"), "{length}");
        }
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        );
        let all = client.rest();
        assert!(all.ends_with("0\r\ngrpc-status: 0\r\n\r\n"), "{all}");
    });
}

#[test]
fn a_backend_that_went_away_is_replaced_by_another() {
    in_lab("a_backend_that_went_away_is_replaced_by_another", || {
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = Grpc::start("a");
        let wish = Wish { speaks: Speaks::H2c, ..Wish::to(&[nobody, server.at]) };
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            for _ in 0..4 {
                assert_eq!(ask(&send, post("/"), Some(b"x".to_vec())).await.unwrap().body, b"a:x");
            }
            wish.set(&[nobody]);
            assert_eq!(ask(&send, get("/"), None).await.unwrap().status, 502);
            wish.set(&[]);
            assert_eq!(ask(&send, get("/"), None).await.unwrap().status, 503);
        });
    });
}

#[test]
fn what_http_1_could_misread_does_not_get_through() {
    in_lab("what_http_1_could_misread_does_not_get_through", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let request =
            |name: &str, value: &str| Request::post("http://web.example/").header(name, value).body(()).unwrap();
        let cases = [
            (request("host", "other.example"), 400),
            (request("content-length", "+1"), 400),
            (Request::get("http://web.example:99999999/").body(()).unwrap_or_else(|_| request("host", "x")), 400),
        ];
        block_on(async {
            for (request, expected) in cases {
                let send = connect(wish.at()).await;
                let heard = ask(&send, request, Some(b"x".to_vec())).await;
                // What breaks the protocol itself has its stream or connection reset.
                assert!(heard.map_or(true, |heard| heard.status == expected));
            }
            for (name, value) in [("transfer-encoding", "chunked"), ("connection", "close"), ("upgrade", "h2c")] {
                let send = connect(wish.at()).await;
                let heard = ask(&send, request(name, value), Some(b"x".to_vec())).await;
                assert!(heard.map_or(true, |heard| heard.status == 400), "{name}");
            }
        });
        assert_eq!(server.heads(), Vec::<String>::new());
    });
}

#[test]
fn a_client_that_takes_back_what_it_asks_for_is_sent_away() {
    in_lab("a_client_that_takes_back_what_it_asks_for_is_sent_away", || {
        let server = Server::start(|_stream| thread::sleep(Duration::from_secs(2)));
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            let mut cut = None;
            for count in 0..20_000 {
                let Ok(mut ready) = send.clone().ready().await else {
                    cut = Some(count);
                    break;
                };
                let Ok((response, mut stream)) = ready.send_request(get("/"), false) else {
                    cut = Some(count);
                    break;
                };
                stream.send_reset(h2::Reason::CANCEL);
                drop(response);
                tokio::task::yield_now().await;
            }
            // How far it gets before it hears so is up to it.
            cut.expect("the client is sent away");
        });
        let good = Server::named("good");
        wish.set(&[good.at]);
        assert_eq!(Client::to(wish.at()).get("/").unwrap().1, "good");
    });
}

#[test]
fn a_backend_hears_when_its_client_is_gone() {
    in_lab("a_backend_hears_when_its_client_is_gone", || {
        use std::io::Read;
        let ended = Arc::new(AtomicUsize::new(0));
        let seen = ended.clone();
        let server = Server::start(move |mut stream| {
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all);
            seen.fetch_add(1, Ordering::SeqCst);
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        block_on(async {
            let send = connect(wish.at()).await;
            let mut ready = send.ready().await.unwrap();
            let (response, mut stream) = ready.send_request(get("/"), false).unwrap();
            eventually(|| server.count() == 1).await;
            stream.send_reset(h2::Reason::CANCEL);
            drop(response);
            eventually(|| ended.load(Ordering::SeqCst) == 1).await;
        });
    });
}
