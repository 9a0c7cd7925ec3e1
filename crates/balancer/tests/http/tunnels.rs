//! Connections that become something else: WebSocket, CONNECT.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use crate::lab::{Client, Server, Wish, in_lab, status};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A server of WebSockets that sends back what it gets.
pub(crate) fn web_socket(stream: TcpStream) {
    block_on(async {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        while let Some(Ok(message)) = socket.next().await {
            if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
                return;
            }
        }
    });
}

#[test]
fn a_web_socket_passes() {
    in_lab("a_web_socket_passes", || {
        let server = Server::start(web_socket);
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        block_on(async {
            let stream = tokio::net::TcpStream::connect(wish.at()).await.unwrap();
            let (mut socket, _) = tokio_tungstenite::client_async("ws://web.example/chat", stream).await.unwrap();
            for length in [1, 100, 100_000, 1 << 20] {
                socket.send(Message::binary(vec![7; length])).await.unwrap();
                assert_eq!(socket.next().await.unwrap().unwrap().into_data().len(), length);
            }
            socket.close(None).await.unwrap();
        });
    });
}

#[test]
fn a_refused_upgrade_is_an_ordinary_answer() {
    in_lab("a_refused_upgrade_is_an_ordinary_answer", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        assert_eq!(client.hear().unwrap().1, "one");
        assert_eq!(client.get("/").unwrap().1, "one");
        assert!(server.heads()[0].ends_with("Connection: upgrade\r\nUpgrade: websocket\r\n\r\n"));
    });
}

#[test]
fn connect_makes_a_tunnel_through_the_backend() {
    in_lab("connect_makes_a_tunnel_through_the_backend", || {
        let server = Server::start(|mut stream| {
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap();
            assert!(head[..count].starts_with(b"CONNECT far.example:443 HTTP/1.1\r\n"));
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\nhello ").unwrap();
            let mut reader = stream.try_clone().unwrap();
            let _ = std::io::copy(&mut reader, &mut stream);
        });
        let wish = Wish { connect: true, ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n\r\n");
        assert_eq!(status(&client.hear_head().unwrap()), 200);
        client.send("world");
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.rest(), "hello world");
    });
}

#[test]
fn connect_is_refused_where_it_is_not_asked_for() {
    in_lab("connect_is_refused_where_it_is_not_asked_for", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        for request in [
            "CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\n\r\n",
            "CONNECT far.example:443 HTTP/1.0\r\n\r\n",
            "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: web.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
            "CONNECT / HTTP/1.1\r\nHost: web.example\r\n\r\n",
            "CONNECT http://web.example/ HTTP/1.1\r\nHost: web.example\r\nContent-Length: 3\r\n\r\nabc",
        ] {
            let mut client = Client::to(wish.at());
            client.send(request);
            let answer = client.rest();
            assert!(answer.starts_with("HTTP/1.1 405 "), "{request:?}: {answer}");
            assert!(answer.contains("\r\nAllow: ") && answer.contains("\r\nConnection: close\r\n"), "{answer}");
        }
        assert_eq!(Client::to(wish.at()).get("/").unwrap().1, "one");
        assert_eq!(server.heads().len(), 1);
    });
}

#[test]
fn a_silent_tunnel_ends() {
    in_lab("a_silent_tunnel_ends", || {
        let server = Server::start(web_socket);
        let wish = Wish { idle: Duration::from_millis(300), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        block_on(async {
            let stream = tokio::net::TcpStream::connect(wish.at()).await.unwrap();
            let (mut socket, _) = tokio_tungstenite::client_async("ws://web.example/chat", stream).await.unwrap();
            assert!(!matches!(socket.next().await, Some(Ok(_))));
        });
    });
}
