//! A request that becomes a stream: WebSocket, or SPDY as older clients have it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use ring::digest;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::Body;

/// What RFC 6455 hashes with the client's key.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The largest message of a client; what kubectl sends is much smaller.
const MAX_MESSAGE: usize = 4 << 20;
/// Read and write buffers.
const BUFFER: usize = 32 << 10;
/// Which of the protocols SPDY clients offer is taken.
const SPDY_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");

/// The stream of a WebSocket.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What a request wants to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    /// With the client's key and the protocols it offers, best first.
    WebSocket { key: String, protocols: Vec<String> },
    /// With the protocols it offers.
    Spdy { protocols: Vec<String> },
    /// To stay a request.
    Nothing,
}

impl Asked {
    pub(super) fn of(headers: &HeaderMap) -> Asked {
        let words = |name: HeaderName| -> Vec<String> {
            let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
            values
                .flat_map(|value| value.split(','))
                .map(|word| word.trim().to_owned())
                .filter(|w| !w.is_empty())
                .collect()
        };
        let upgrades = words(header::CONNECTION).iter().any(|word| word.eq_ignore_ascii_case("upgrade"));
        let to = |wanted: &str| upgrades && words(header::UPGRADE).iter().any(|word| word.eq_ignore_ascii_case(wanted));
        let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
        match key {
            Some(key) if to("websocket") => {
                Asked::WebSocket { key: key.to_owned(), protocols: words(header::SEC_WEBSOCKET_PROTOCOL) }
            }
            _ if to("SPDY/3.1") => Asked::Spdy { protocols: words(SPDY_PROTOCOL) },
            _ => Asked::Nothing,
        }
    }
}

/// Says yes to a WebSocket.
pub(super) fn websocket(key: &str, protocol: &str) -> Response<Body> {
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    let mut response = switching("websocket");
    let headers = response.headers_mut();
    if let Ok(accept) = HeaderValue::from_str(&STANDARD.encode(hash)) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let (false, Ok(protocol)) = (protocol.is_empty(), HeaderValue::from_str(protocol)) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    response
}

/// Says yes to SPDY.
pub(super) fn spdy(protocol: &'static str) -> Response<Body> {
    let mut response = switching("SPDY/3.1");
    response.headers_mut().insert(SPDY_PROTOCOL, HeaderValue::from_static(protocol));
    response
}

fn switching(to: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static(to));
    response
}

/// What is said to a request that should become a stream.
pub(super) const REQUIRED: &str = "Upgrade request required";

/// What is said to who offers a protocol we do not speak.
pub(super) fn unknown(offered: &[String], known: &[&str]) -> String {
    format!(
        "unable to upgrade: this node speaks WebSocket with {}, and the client offers {}",
        known.join(", "),
        if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") }
    )
}

/// The request's connection, once the answer is sent.
pub(super) fn later(request: &mut Request<Incoming>) -> OnUpgrade {
    hyper::upgrade::on(request)
}

/// The connection as a WebSocket.
pub(super) async fn open(connection: OnUpgrade) -> Option<Socket> {
    let connection = raw(connection).await?;
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    Some(WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await)
}

/// The connection as it is.
pub(super) async fn raw(connection: OnUpgrade) -> Option<TokioIo<Upgraded>> {
    match connection.await {
        Ok(upgraded) => Some(TokioIo::new(upgraded)),
        Err(error) => {
            tracing::debug!(%error, "a stream was not taken up");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_a_websocket_is_the_one_of_the_rfc() {
        let response = websocket("dGhlIHNhbXBsZSBub25jZQ==", "chat");
        assert_eq!(response.headers()[header::SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers()[header::SEC_WEBSOCKET_PROTOCOL], "chat");
    }

    #[track_caller]
    fn check(headers: &[(&str, &str)], want: Asked) {
        let pairs = headers.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()));
        assert_eq!(Asked::of(&pairs.collect()), want);
    }

    #[test]
    fn what_a_request_wants_to_become_is_in_its_headers() {
        let protocols = vec!["a".to_owned(), "b".to_owned()];
        let web = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket"), ("sec-websocket-key", "k")];
        check(
            &[&web[..], &[("sec-websocket-protocol", "a, b")]].concat(),
            Asked::WebSocket { key: "k".into(), protocols: protocols.clone() },
        );
        check(&web[..2], Asked::Nothing);
        check(&web[1..], Asked::Nothing);
        let spdy = [
            ("connection", "upgrade"),
            ("upgrade", "SPDY/3.1"),
            ("x-stream-protocol-version", "a"),
            ("x-stream-protocol-version", "b"),
        ];
        check(&spdy, Asked::Spdy { protocols });
    }
}
