//! Port-forward: connections into a Pod, many over one stream. As kubectl does it since 1.31, SPDY inside a WebSocket; as it did
//! before, SPDY alone; and as browsers can, one pair of channels a port.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_util::codec::{BytesCodec, FramedRead, FramedWrite};

use super::query::Query;
use super::upgrade::{self, Asked, Socket};
use super::{Body, plain};
use crate::host::{Host, Target};

mod channels;
mod lane;
pub(super) mod tunnel;

/// SPDY in a WebSocket.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
/// SPDY alone.
const SPDY: &str = "portforward.k8s.io";
/// What a client may offer.
const KNOWN: [&str; 3] = [TUNNEL, channels::BINARY, channels::BASE64];

/// `/portForward/NAMESPACE/POD`
pub(super) fn answer(
    host: Arc<dyn Host>,
    target: Target,
    query: &Query,
    mut request: Request<Incoming>,
    place: OwnedSemaphorePermit,
) -> Response<Body> {
    let connection = upgrade::later(&mut request);
    let asked = Asked::of(request.headers());
    let known = |protocols: &[String]| {
        let name = |offered: &String| KNOWN.into_iter().find(|known| known == offered);
        if protocols.is_empty() { Some("") } else { protocols.iter().find_map(name) }
    };
    let to = Destination { host, target };
    match asked {
        Asked::WebSocket { key, protocols } => {
            let Some(protocol) = known(&protocols) else { return bad(upgrade::unknown(&protocols, &KNOWN)) };
            let ports = match (protocol, channels::ports(query)) {
                (TUNNEL, _) => Vec::new(),
                (_, Ok(ports)) => ports,
                (_, Err(why)) => return bad(why),
            };
            tokio::spawn(async move {
                let _place = place;
                let Some(socket) = upgrade::open(connection).await else { return };
                match protocol {
                    TUNNEL => tunnelled(to, socket).await,
                    _ => channels::serve(to, socket, protocol == channels::BASE64, &ports).await,
                }
            });
            upgrade::websocket(&key, protocol)
        }
        Asked::Spdy { protocols } if protocols.iter().any(|name| name == SPDY) => {
            tokio::spawn(async move {
                let _place = place;
                let Some(connection) = upgrade::raw(connection).await else { return };
                let (read, write) = tokio::io::split(connection);
                let input =
                    FramedRead::new(read, BytesCodec::new()).filter_map(|read| async { Some(read.ok()?.freeze()) });
                tunnel::serve(to, input.boxed(), FramedWrite::new(write, BytesCodec::new())).await;
            });
            upgrade::spdy(SPDY)
        }
        Asked::Spdy { protocols } => bad(upgrade::unknown(&protocols, &KNOWN)),
        Asked::Nothing => bad(upgrade::REQUIRED.to_owned()),
    }
}

fn bad(why: String) -> Response<Body> {
    plain(StatusCode::BAD_REQUEST, why)
}

/// The Pod that is connected to.
#[derive(Clone)]
struct Destination {
    host: Arc<dyn Host>,
    target: Target,
}

async fn tunnelled(to: Destination, socket: Socket) {
    let (sink, stream) = socket.split();
    let input = stream.take_while(|message| std::future::ready(message.is_ok())).filter_map(|message| async {
        match message {
            Ok(Message::Binary(bytes)) => Some(bytes),
            _ => None,
        }
    });
    let output = sink.with(|bytes: Bytes| std::future::ready(Ok::<_, SocketError>(Message::Binary(bytes))));
    tunnel::serve(to, input.boxed(), output).await;
}
