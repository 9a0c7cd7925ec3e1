//! Exec and attach: the streams of a command over one WebSocket, each message led by the number of its channel; or over SPDY.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, join};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::query::Query;
use super::upgrade::{self, Asked, Socket};
use super::{Body, plain, refuse};
use crate::host::{Exit, Host, Input, Output, Refusal, Session, Streams, Target};
use channel::{CLOSE, ERROR, Protocol, RESIZE, STDERR, STDIN, STDOUT};

pub(super) mod channel;
mod spdy;
mod status;

/// How much of an output is sent at a time.
const CHUNK: usize = 32 << 10;
/// So many messages wait for the client.
const QUEUE: usize = 16;
/// What a command leaves running may hold its output open; so long it is waited for.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a client may take to close when all is said.
const LINGER: Duration = Duration::from_secs(5);

/// `/exec/NAMESPACE/POD/CONTAINER`
pub(super) async fn exec(
    host: &dyn Host,
    target: &Target,
    query: &Query,
    request: Request<Incoming>,
    place: OwnedSemaphorePermit,
) -> Response<Body> {
    let command: Vec<String> = query.all("command").map(str::to_owned).collect();
    if command.is_empty() {
        return plain(StatusCode::BAD_REQUEST, "you must specify a command");
    }
    match Call::of(query, &request) {
        Ok(call) => {
            let session = host.exec(target, command, call.streams).await;
            call.start(session, request, place)
        }
        Err(why) => plain(StatusCode::BAD_REQUEST, why),
    }
}

/// `/attach/NAMESPACE/POD/CONTAINER`
pub(super) async fn attach(
    host: &dyn Host,
    target: &Target,
    query: &Query,
    request: Request<Incoming>,
    place: OwnedSemaphorePermit,
) -> Response<Body> {
    match Call::of(query, &request) {
        Ok(call) => {
            let session = host.attach(target, call.streams).await;
            call.start(session, request, place)
        }
        Err(why) => plain(StatusCode::BAD_REQUEST, why),
    }
}

/// What a client wants, and in which words.
struct Call {
    streams: Streams,
    words: Words,
}

/// How a client speaks.
enum Words {
    WebSocket { key: String, protocol: &'static Protocol },
    Spdy,
}

impl Call {
    fn of(query: &Query, request: &Request<Incoming>) -> Result<Call, String> {
        let tty = query.flag("tty");
        let streams = Streams {
            stdin: query.flag("input"),
            stdout: query.flag("output"),
            stderr: query.flag("error") && !tty,
            tty,
        };
        if !(streams.stdin || streams.stdout || streams.stderr) {
            return Err("you must specify at least 1 of stdin, stdout, stderr".to_owned());
        }
        match Asked::of(request.headers()) {
            Asked::WebSocket { key, protocols } => match Protocol::choose(&protocols) {
                Some(protocol) => Ok(Call { streams, words: Words::WebSocket { key, protocol } }),
                None => Err(upgrade::unknown(&protocols, &Protocol::names())),
            },
            Asked::Spdy { protocols } if protocols.iter().any(|name| name == spdy::PROTOCOL) => {
                Ok(Call { streams, words: Words::Spdy })
            }
            Asked::Spdy { protocols } => Err(upgrade::unknown(&protocols, &Protocol::names())),
            Asked::Nothing => Err(upgrade::REQUIRED.to_owned()),
        }
    }

    /// Takes up the stream. A refusal is told in it where the protocol can: clients take a refused stream for a server that
    /// does not know the protocol, and try another.
    fn start(
        self,
        session: Result<Session, Refusal>,
        mut request: Request<Incoming>,
        place: OwnedSemaphorePermit,
    ) -> Response<Body> {
        let connection = upgrade::later(&mut request);
        let response = match (&self.words, &session) {
            (Words::WebSocket { protocol: Protocol { tells: false, .. }, .. }, Err(refusal)) => return refuse(refusal),
            (Words::WebSocket { key, protocol }, _) => upgrade::websocket(key, protocol.name),
            (Words::Spdy, _) => upgrade::spdy(spdy::PROTOCOL),
        };
        let session = session.unwrap_or_else(|refusal| failed(&refusal));
        tokio::spawn(async move {
            let _place = place;
            self.serve(session, connection).await;
        });
        response
    }

