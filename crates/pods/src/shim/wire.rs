//! What a shim and the runner say to each other over the shim's socket: frames of a letter, a length and as many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// No frame has more bytes.
pub(crate) const LARGEST: usize = 64 * 1024;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To the shim: a signal for the container's process, one byte.
    Signal,
    /// To the shim: send me output from now on.
    Attach,
    /// To the shim: input for the process. Without bytes: that was all.
    Input,
    /// To the shim: the size of the terminal, columns and rows.
    Resize,
    /// From the shim: how things are, as JSON; first when somebody comes, then when it changes.
    State,
    /// From the shim: output.
    Output,
    /// From the shim: complaints.
    Complaints,
}

const LETTERS: [(Kind, u8); 7] = [
    (Kind::Signal, b's'),
    (Kind::Attach, b'a'),
    (Kind::Input, b'i'),
    (Kind::Resize, b'r'),
    (Kind::State, b'S'),
    (Kind::Output, b'o'),
    (Kind::Complaints, b'e'),
];

/// Sends a frame; more bytes than one holds are several.
pub(crate) async fn send(to: &mut (impl AsyncWrite + Unpin), kind: Kind, bytes: &[u8]) -> io::Result<()> {
    let letter = LETTERS.iter().find(|(known, _)| *known == kind).map_or(b'?', |(_, letter)| *letter);
    let mut rest = bytes;
    loop {
        let (part, after) = rest.split_at(rest.len().min(LARGEST));
        let length = u32::try_from(part.len()).expect("the largest frame is smaller").to_be_bytes();
        let mut frame = Vec::with_capacity(5 + part.len());
        frame.push(letter);
        frame.extend_from_slice(&length);
        frame.extend_from_slice(part);
        to.write_all(&frame).await?;
        rest = after;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

/// Receives a frame; `None` at the end.
pub(crate) async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        done => done?,
    };
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "no frame of ours");
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let kind = LETTERS.iter().find(|(_, letter)| *letter == head[0]).map(|(kind, _)| *kind).ok_or_else(wrong)?;
    if length > LARGEST {
        return Err(wrong());
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(Some((kind, bytes)))
}
