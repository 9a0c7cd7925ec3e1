//! One client: what it does over and over.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::multiplexed::Multiplexed;
use super::{Notes, tls};
use crate::backend::{LARGE_PATH, end_of_head};
use crate::kinds::Kind;

/// A client with its connection, if it keeps one.
pub(crate) struct Client {
    kind: Kind,
    to: SocketAddr,
    connector: TlsConnector,
    kept: Option<Kept>,
    buffer: Vec<u8>,
}

enum Kept {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Multiplexed(Rc<Multiplexed>),
}

/// What small messages of TCP are.
const MESSAGE: usize = 64;

impl Client {
    /// Connects, if its kind keeps connections.
    pub(crate) async fn new(kind: Kind, to: SocketAddr) -> anyhow::Result<Client> {
        let connector = tls::connector(kind)?;
        let mut client = Client { kind, to, connector, kept: None, buffer: vec![0; 256 * 1024] };
        client.kept = client.keep().await?;
        Ok(client)
    }

    /// Connects anew after something went wrong; false: it cannot.
    pub(crate) async fn again(&mut self) -> bool {
        match self.keep().await {
            Ok(kept) => {
                self.kept = kept;
                true
            }
            Err(_) => false,
        }
    }

    async fn keep(&self) -> io::Result<Option<Kept>> {
        Ok(match self.kind {
            Kind::TcpKeep | Kind::TcpStream | Kind::HttpKeep | Kind::HttpOne | Kind::HttpLarge => {
                Some(Kept::Plain(self.connect().await?))
            }
            Kind::TlsKeep | Kind::TlsLarge => Some(Kept::Tls(Box::new(self.shake().await?))),
            Kind::H2 => Some(Kept::Multiplexed(Rc::new(Multiplexed::new(self.shake().await?).await?))),
            Kind::TcpConnect | Kind::HttpClose | Kind::TlsClose | Kind::Handshake | Kind::HandshakeRsa => None,
        })
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn shake(&self) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(tls::name(), self.connect().await?).await
    }

    /// Does it once; of HTTP/2, ten at a time until the time is over.
    pub(crate) async fn once(&mut self, notes: &Notes) -> io::Result<()> {
        let since = Instant::now();
        match self.kind {
            Kind::TcpStream => return self.receive(notes).await,
            Kind::H2 => return self.multiplexed(notes).await,
            Kind::TcpConnect => {
                let mut stream = self.connect().await?;
                echo(&mut stream, &mut self.buffer).await?;
            }
            Kind::HttpClose => {
                let mut stream = self.connect().await?;
                request(&mut stream, "/", "close", &mut self.buffer).await?;
            }
            Kind::TlsClose => {
                let mut stream = self.shake().await?;
                request(&mut stream, "/", "close", &mut self.buffer).await?;
            }
            Kind::Handshake | Kind::HandshakeRsa => drop(self.shake().await?),
            Kind::TcpKeep | Kind::HttpKeep | Kind::HttpOne | Kind::HttpLarge | Kind::TlsKeep | Kind::TlsLarge => {
                self.on_kept().await?;
            }
        }
        notes.done(since);
        Ok(())
    }

    async fn on_kept(&mut self) -> io::Result<()> {
        let path = if matches!(self.kind, Kind::HttpLarge | Kind::TlsLarge) { LARGE_PATH } else { "/" };
        match (&mut self.kept, self.kind) {
            (Some(Kept::Plain(stream)), Kind::TcpKeep) => echo(stream, &mut self.buffer).await,
            (Some(Kept::Plain(stream)), _) => request(stream, path, "keep-alive", &mut self.buffer).await,
            (Some(Kept::Tls(stream)), _) => request(&mut **stream, path, "keep-alive", &mut self.buffer).await,
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    async fn receive(&mut self, notes: &Notes) -> io::Result<()> {
        let Some(Kept::Plain(stream)) = &mut self.kept else { return Err(io::ErrorKind::NotConnected.into()) };
        let count = stream.read(&mut self.buffer).await?;
        notes.received(count);
        if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    async fn multiplexed(&mut self, notes: &Notes) -> io::Result<()> {
        match &self.kept {
            Some(Kept::Multiplexed(connection)) => connection.work(notes).await,
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

async fn echo(stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    stream.write_all(&[7; MESSAGE]).await?;
    stream.read_exact(&mut buffer[..MESSAGE]).await.map(drop)
}

/// A request, and all of its answer.
async fn request<T>(stream: &mut T, path: &str, connection: &str, buffer: &mut [u8]) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: bench\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    let mut filled = 0;
    let end = loop {
        let count = stream.read(&mut buffer[filled..]).await?;
        filled += count;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = end_of_head(&buffer[..filled]) {
            break end;
        }
    };
    let mut left = length(&buffer[..end])?.saturating_sub(filled - end);
    while left > 0 {
        match stream.read(buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}

/// How long the body of a good answer is.
fn length(head: &[u8]) -> io::Result<usize> {
    let bad = || io::Error::other(format!("an answer that is not good: {}", String::from_utf8_lossy(head)));
    let text = std::str::from_utf8(head).map_err(|_| bad())?;
    if !text.starts_with("HTTP/1.1 200") {
        return Err(bad());
    }
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    length.ok_or_else(bad)
}
