//! The log of a container over a WebSocket: each piece of the log is a message, and the end of the
//! log closes the connection. The protocols are those of kube-apiserver (apiserver, util/wsstream):
//! bytes, or Base64 for clients that take text alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fairlead_api::Failure;
use fairlead_runtime::Permit;
use futures_util::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderName, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest;
use std::time::Duration;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::auth::web_socket;
use crate::negotiate::text;
use crate::reply::{self, Body};

/// Protocol in which messages are bytes; also that of clients that name none.
const BINARY: &str = "binary.k8s.io";
/// Protocol in which messages are text, the bytes in Base64.
const BASE64: &str = "base64.binary.k8s.io";
/// Text that RFC 6455, 1.3 hashes with the client's key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Maximum length in bytes of a message of the client. A client has nothing to say but that it
/// closes.
const MAX_MESSAGE: usize = 4 << 10;
/// Maximum wait for the client to close its side after the end of the log.
const CLOSING: Duration = Duration::from_secs(5);

/// A request for a WebSocket.
#[derive(Debug)]
pub(super) struct LogSocket {
    connection: OnUpgrade,
    accept: HeaderValue,
    /// Protocol that the answer names, if the client offered any.
    protocol: Option<&'static str>,
}

impl LogSocket {
    /// Returns what a request asks for; `None` if it asks for no WebSocket.
    pub(super) fn of(headers: &HeaderMap, connection: Option<&OnUpgrade>) -> Result<Option<LogSocket>, Failure> {
        let names = |header: HeaderName, word: &str| {
            text(headers, header).split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
        };
        if !names(CONNECTION, "upgrade") || !names(UPGRADE, "websocket") {
            return Ok(None);
        }
        let key = text(headers, SEC_WEBSOCKET_KEY);
        let Some(connection) = connection.filter(|_| !key.is_empty()) else {
            return Err(Failure::bad_request(
                "this connection cannot become a WebSocket: HTTP/1.1 and a key are needed",
            ));
        };
        let offered = web_socket::protocols(headers);
        let protocol = [BINARY, BASE64].into_iter().find(|known| offered.contains(known));
        if protocol.is_none() && !offered.is_empty() {
            let offered = offered.join(" ");
            return Err(Failure::bad_request(format!(
                "requested protocol(s) are not supported: [{offered}]; supports [{BASE64} {BINARY}]"
            )));
        }
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
        let accept =
            HeaderValue::from_str(&STANDARD.encode(hash)).map_err(|error| Failure::internal(error.to_string()))?;
        Ok(Some(LogSocket { connection: connection.clone(), accept, protocol }))
    }

    /// Answers with the WebSocket, and sends the log that a Node answers with.
    pub(super) fn send(
        self,
        log: Response<Incoming>,
        permit: Permit,
        stop: tokio_util::sync::CancellationToken,
    ) -> Response<Body> {
        let mut response = reply::plain(101, "");
        let headers = response.headers_mut();
        headers.clear();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = self.protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        let base64 = self.protocol == Some(BASE64);
        tokio::spawn(async move {
            let _permit = permit;
            tokio::select! {
                () = copy(self.connection, log.into_body(), base64) => {}
                () = stop.cancelled() => {}
            }
        });
        response
    }
}

/// Sends a log until it ends or the client has gone.
async fn copy(connection: OnUpgrade, mut log: Incoming, base64: bool) {
    let connection = match connection.await {
        Ok(connection) => TokioIo::new(connection),
        Err(error) => return tracing::debug!(%error, "a stream was not taken up"),
    };
    let config = WebSocketConfig::default()
        .write_buffer_size(0)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let (mut sink, mut source) = socket.split();
    loop {
        let piece = tokio::select! {
            frame = log.frame() => match frame {
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                // A log that breaks off ends early; there is nobody left to tell.
                Some(Err(_)) | None => break,
            },
            message = source.next() => match message {
                Some(Ok(_)) => continue,
                // The client has closed, or said too much.
                Some(Err(_)) | None => return,
            },
        };
        if !piece.is_empty() && sink.send(message(piece, base64)).await.is_err() {
            return;
        }
    }
    let closed = async {
        let _ = sink.close().await;
        while let Some(Ok(_)) = source.next().await {}
    };
    let _ = tokio::time::timeout(CLOSING, closed).await;
}

fn message(piece: Bytes, base64: bool) -> Message {
    if base64 { Message::text(STANDARD.encode(piece)) } else { Message::binary(piece) }
}
