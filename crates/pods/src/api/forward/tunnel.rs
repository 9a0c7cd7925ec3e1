//! Many connections over one SPDY connection: a client opens a stream for errors and one for data with the same request number,
//! and the two are one connection into the Pod.
//!
//! kubectl's SPDY has no windows, so a Pod that does not read holds up the others on the same tunnel once its pieces are full;
//! the alternative would be memory without bound.

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{BoxStream, StreamExt};
use futures_util::{Sink, SinkExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Destination;
use super::lane::{Lane, PIECES, Piece};
use crate::api::spdy::{Frame, Headers, Reader, Writer, reset};

/// So many connections at a time.
const CONNECTIONS: usize = 1000;
/// So many frames wait for the client.
const QUEUE: usize = 32;
/// Frames are sent together up to this size.
const TOGETHER: usize = 64 << 10;

/// Serves a tunnel until the client closes it.
pub(super) async fn serve<S>(to: Destination, mut input: BoxStream<'static, Bytes>, output: S)
where
    S: Sink<Bytes> + Unpin + Send + 'static,
{
    let (out, queue) = mpsc::channel(QUEUE);
    let mut tunnel = Tunnel { to, out, streams: HashMap::new(), halves: HashMap::new(), lanes: JoinSet::new() };
    let mut reader = Reader::new();
    let mut writing = std::pin::pin!(write(queue, output));
    loop {
        tokio::select! {
            () = &mut writing => return,
            Some(ended) = tunnel.lanes.join_next() => tunnel.close(ended.unwrap_or_default()),
            bytes = input.next() => {
                let Some(bytes) = bytes else { return };
                reader.push(&bytes);
                // The writer goes on while a frame waits for a Pod.
                tokio::select! {
                    () = &mut writing => return,
                    fine = tunnel.take(&mut reader) => if !fine { return },
                }
            }
        }
    }
}

/// Sends frames, together where several wait.
pub(in crate::api) async fn write<S: Sink<Bytes> + Unpin>(mut queue: mpsc::Receiver<Frame>, mut output: S) {
    let (mut writer, mut bytes) = (Writer::new(), BytesMut::new());
    while let Some(frame) = queue.recv().await {
        writer.write(&frame, &mut bytes);
        while bytes.len() < TOGETHER
            && let Ok(frame) = queue.try_recv()
        {
            writer.write(&frame, &mut bytes);
        }
        if output.send(bytes.split().freeze()).await.is_err() {
            return;
        }
    }
}

struct Tunnel {
    to: Destination,
    out: mpsc::Sender<Frame>,
    /// The streams that are open.
    streams: HashMap<u32, Stream>,
    /// Connections that have one stream so far, by their request number.
    halves: HashMap<String, Half>,
    lanes: JoinSet<(u32, u32)>,
}

enum Stream {
    /// What a client sends there is for nobody.
    Error,
    Data {
        pieces: mpsc::Sender<Piece>,
        /// Somebody takes the pieces.
        connected: bool,
    },
}

#[derive(Default)]
struct Half {
    error: Option<u32>,
    data: Option<(u32, mpsc::Receiver<Piece>)>,
}

impl Tunnel {
    /// Takes all frames there are. False: the client does not speak SPDY, or nobody listens.
    async fn take(&mut self, reader: &mut Reader) -> bool {
        loop {
            let frame = match reader.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => return true,
                Err(broken) => {
                    tracing::debug!(%broken, "a port-forward is given up");
                    return false;
                }
            };
            let answer = match frame {
                Frame::Open { stream, headers, fin } => self.open(stream, &headers, fin).await,
                Frame::Data { stream, data, fin } => self.data(stream, data, fin).await,
                Frame::Reset { stream, .. } => {
                    self.streams.remove(&stream);
                    None
                }
                // Ours would be even; we send none.
                Frame::Ping(id) => (id % 2 == 1).then_some(Frame::Ping(id)),
                Frame::Reply { .. } | Frame::Away { .. } | Frame::Other => None,
            };
            if let Some(answer) = answer
                && self.out.send(answer).await.is_err()
            {
                return false;
            }
        }
    }

    /// A new stream; the answer is why it is not accepted.
    async fn open(&mut self, stream: u32, headers: &Headers, fin: bool) -> Option<Frame> {
        let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let port = header("port").and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0);
        let (Some(port), Some(kind @ ("error" | "data"))) = (port, header("streamtype")) else {
            return Some(Frame::Reset { stream, status: reset::PROTOCOL_ERROR });
        };
        if self.streams.len() >= 2 * CONNECTIONS || self.streams.contains_key(&stream) {
            return Some(Frame::Reset { stream, status: reset::REFUSED });
        }
        let is_error = kind == "error";
        // Old clients give no numbers; their streams come in pairs.
        let number = || if is_error { stream } else { stream.saturating_sub(2) }.to_string();
        let request = header("requestid").map_or_else(number, str::to_owned);
        let mut half = self.halves.remove(&request).unwrap_or_default();
        if if is_error { half.error.is_some() } else { half.data.is_some() } {
            self.halves.insert(request, half);
            return Some(Frame::Reset { stream, status: reset::PROTOCOL_ERROR });
        }
        if is_error {
            half.error = Some(stream);
            self.streams.insert(stream, Stream::Error);
        } else {
            let (pieces, receiver) = mpsc::channel(PIECES);
            if fin {
                let _ = pieces.try_send(Piece::End);
            }
            half.data = Some((stream, receiver));
            self.streams.insert(stream, Stream::Data { pieces, connected: false });
        }
        // Before anything comes of it: a stream that is reset unanswered is an error of another kind to clients.
        let _ = self.out.send(Frame::Reply { stream }).await;
        match half {
            Half { error: Some(error), data: Some((data, pieces)) } => self.connect(port, error, data, pieces),
            half => drop(self.halves.insert(request, half)),
        }
        None
    }

    fn connect(&mut self, port: u16, error: u32, data: u32, pieces: mpsc::Receiver<Piece>) {
        if let Some(Stream::Data { connected, .. }) = self.streams.get_mut(&data) {
            *connected = true;
        }
        let lane = Lane { to: self.to.clone(), port, data, error, ends: true, pieces, out: self.out.clone() };
        self.lanes.spawn(async move {
            lane.run().await;
            (data, error)
        });
    }

    async fn data(&mut self, stream: u32, data: Bytes, fin: bool) -> Option<Frame> {
        let Some(Stream::Data { pieces, connected }) = self.streams.get_mut(&stream) else { return None };
        let data = Some(data).filter(|data| !data.is_empty()).map(Piece::Data);
        for piece in [data, fin.then_some(Piece::End)].into_iter().flatten() {
            if *connected {
                // A lane that has ended takes nothing any more, and that is fine.
                let _ = pieces.send(piece).await;
            } else if pieces.try_send(piece).is_err() {
                self.streams.remove(&stream);
                return Some(Frame::Reset { stream, status: reset::REFUSED });
            }
        }
        None
    }

    fn close(&mut self, (data, error): (u32, u32)) {
        self.streams.remove(&data);
        self.streams.remove(&error);
    }
}

#[cfg(test)]
mod tests;
