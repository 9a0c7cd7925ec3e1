//! A connection inside TLS, as something to read from and write to.
//!
//! rustls takes records apart and puts them together; here is when the socket is read and written. It is read in large pieces, as
//! rustls alone would ask for 4 KiB at a time, and a reader gets all records that came and fit. What the server has to say last
//! in a handshake (tickets) goes with its first answer, or before it waits.

use std::future::poll_fn;
use std::io::{self, BufRead, IoSlice, Write};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::Connection;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::policy;

/// A connection inside TLS.
#[derive(Debug)]
pub struct Stream<T> {
    socket: T,
    tls: Connection,
    inbox: Inbox,
    facts: TlsFacts,
    /// Whether the handshake left something unsaid.
    owing: bool,
}

/// What came from the socket and waits until what came before it was read. Mostly nothing, and then it takes no memory.
#[derive(Debug, Default)]
struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

/// How much is read from a socket at once: four records.
const PIECE: usize = 64 * 1024;

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// By OpenSSL's name, as access logs have it: `ECDHE-RSA-AES128-GCM-SHA256`.
    pub suite: &'static str,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// `h2` or `http/1.1`, if the client chose.
    pub alpn: Option<&'static str>,
    /// The host the client named.
    pub sni: Option<Box<str>>,
    /// Whether an earlier session was taken up again.
    pub resumed: bool,
}

impl<T> Stream<T> {
    /// What was agreed on.
    pub fn facts(&self) -> &TlsFacts {
        &self.facts
    }

    /// The socket.
    pub fn get_ref(&self) -> &T {
        &self.socket
    }

    /// The certificate the other side showed, if it had to.
    pub(super) fn shown(&self) -> Option<&CertificateDer<'static>> {
        self.tls.peer_certificates()?.first()
    }
}

/// Begins TLS: until both sides know each other.
pub(super) async fn shake<T>(mut socket: T, mut tls: Connection) -> io::Result<Stream<T>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut inbox = Inbox::default();
    poll_fn(|context| poll_shake(&mut socket, &mut tls, &mut inbox, context)).await?;
    let (facts, owing) = (TlsFacts::of(&tls), tls.wants_write());
    Ok(Stream { socket, tls, inbox, facts, owing })
}

fn poll_shake<T>(
    socket: &mut T,
    tls: &mut Connection,
    inbox: &mut Inbox,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    while tls.is_handshaking() {
        if tls.wants_write() {
            ready!(poll_send(socket, tls, context))?;
        } else if ready!(poll_receive(socket, tls, inbox, context))? == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
    }
    // A client's last words are what the server waits for; a server's can wait for its first answer.
    let client = matches!(tls, Connection::Client(_));
    if client { poll_send(socket, tls, context) } else { Poll::Ready(Ok(())) }
}

