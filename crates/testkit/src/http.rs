//! A question to a small HTTP server, such as one for metrics.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a server answers to `GET path`: status, headers in lower case, and body.
pub async fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    let text = exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    (status, head.to_lowercase(), body.to_owned())
}

/// What a server answers to a text.
///
/// # Panics
/// If nobody listens there.
pub async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).await;
    text
}
