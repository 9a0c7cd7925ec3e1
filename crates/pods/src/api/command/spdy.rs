//! Exec and attach for clients that know no WebSocket: each of the command's streams is a stream of one SPDY connection.

use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::join;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, ReadHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::codec::{BytesCodec, FramedRead, FramedWrite};

use super::channel::{ERROR, RESIZE, STDERR, STDIN, STDOUT};
use super::{LINGER, Out, QUEUE, Size, feed, finish, status};
use crate::api::forward::tunnel::write;
use crate::api::spdy::{Frame, Headers, Reader, reset};
use crate::host::{Output, Session, Streams};

/// The one protocol; every client since Kubernetes 1.4 has it.
pub(super) const PROTOCOL: &str = "v4.channel.k8s.io";
/// How long a client may take to open its streams.
const OPENING: Duration = Duration::from_secs(30);
/// The most that is kept of what is said about the size of the terminal.
const SIZES: usize = 4 << 10;

type Incoming = FramedRead<ReadHalf<TokioIo<Upgraded>>, BytesCodec>;

/// Serves a command until it has ended or the client is gone.
pub(super) async fn serve(streams: Streams, session: Session, connection: TokioIo<Upgraded>) {
    let (read, sink) = tokio::io::split(connection);
    let (out, queue) = mpsc::channel(QUEUE);
    let frames = Frames { reader: Reader::new(), input: FramedRead::new(read, BytesCodec::new()) };
    join(write(queue, FramedWrite::new(sink, BytesCodec::new())), talk(streams, session, frames, out)).await;
}

async fn talk(streams: Streams, session: Session, mut frames: Frames, out: mpsc::Sender<Frame>) {
    let Ok(Some(ids)) = timeout(OPENING, gather(&mut frames, streams, &out)).await else { return };
    let Session { stdin, stdout, stderr, resize, exit } = session;
    let said = Out {
        queue: out.clone(),
        encode: Box::new(move |channel, data| {
            let (stream, data) = (ids.of(channel), Bytes::copy_from_slice(data));
            Frame::Data { stream, data, fin: channel == ERROR }
        }),
    };
    let work = async {
        let ended = finish(stdout, stderr, exit, &said).await;
        for stream in [ids.of(STDOUT), ids.of(STDERR)].into_iter().filter(|stream| *stream != 0) {
            let _ = out.send(Frame::Data { stream, data: Bytes::new(), fin: true }).await;
        }
        said.send(ERROR, status::of(&ended, true).as_bytes()).await;
    };
    let mut input = pin!(input(frames, ids, stdin, resize, &out));
    tokio::select! {
        () = work => {}
        // The client is gone, and what was started for it goes with it.
        () = &mut input => return,
    }
    let _ = timeout(LINGER, input).await;
}

/// The frames of a connection.
struct Frames {
    reader: Reader,
    input: Incoming,
}

impl Frames {
    /// The next; `None`: the client is gone, or speaks something else.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.reader.next().ok()? {
                return Some(frame);
            }
            let bytes = self.input.next().await?.ok()?;
            self.reader.push(&bytes);
        }
    }
}

/// Which stream is which channel; 0: none.
#[derive(Debug, Clone, Copy, Default)]
struct Ids([u32; 5]);

impl Ids {
    fn of(&self, channel: u8) -> u32 {
        self.0.get(usize::from(channel)).copied().unwrap_or_default()
    }
}

/// Waits until the client has opened all streams it asked for.
async fn gather(frames: &mut Frames, streams: Streams, out: &mpsc::Sender<Frame>) -> Option<Ids> {
    let wanted = [streams.stdin, streams.stdout, streams.stderr, true, streams.tty];
    let mut ids = Ids::default();
    while ids.0.iter().zip(wanted).any(|(id, wanted)| wanted && *id == 0) {
        let answer = match frames.next().await? {
            Frame::Open { stream, headers, .. } => match channel(&headers).filter(|channel| ids.of(*channel) == 0) {
                Some(channel) if stream != 0 => {
                    ids.0[usize::from(channel)] = stream;
                    Frame::Reply { stream }
                }
                _ => Frame::Reset { stream, status: reset::PROTOCOL_ERROR },
            },
            Frame::Ping(id) if id % 2 == 1 => Frame::Ping(id),
            _ => continue,
        };
        out.send(answer).await.ok()?;
    }
    Some(ids)
}

fn channel(headers: &Headers) -> Option<u8> {
    let kind = headers.iter().find(|(name, _)| name == "streamtype").map(|(_, value)| value.as_str());
    Some(match kind? {
        "stdin" => STDIN,
        "stdout" => STDOUT,
        "stderr" => STDERR,
        "error" => ERROR,
        "resize" => RESIZE,
        _ => return None,
    })
}

/// Takes what the client sends until it is gone.
async fn input(
    mut frames: Frames,
    ids: Ids,
    mut stdin: Option<Output>,
    resize: mpsc::Sender<(u16, u16)>,
    out: &mpsc::Sender<Frame>,
) {
    let mut sizes = BytesMut::new();
    while let Some(frame) = frames.next().await {
        match frame {
            Frame::Data { stream, data, fin } if stream == ids.of(STDIN) => {
                feed(&mut stdin, &data).await;
                if let Some(mut pipe) = stdin.take_if(|_| fin) {
                    let _ = pipe.shutdown().await;
                }
            }
            Frame::Reset { stream, .. } if stream == ids.of(STDIN) => stdin = None,
            Frame::Data { stream, data, .. } if stream == ids.of(RESIZE) => {
                sizes.extend_from_slice(&data);
                while let Some(end) = sizes.iter().position(|byte| *byte == b'\n') {
                    if let Some(size) = Size::parse(&sizes.split_to(end + 1)) {
                        let _ = resize.try_send(size);
                    }
                }
                sizes.truncate(SIZES);
            }
            Frame::Ping(id) if id % 2 == 1 => drop(out.send(Frame::Ping(id)).await),
            Frame::Open { stream, .. } => {
                drop(out.send(Frame::Reset { stream, status: reset::REFUSED }).await);
            }
            _ => {}
        }
    }
}
