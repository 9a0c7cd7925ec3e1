//! A connection inside TLS, as something to read from and write to.
//!
//! rustls keeps what was received and what is to be sent; here is when the socket is read and written. What the server has to say
//! last in a handshake (tickets) goes with its first answer, or before it waits.

use std::future::poll_fn;
use std::io::{self, BufRead, IoSlice, Read, Write};
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
    facts: TlsFacts,
    /// Whether the handshake left something unsaid.
    owing: bool,
}

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
    poll_fn(|context| poll_shake(&mut socket, &mut tls, context)).await?;
    let (facts, owing) = (TlsFacts::of(&tls), tls.wants_write());
    Ok(Stream { socket, tls, facts, owing })
}

fn poll_shake<T>(socket: &mut T, tls: &mut Connection, context: &mut Context<'_>) -> Poll<io::Result<()>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    while tls.is_handshaking() {
        if tls.wants_write() {
            ready!(poll_send(socket, tls, context))?;
        } else if ready!(poll_receive(socket, tls, context))? == 0 {
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

/// Takes what the socket has, 0 at its end. On a violation of the protocol the other side is told, if it listens.
fn poll_receive<T>(socket: &mut T, tls: &mut Connection, context: &mut Context<'_>) -> Poll<io::Result<usize>>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let count = match tls.read_tls(&mut Socket { socket, context }) {
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
        Err(error) => return Poll::Ready(Err(error)),
    };
    match tls.process_new_packets() {
        Ok(_) => Poll::Ready(Ok(count)),
        Err(error) => {
            let _ = poll_send(socket, tls, context);
            Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)))
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Stream { socket, tls, owing, .. } = self.get_mut();
        loop {
            let mut reader = tls.reader();
            match reader.fill_buf() {
                Ok(ready) => {
                    let count = ready.len().min(into.remaining());
                    into.put_slice(&ready[..count]);
                    reader.consume(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            let received = poll_receive(socket, tls, context)?;
            // Whoever waits for the other side must have told it all of the handshake. The rest is for writers to send: they may
            // be another task, whose place in the socket's queue is not ours to take.
            if received.is_pending() && *owing {
                *owing = poll_send(socket, tls, context)?.is_pending();
            }
            ready!(received);
        }
    }
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

impl<T: AsyncRead + Unpin> Read for Socket<'_, '_, T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(into);
        match Pin::new(&mut *self.socket).poll_read(self.context, &mut buffer) {
            Poll::Ready(result) => result.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
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