/// Sends all that is to be sent.
fn poll_send<T>(socket: &mut T, tls: &mut Connection, context: &mut Context<'_>) -> Poll<io::Result<()>>
where
    T: AsyncWrite + Unpin,
{
    while tls.wants_write() {
        match tls.write_tls(&mut Socket { socket, context }) {
            Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    Poll::Ready(Ok(()))
}

/// Lets rustls have what came, 0 at the end. On a violation of the protocol the other side is told, if it listens.
fn poll_receive<T>(
    socket: &mut T,
    tls: &mut Connection,
    inbox: &mut Inbox,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let fed = if inbox.is_empty() {
        let mut space = [MaybeUninit::uninit(); PIECE];
        let mut piece = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut *socket).poll_read(context, &mut piece))?;
        let fed = feed(tls, piece.filled());
        if let Ok(count) = fed {
            inbox.put(&piece.filled()[count..]);
        }
        fed
    } else {
        feed(tls, inbox.rest()).inspect(|count| inbox.take(*count))
    };
    fed.inspect_err(|_| drop(poll_send(socket, tls, context))).into()
}

/// How much of what came rustls took: until there is something to read or to send. Nothing came: it is told of the end.
fn feed(tls: &mut Connection, came: &[u8]) -> io::Result<usize> {
    let mut rest = came;
    loop {
        tls.read_tls(&mut rest)?;
        tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if rest.is_empty() || !tls.wants_read() {
            return Ok(came.len() - rest.len());
        }
    }
}

impl Inbox {
    fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.is_empty() {
            *self = Inbox::default();
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            *self = Inbox { bytes: bytes.to_vec(), taken: 0 };
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Stream { socket, tls, inbox, owing, .. } = self.get_mut();
        let before = into.filled().len();
        loop {
            let end = take(tls, into)?;
            let got = into.filled().len() > before;
            if end || into.remaining() == 0 || (got && inbox.is_empty()) {
                return Poll::Ready(Ok(()));
            }
            let received = poll_receive(socket, tls, inbox, context);
            // What was got is the reader's; what is wrong with the rest it learns next time.
            if got && !matches!(received, Poll::Ready(Ok(_))) {
                return Poll::Ready(Ok(()));
            }
            // Whoever waits for the other side must have told it all of the handshake. The rest is for writers to send: they may
            // be another task, whose place in the socket's queue is not ours to take.
            if received.is_pending() && *owing {
                *owing = poll_send(socket, tls, context)?.is_pending();
            }
            ready!(received)?;
        }
    }
}

/// Takes what rustls has ready to be read. True: there will be no more. An error waits until all before it was taken.
fn take(tls: &mut Connection, into: &mut ReadBuf<'_>) -> io::Result<bool> {
    let (mut reader, before) = (tls.reader(), into.filled().len());
    while into.remaining() > 0 {
        let count = match reader.fill_buf() {
            Ok([]) => return Ok(true),
            Ok(ready) => {
                let count = ready.len().min(into.remaining());
                into.put_slice(&ready[..count]);
                count
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(_) if into.filled().len() > before => return Ok(false),
            Err(error) => return Err(error),
        };
        reader.consume(count);
    }
    Ok(false)
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Stream { socket, tls, .. } = self.get_mut();
        let mut taken = tls.writer().write_vectored(bytes)?;
        let sent = poll_send(socket, tls, context)?;
        if taken == 0 && bytes.iter().any(|part| !part.is_empty()) {
            // There was no room before. If there still is none, the socket wakes us.
            ready!(sent);
            taken = tls.writer().write_vectored(bytes)?;
            let _ = poll_send(socket, tls, context)?;
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Stream { socket, tls, .. } = self.get_mut();
        ready!(poll_send(socket, tls, context))?;
        Pin::new(socket).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Stream { socket, tls, .. } = self.get_mut();
        // Said once, however often this is called.
        tls.send_close_notify();
        ready!(poll_send(socket, tls, context))?;
        Pin::new(socket).poll_shutdown(context)
    }
}

impl TlsFacts {
    fn of(tls: &Connection) -> TlsFacts {
        let version = match tls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "TLSv1.2",
        };
        let sni = match tls {
            Connection::Server(server) => server.server_name().map(Box::from),
            Connection::Client(_) => None,
        };
        TlsFacts {
            suite: tls.negotiated_cipher_suite().map_or("-", policy::name_of),
            version,
            alpn: tls.alpn_protocol().and_then(known_protocol),
            sni,
            resumed: tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        }
    }
}

fn known_protocol(name: &[u8]) -> Option<&'static str> {
    super::ALPN_HTTP.iter().find(|known| known.as_bytes() == name).copied()
}

/// A socket of tokio's as rustls wants it: what would have to wait is an error.
struct Socket<'a, 'b, T> {
    socket: &'a mut T,
    context: &'a mut Context<'b>,
}

impl<T: AsyncWrite + Unpin> Write for Socket<'_, '_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        or_would_block(Pin::new(&mut *self.socket).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        or_would_block(Pin::new(&mut *self.socket).poll_write_vectored(self.context, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn or_would_block(result: Poll<io::Result<usize>>) -> io::Result<usize> {
    match result {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