    async fn serve(self, session: Session, connection: OnUpgrade) {
        match self.words {
            Words::WebSocket { protocol, .. } => {
                if let Some(socket) = upgrade::open(connection).await {
                    run(protocol, self.streams, socket, session).await;
                }
            }
            Words::Spdy => {
                if let Some(connection) = upgrade::raw(connection).await {
                    spdy::serve(self.streams, session, connection).await;
                }
            }
        }
    }
}

/// Serves a command over a WebSocket until it has ended or the client is gone.
async fn run(protocol: &'static Protocol, streams: Streams, socket: Socket, session: Session) {
    let (sink, stream) = socket.split();
    let (out, queue) = mpsc::channel(QUEUE);
    let out = Out { queue: out, encode: Box::new(|channel, data| protocol.encode(channel, data)) };
    let Session { stdin, stdout, stderr, resize, exit } = session;
    let greeting = if streams.stdout { STDOUT } else { ERROR };
    let work = async move {
        out.send(greeting, &[]).await;
        let ended = finish(stdout, stderr, exit, &out).await;
        out.send(ERROR, status::of(&ended, protocol.tells).as_bytes()).await;
    };
    let mut input = pin!(input(stream, protocol, stdin, resize));
    tokio::select! {
        _ = join(work, write(queue, sink)) => {}
        // The client is gone, and what was started for it goes with it.
        () = &mut input => return,
    }
    let _ = timeout(LINGER, input).await;
}

/// A command that was refused, as one that ended by that.
fn failed(refusal: &Refusal) -> Session {
    let exit = Box::pin(std::future::ready(Exit::Failed(refusal.to_string())));
    Session { stdin: None, stdout: None, stderr: None, resize: mpsc::channel(1).0, exit }
}

/// Passes outputs on until the command has ended and all is said.
async fn finish<M>(
    stdout: Option<Input>,
    stderr: Option<Input>,
    mut exit: BoxFuture<'static, Exit>,
    out: &Out<M>,
) -> Exit {
    let mut pumps = pin!(join(pump(stdout, STDOUT, out), pump(stderr, STDERR, out)));
    tokio::select! {
        ended = &mut exit => {
            let _ = timeout(DRAIN, pumps).await;
            ended
        }
        _ = &mut pumps => exit.await,
    }
}

/// Makes what is sent of a channel's number and data.
type Encode<M> = Box<dyn Fn(u8, &[u8]) -> M + Send + Sync>;

/// Where what is said on channels goes to, and how it is written there.
struct Out<M> {
    queue: mpsc::Sender<M>,
    encode: Encode<M>,
}

impl<M> Out<M> {
    /// False when nobody listens any more.
    async fn send(&self, channel: u8, data: &[u8]) -> bool {
        self.queue.send((self.encode)(channel, data)).await.is_ok()
    }
}

/// Sends what is queued, then says goodbye.
async fn write(mut queue: mpsc::Receiver<Message>, mut sink: SplitSink<Socket, Message>) {
    while let Some(message) = queue.recv().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
    let _ = sink.send(Message::Close(Some(channel::normal()))).await;
}

/// Passes an output on until it ends.
async fn pump<M>(output: Option<Input>, channel: u8, out: &Out<M>) {
    let Some(mut output) = output else { return };
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = output.read(&mut chunk).await {
        if !out.send(channel, &chunk[..count]).await {
            return;
        }
    }
}

/// Reads what the client sends until it is gone.
async fn input(
    mut stream: SplitStream<Socket>,
    protocol: &Protocol,
    mut stdin: Option<Output>,
    resize: mpsc::Sender<(u16, u16)>,
) {
    while let Some(Ok(message)) = stream.next().await {
        if message.is_close() {
            return;
        }
        let Some((channel, data)) = protocol.decode(&message) else { continue };
        match channel {
            STDIN => feed(&mut stdin, &data).await,
            RESIZE => {
                if let Some(size) = Size::parse(&data) {
                    // A size that is lost is followed by a newer one.
                    let _ = resize.try_send(size);
                }
            }
            CLOSE if protocol.closes && data.first() == Some(&STDIN) => {
                if let Some(mut pipe) = stdin.take() {
                    let _ = pipe.shutdown().await;
                }
            }
            _ => {}
        }
    }
}

/// Writes to a command; one that does not read any more gets nothing more.
async fn feed(stdin: &mut Option<Output>, data: &[u8]) {
    let Some(pipe) = stdin else { return };
    if pipe.write_all(data).await.is_err() || pipe.flush().await.is_err() {
        *stdin = None;
    }
}

/// The size of a terminal, as clients write it.
#[derive(Debug, Deserialize)]
struct Size {
    #[serde(rename = "Width", alias = "width", default)]
    width: u16,
    #[serde(rename = "Height", alias = "height", default)]
    height: u16,
}

impl Size {
    fn parse(text: &[u8]) -> Option<(u16, u16)> {
        let size: Size = serde_json::from_slice(text).ok()?;
        (size.width > 0 && size.height > 0).then_some((size.width, size.height))
    }
}
