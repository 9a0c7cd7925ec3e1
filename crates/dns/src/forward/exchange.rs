//! One question to a server, and its answer: over a datagram or a stream.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use fairlead_zone::message::{MAX_MESSAGE, Message, QR, Rcode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::ask::Ask;
use crate::random;

/// The longest datagram that is taken. We say that we take less.
const LONGEST: usize = 4096;

/// Number of answers that do not match a question after which no more are read (RFC 5452, 9.2;
/// Unbound, `unwanted-reply-threshold`): a forger is guessing, and must not have more guesses.
const WRONG_ANSWERS: usize = 10;

/// An answer by datagram.
pub(super) enum Datagram {
    /// The answer to the question.
    Answer(Message),
    /// Too many answers did not match the question.
    Flooded,
}

/// Opens a socket with a random port (RFC 5452, 9.2), which receives from this upstream only. The
/// kernel chooses the port among `net.ipv4.ip_local_port_range` by its secure random numbers
/// (net/ipv4/udp.c, `udp_lib_get_port`).
pub(super) async fn connect_udp(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(to).await?;
    Ok(socket)
}

/// Asks by datagram. Datagrams that do not answer this question are passed over, up to
/// [`WRONG_ANSWERS`].
pub(super) async fn udp(socket: &UdpSocket, ask: &Ask) -> io::Result<Datagram> {
    let id = u16::from_be_bytes(random::bytes()?);
    socket.send(&ask.message(id)).await?;
    let mut buffer = vec![0; LONGEST];
    for _ in 0..WRONG_ANSWERS {
        let length = socket.recv(&mut buffer).await?;
        if let Some(message) = buffer.get(..length).and_then(|bytes| answer(bytes, id, ask)) {
            return Ok(Datagram::Answer(message));
        }
    }
    Ok(Datagram::Flooded)
}

/// Asks by stream.
pub(super) async fn tcp(stream: &mut TcpStream, ask: &Ask) -> io::Result<Message> {
    let id = u16::from_be_bytes(random::bytes()?);
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
        // Servers that cannot read a question, or do not answer it, may not repeat it. An answer
        // must (RFC 5452, 9.1).
        None => [Rcode::FORM_ERR, Rcode::SERV_FAIL, Rcode::NOT_IMP, Rcode::REFUSED].contains(&message.rcode),
    };
    (message.id == id && message.flags & QR != 0 && asked).then_some(message)
}
