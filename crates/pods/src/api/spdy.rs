//! SPDY/3.1 frames, as far as port-forwarding uses them: bytes to frames and back. Pure. What comes from outside is bounded:
//! a control frame is small, a header block stays small when it is unpacked, and data is handed on in the pieces it comes in.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use headers::{Packer, Unpacker};

mod headers;

/// The largest control frame.
const MAX_CONTROL: usize = 64 << 10;
/// The length of every frame's head.
const HEAD: usize = 8;
const VERSION: u16 = 3;
const FIN: u8 = 1;

/// What a stream is ended with when it is refused or given up.
pub(super) mod reset {
    /// The peer broke the rules.
    pub(crate) const PROTOCOL_ERROR: u32 = 1;
    /// There are too many streams.
    pub(crate) const REFUSED: u32 = 3;
    /// Nobody wants it any more.
    pub(crate) const CANCEL: u32 = 5;
}

/// Header names and values of a stream.
pub(super) type Headers = Vec<(String, String)>;

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// A new stream.
    Open { stream: u32, headers: Headers, fin: bool },
    /// The stream is accepted.
    Reply { stream: u32 },
    /// The stream is over, at once.
    Reset { stream: u32, status: u32 },
    /// Is anybody there? The answer is the same frame.
    Ping(u32),
    /// The peer opens no more streams.
    Away { last: u32 },
    /// Data, or a piece of it.
    Data { stream: u32, data: Bytes, fin: bool },
    /// Settings, windows and the like, which change nothing here.
    Other,
}

/// Bytes that are no SPDY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Broken {
    #[error("a control frame of {0} bytes")]
    TooLarge(usize),
    #[error("version {0} of SPDY")]
    Version(u16),
    #[error("a control frame that is too short")]
    TooShort,
    #[error("a header block that cannot be read")]
    Headers,
}

/// Makes frames of bytes.
#[derive(Debug)]
pub(super) struct Reader {
    buffer: BytesMut,
    /// The data frame whose rest is still to come.
    open: Option<Rest>,
    headers: Unpacker,
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    stream: u32,
    left: usize,
    fin: bool,
}

impl Reader {
    pub(super) fn new() -> Reader {
        Reader { buffer: BytesMut::new(), open: None, headers: Unpacker::new() }
    }

    /// More bytes. Take all frames there are before the next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame, or piece of one, if enough bytes are there.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, Broken> {
        if let Some(rest) = self.open {
            return Ok(self.piece(rest));
        }
        if self.buffer.len() < HEAD {
            return Ok(None);
        }
        let word = u32::from_be_bytes([self.buffer[0], self.buffer[1], self.buffer[2], self.buffer[3]]);
        let length = u32::from_be_bytes([0, self.buffer[5], self.buffer[6], self.buffer[7]]) as usize;
        let flags = self.buffer[4];
        if word >> 31 == 0 {
            self.buffer.advance(HEAD);
            let rest = Rest { stream: word, left: length, fin: flags & FIN != 0 };
            if length == 0 {
                return Ok(Some(Frame::Data { stream: word, data: Bytes::new(), fin: rest.fin }));
            }
            self.open = Some(rest);
            return Ok(self.piece(rest));
        }
        let version = (word >> 16) as u16 & 0x7fff;
        if version != VERSION {
            return Err(Broken::Version(version));
        }
        if length > MAX_CONTROL {
            return Err(Broken::TooLarge(length));
        }
        if self.buffer.len() < HEAD + length {
            return Ok(None);
        }
        self.buffer.advance(HEAD);
        let body = self.buffer.split_to(length).freeze();
        self.control(word as u16, flags, body).map(Some)
    }

    /// What is there of a data frame.
    fn piece(&mut self, rest: Rest) -> Option<Frame> {
        let here = rest.left.min(self.buffer.len());
        if here == 0 {
            return None;
        }
        let data = self.buffer.split_to(here).freeze();
        let left = rest.left - here;
        self.open = (left > 0).then_some(Rest { left, ..rest });
        Some(Frame::Data { stream: rest.stream, data, fin: rest.fin && left == 0 })
    }

    fn control(&mut self, kind: u16, flags: u8, mut body: Bytes) -> Result<Frame, Broken> {
        const STREAM: u32 = 0x7fff_ffff;
        let word = |body: &mut Bytes| body.try_get_u32().map_err(|_| Broken::TooShort);
        Ok(match kind {
            1 => {
                let stream = word(&mut body)? & STREAM;
                word(&mut body)?;
                body.try_get_u16().map_err(|_| Broken::TooShort)?;
                Frame::Open { stream, headers: self.headers.unpack(&body)?, fin: flags & FIN != 0 }
            }
            2 => {
                let stream = word(&mut body)? & STREAM;
                self.headers.unpack(&body)?;
                Frame::Reply { stream }
            }
            3 => Frame::Reset { stream: word(&mut body)? & STREAM, status: word(&mut body)? },
            6 => Frame::Ping(word(&mut body)?),
            7 => Frame::Away { last: word(&mut body)? & STREAM },
            // Later headers of a stream say nothing we need, but the packing goes on over all blocks.
            8 => {
                word(&mut body)?;
                self.headers.unpack(&body)?;
                Frame::Other
            }
            _ => Frame::Other,
        })
    }
}

/// Makes bytes of frames.
#[derive(Debug)]
pub(super) struct Writer {
    headers: Packer,
}

impl Writer {
    pub(super) fn new() -> Writer {
        Writer { headers: Packer::new() }
    }

    /// Adds a frame to what is to be sent.
    pub(super) fn write(&mut self, frame: &Frame, out: &mut BytesMut) {
        match frame {
            Frame::Open { stream, headers, fin } => {
                let block = self.headers.pack(headers);
                control(out, 1, u8::from(*fin), 10 + block.len());
                out.put_u32(*stream);
                out.put_u32(0);
                out.put_u16(0);
                out.put_slice(&block);
            }
            Frame::Reply { stream } => {
                let block = self.headers.pack(&[]);
                control(out, 2, 0, 4 + block.len());
                out.put_u32(*stream);
                out.put_slice(&block);
            }
            Frame::Reset { stream, status } => {
                control(out, 3, 0, 8);
                out.put_u32(*stream);
                out.put_u32(*status);
            }
            Frame::Ping(id) => {
                control(out, 6, 0, 4);
                out.put_u32(*id);
            }
            Frame::Away { last } => {
                control(out, 7, 0, 8);
                out.put_u32(*last);
                out.put_u32(0);
            }
            Frame::Data { stream, data, fin } => {
                out.put_u32(stream & 0x7fff_ffff);
                put_length(out, u8::from(*fin), data.len());
                out.put_slice(data);
            }
            Frame::Other => {}
        }
    }
}

fn control(out: &mut BytesMut, kind: u16, flags: u8, length: usize) {
    out.put_u16(0x8000 | VERSION);
    out.put_u16(kind);
    put_length(out, flags, length);
}

fn put_length(out: &mut BytesMut, flags: u8, length: usize) {
    let [_, high, middle, low] = u32::try_from(length).expect("our frames are small").to_be_bytes();
    out.put_slice(&[flags, high, middle, low]);
}

#[cfg(test)]
pub(super) mod tests;
