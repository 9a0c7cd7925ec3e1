//! Logs of containers over a WebSocket.

use std::convert::Infallible;

use bytes::Bytes;
use fairlead_server::{Admission, Authorization, NodeDialer};
use futures_util::StreamExt;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tower::Service;

use crate::world::{TestServer, admin};

const LOG: &str = "/api/v1/namespaces/default/pods/p/log?container=c";

/// A server with a Pod `p` on a Node whose agent answers two pieces for every log.
async fn server() -> TestServer {
    let server = TestServer::new(Admission::default(), Authorization::Rbac).await;
    server.make("/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "nodeName": "n"});
    server.make("/api/v1/namespaces/default/pods", json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let dialer = NodeDialer::local();
    dialer.add("n", || {
        let (near, far) = tokio::io::duplex(4096);
        let answer = service_fn(|_: Request<Incoming>| async {
            let pieces =
                [&b"one\n"[..], b"\xff\xfe two\n"].map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
            Ok::<_, Infallible>(Response::new(StreamBody::new(futures_util::stream::iter(pieces))))
        });
        let agent = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), answer);
        tokio::spawn(async move { drop(agent.await) });
        near
    });
    server.server.reach_nodes_by(dialer);
    server
}

/// Sends a request over HTTP/1.1, and returns the answer and a connection that may become a stream.
async fn send(server: &TestServer, path: &str, protocol: Option<&str>) -> Response<Incoming> {
    let (near, far) = tokio::io::duplex(4096);
    let local = server.server.local(admin());
    let answer = service_fn(move |request: Request<Incoming>| {
        let mut local = local.clone();
        let (parts, body) = request.into_parts();
        async move {
            let body = body.collect().await.expect("a body").to_bytes();
            let request = Request::from_parts(parts, http_body_util::Full::new(body));
            local.call(request).await
        }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), answer);
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(near)).await.expect("a connection");
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::get(path).header("host", "server").header("connection", "Upgrade");
    request = request.header("upgrade", "websocket").header("sec-websocket-version", "13");
    request = request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    if let Some(protocol) = protocol {
        request = request.header("sec-websocket-protocol", protocol);
    }
    sender.send_request(request.body(Empty::<Bytes>::new()).expect("a request")).await.expect("an answer")
}

/// The messages of a log, and the headers of the answer.
async fn messages(server: &TestServer, protocol: Option<&str>) -> (HeaderMap, Vec<Message>) {
    let mut answer = send(server, LOG, protocol).await;
    assert_eq!(answer.status(), 101);
    let headers = answer.headers().clone();
    let stream = TokioIo::new(hyper::upgrade::on(&mut answer).await.expect("a stream"));
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    let mut all = Vec::new();
    while let Some(Ok(message)) = socket.next().await {
        all.push(message);
    }
    (headers, all)
}

#[tokio::test]
async fn a_log_comes_piece_by_piece_and_ends() {
    let server = server().await;
    for protocol in [None, Some("binary.k8s.io")] {
        let (headers, messages) = messages(&server, protocol).await;
        assert_eq!(headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(headers.get("sec-websocket-protocol").map(|value| value.to_str().expect("text")), protocol);
        let (last, pieces) = messages.split_last().expect("messages");
        assert!(last.is_close(), "{messages:?}");
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.clone().into_data()).collect();
        assert_eq!(bytes, b"one\n\xff\xfe two\n");
        assert!(pieces.iter().all(Message::is_binary), "{pieces:?}");
    }
}

#[tokio::test]
async fn clients_that_take_text_alone_get_base64() {
    let server = server().await;
    let (headers, messages) = messages(&server, Some("base64.binary.k8s.io")).await;
    assert_eq!(headers["sec-websocket-protocol"], "base64.binary.k8s.io");
    let texts: Vec<&str> =
        messages.iter().filter_map(|message| message.to_text().ok().filter(|_| message.is_text())).collect();
    assert_eq!(texts.first(), Some(&"b25lCg=="));
}

#[tokio::test]
async fn mistakes_are_answered_before_the_connection_changes() {
    let server = server().await;
    let table = [
        (LOG, Some("v4.channel.k8s.io"), 400, "requested protocol(s) are not supported: [v4.channel.k8s.io]"),
        ("/api/v1/namespaces/default/pods/absent/log", None, 404, "pods \\\"absent\\\" not found"),
        ("/api/v1/namespaces/default/pods/p/log?container=x", None, 400, "container x is not valid for pod p"),
    ];
    for (path, protocol, code, why) in table {
        let answer = send(&server, path, protocol).await;
        assert_eq!(answer.status().as_u16(), code, "{path}");
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(why), "{}", String::from_utf8_lossy(&body));
    }
}
