//! One question to a server, and its answer: over a datagram or a stream.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use fairlead_zone::message::{MAX_MESSAGE, Message, QR};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::ask::Ask;

/// The longest datagram that is taken. We say that we take less.
const LONGEST: usize = 4096;

/// A socket with a port of its own, which hears nobody else.
pub(super) async fn connect_udp(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(to).await?;
    Ok(socket)
}

/// Asks by datagram. What does not answer this question is not heard.
pub(super) async fn udp(socket: &UdpSocket, ask: &Ask) -> io::Result<Message> {
    let id = fastrand::u16(..);
    socket.send(&ask.message(id)).await?;
    let mut buffer = vec![0; LONGEST];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if let Some(message) = buffer.get(..length).and_then(|bytes| answer(bytes, id, ask)) {
            return Ok(message);
        }
    }
}

/// Asks by stream.
pub(super) async fn tcp(stream: &mut TcpStream, ask: &Ask) -> io::Result<Message> {
    let id = fastrand::u16(..);
    let question = ask.message(id);
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question.as_slice()].concat()).await?;
    let length = usize::from(stream.read_u16().await?);
    let mut bytes = vec![0; length.min(MAX_MESSAGE)];
    stream.read_exact(&mut bytes).await?;
    answer(&bytes, id, ask)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "that is no answer to the question"))
}

/// The message, if it answers this question.
fn answer(bytes: &[u8], id: u16, ask: &Ask) -> Option<Message> {
    let message = Message::parse(bytes).ok()?;
    let asked = match &message.question {
        Some((name, rtype, class)) => *name == ask.name && *rtype == ask.rtype && *class == ask.class,
        // Some repeat no question when they say no.
        None => message.rcode.0 != 0,
    };
    (message.id == id && message.flags & QR != 0 && asked).then_some(message)
}
