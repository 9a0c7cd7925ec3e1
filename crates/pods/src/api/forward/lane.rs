//! One connection into a Pod: what a client sends on a stream goes in, what comes back goes out, and each side may end its half
//! first.

use std::pin::pin;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::Destination;
use crate::api::spdy::{Frame, reset};

/// So much is read from a Pod at a time.
const CHUNK: usize = 32 << 10;
/// So many pieces wait for a Pod that reads slowly.
pub(super) const PIECES: usize = 4;

/// What a client sends. When no more can come without an end, the stream is given up.
#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    End,
}

/// Where a connection comes from and goes to.
pub(super) struct Lane {
    pub(super) to: Destination,
    pub(super) port: u16,
    /// The streams of data and of errors.
    pub(super) data: u32,
    pub(super) error: u32,
    /// The client can say that it has no more to send.
    pub(super) ends: bool,
    pub(super) pieces: mpsc::Receiver<Piece>,
    pub(super) out: mpsc::Sender<Frame>,
}

impl Lane {
    /// Connects, and passes on until both sides have ended.
    pub(super) async fn run(self) {
        let Lane { to, port, data, error, ends, pieces, out } = self;
        let dialled = to.host.dial(&to.target, port).await;
        let stream = match dialled {
            Ok(stream) => stream,
            Err(refusal) => {
                let why = format!("error forwarding port {port} to pod {}: {refusal}", to.target.pod);
                let _ = out.send(Frame::Data { stream: error, data: why.into(), fin: true }).await;
                let _ = out.send(Frame::Reset { stream: data, status: reset::CANCEL }).await;
                return;
            }
        };
        let _ = stream.set_nodelay(true);
        let (read, write) = stream.into_split();
        let (mut up, mut down) = (pin!(up(pieces, write)), pin!(down(read, data, &out)));
        // A client that gives up ends both ways; one that only has no more to say waits for the rest.
        tokio::select! {
            ended = &mut up => if ended { down.await },
            () = &mut down => if ends { up.await; },
        }
        let _ = out.send(Frame::Data { stream: error, data: Bytes::new(), fin: true }).await;
    }
}

/// Into the Pod. Whether the client ended it.
async fn up(mut pieces: mpsc::Receiver<Piece>, write: OwnedWriteHalf) -> bool {
    let mut write = Some(write);
    while let Some(piece) = pieces.recv().await {
        match (piece, &mut write) {
            (Piece::End, write) => {
                if let Some(write) = write {
                    let _ = write.shutdown().await;
                }
                return true;
            }
            (Piece::Data(bytes), Some(open)) => {
                if open.write_all(&bytes).await.is_err() {
                    write = None;
                }
            }
            // The Pod reads no more: what comes is lost, as on any connection.
            (Piece::Data(_), None) => {}
        }
    }
    false
}

/// Out of the Pod.
async fn down(mut read: OwnedReadHalf, stream: u32, out: &mpsc::Sender<Frame>) {
    let mut buffer = BytesMut::with_capacity(CHUNK);
    loop {
        buffer.reserve(CHUNK);
        let frame = match read.read_buf(&mut (&mut buffer).limit(CHUNK)).await {
            Ok(0) => Frame::Data { stream, data: Bytes::new(), fin: true },
            Ok(_) => Frame::Data { stream, data: buffer.split().freeze(), fin: false },
            Err(_) => Frame::Reset { stream, status: reset::CANCEL },
        };
        let last = !matches!(frame, Frame::Data { fin: false, .. });
        if out.send(frame).await.is_err() || last {
            return;
        }
    }
}
