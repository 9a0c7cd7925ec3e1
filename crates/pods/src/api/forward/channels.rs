//! Port-forward without SPDY: the ports are in the URL, and each has a channel for data and one for errors in the WebSocket.

use std::collections::HashMap;

use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use super::Destination;
use super::lane::{Lane, PIECES, Piece};
use crate::api::command::channel::{Protocol, normal};
use crate::api::query::Query;
use crate::api::spdy::Frame;
use crate::api::upgrade::Socket;

/// Data as it is.
pub(super) const BINARY: &str = "v4.channel.k8s.io";
/// Data as text.
pub(super) const BASE64: &str = "v4.base64.channel.k8s.io";
/// A channel's number is one byte, and in text one character.
const PORTS: usize = 64;
const QUEUE: usize = 16;

/// The ports in a URL.
pub(super) fn ports(query: &Query) -> Result<Vec<u16>, String> {
    let mut ports = Vec::new();
    for text in query.all("port").flat_map(|list| list.split(',')) {
        match text.parse::<u16>() {
            Ok(0) => return Err(format!("port {text:?} must be > 0")),
            Ok(port) => ports.push(port),
            Err(error) => return Err(format!("unable to parse {text:?} as a port: {error}")),
        }
    }
    match ports.len() {
        0 => Err("query parameter \"port\" is required".to_owned()),
        1..=PORTS => Ok(ports),
        _ => Err(format!("at most {PORTS} ports can be forwarded at a time")),
    }
}

/// Serves one connection to each port until all have ended or the client is gone.
pub(super) async fn serve(to: Destination, socket: Socket, base64: bool, ports: &[u16]) {
    let name = if base64 { BASE64 } else { BINARY };
    let Some(protocol) = Protocol::choose(&[name.to_owned()]) else { return };
    let (mut sink, mut stream) = socket.split();
    let (out, mut queue) = mpsc::channel(QUEUE);
    let (mut lanes, mut inputs) = (JoinSet::new(), HashMap::new());
    for (at, port) in (0..).zip(ports) {
        let (data, error) = (2 * at, 2 * at + 1);
        let (pieces, receiver) = mpsc::channel(PIECES);
        inputs.insert(data, pieces);
        let lane = Lane { to: to.clone(), port: *port, data, error, ends: false, pieces: receiver, out: out.clone() };
        let greet = port.to_le_bytes();
        let greeting = [data, error].map(|stream| Frame::Data { stream, data: greet.to_vec().into(), fin: false });
        let out = out.clone();
        lanes.spawn(async move {
            for frame in greeting {
                let _ = out.send(frame).await;
            }
            lane.run().await;
        });
    }
    drop(out);
    let writing = async {
        while let Some(frame) = queue.recv().await {
            let Frame::Data { stream, data, .. } = frame else { continue };
            let channel = u8::try_from(stream).unwrap_or(u8::MAX);
            if !data.is_empty() && sink.send(protocol.encode(channel, &data)).await.is_err() {
                return;
            }
        }
        let _ = sink.send(Message::Close(Some(normal()))).await;
    };
    let reading = async {
        while let Some(Ok(message)) = stream.next().await {
            let Some((channel, data)) = protocol.decode(&message) else { continue };
            if let Some(pieces) = inputs.get(&u32::from(channel)) {
                let _ = pieces.send(Piece::Data(data.into_owned().into())).await;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
}
