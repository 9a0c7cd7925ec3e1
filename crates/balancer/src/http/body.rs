//! The body of a message of HTTP/1 as data alone, for who frames it otherwise.

use bytes::{Bytes, BytesMut};

use super::buffer::{Buffers, Inlet};
use super::chunks::{Chunks, Malformed, Piece};
use super::head::Framing;

/// What is still to come of a body.
#[derive(Debug)]
pub(crate) struct Body {
    left: Left,
    trailers: Vec<u8>,
}

#[derive(Debug)]
enum Left {
    Length(u64),
    Chunked(Chunks),
    /// Until the connection ends.
    End,
}

impl Body {
    /// A body so framed.
    pub(crate) fn new(framing: Framing) -> Body {
        let left = match framing {
            Framing::Empty => Left::Length(0),
            Framing::Length(length) => Left::Length(length),
            Framing::Chunked => Left::Chunked(Chunks::default()),
            Framing::End => Left::End,
        };
        Body { left, trailers: Vec::new() }
    }

    /// Whether all of it was taken.
    pub(crate) fn done(&self) -> bool {
        match &self.left {
            Left::Length(left) => *left == 0,
            Left::Chunked(chunks) => chunks.done(),
            Left::End => false,
        }
    }

    /// The lines of its trailers, with the empty one at their end; once it is done.
    pub(crate) fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// The connection ended; whether that is the end of the body.
    pub(crate) fn end(&mut self) -> bool {
        if matches!(self.left, Left::End) {
            self.left = Left::Length(0);
        }
        self.done()
    }

    /// The data among what was read, which may be none.
    pub(crate) fn take(&mut self, inlet: &mut Inlet, buffers: &Buffers) -> Result<Bytes, Malformed> {
        let chunks = match &mut self.left {
            Left::Chunked(chunks) => chunks,
            Left::Length(left) => {
                let count = inlet.bytes().len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                return Ok(cut(inlet, count, buffers));
            }
            Left::End => return Ok(cut(inlet, inlet.bytes().len(), buffers)),
        };
        let mut data = BytesMut::new();
        while !inlet.is_empty() && !chunks.done() {
            let count = match chunks.step(inlet.bytes())? {
                Piece::Framing(count) => count,
                Piece::Data(count) => {
                    data.extend_from_slice(&inlet.bytes()[..count]);
                    count
                }
                Piece::Trailer(count) => {
                    self.trailers.extend_from_slice(&inlet.bytes()[..count]);
                    count
                }
                Piece::End => 0,
            };
            inlet.consume(count, buffers);
        }
        Ok(data.freeze())
    }
}

fn cut(inlet: &mut Inlet, count: usize, buffers: &Buffers) -> Bytes {
    let data = Bytes::copy_from_slice(&inlet.bytes()[..count]);
    inlet.consume(count, buffers);
    data
}
