//! Where does a chunked body end, and what in it is data? Read strictly: whoever reads the same bytes after us must not find
//! another end.
//!
//! ```text
//! Size -(;)-> Extension -> SizeLf -> Data -> DataCr -> DataLf -> Size ...
//!                                \-(0)-> Line -> Trailer -> TrailerLf -> Line ... -> LastLf -> Done
//! ```

/// How far the reading of a chunked body has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    state: State,
    /// What is left of the chunk; in [`State::Size`] what was read of its size.
    left: u64,
    /// Digits of the size so far.
    digits: u8,
    /// Bytes of the extensions of a chunk, or of all trailers.
    extra: u32,
    /// Bytes of data so far.
    data: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Line,
    Name,
    Value,
    ValueLf,
    LastLf,
    Done,
}

/// Some bytes of a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes say how long chunks are.
    Framing(usize),
    /// So many bytes are data.
    Data(usize),
    /// So many bytes are trailer fields with their line ends.
    Trailer(usize),
    /// The body is over; nothing more belongs to it.
    End,
}

/// The body is not chunked as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// More digits than any size needs; it also keeps sizes from overflowing.
const DIGITS: u8 = 15;
/// How long the extensions of a chunk may be, and all trailers.
const EXTENSION: u32 = 256;
const TRAILERS: u32 = 8 << 10;

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks { state: State::Size, left: 0, digits: 0, extra: 0, data: 0 }
    }
}

impl Chunks {
    /// Whether the end was read.
    pub fn done(&self) -> bool {
        self.state == State::Done
    }

    /// How many bytes of data were read.
    pub fn data(&self) -> u64 {
        self.data
    }

    /// How many of these bytes belong to the body, up to its end.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut taken = 0;
        while taken < bytes.len() {
            match self.step(&bytes[taken..])? {
                Piece::Framing(n) | Piece::Data(n) | Piece::Trailer(n) => taken += n,
                Piece::End => break,
            }
        }
        Ok(taken)
    }

    /// What the next bytes are, of which there must be some.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Piece, Malformed> {
        if self.state == State::Done {
            return Ok(Piece::End);
        }
        if self.state == State::Data {
            let taken = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= taken as u64;
            self.data += taken as u64;
            if self.left == 0 {
                self.state = State::DataCr;
            }
            return Ok(Piece::Data(taken));
        }
        self.lines(bytes)
    }

    /// Everything between data: byte by byte, until data, the end, or a change between framing and trailers.
    fn lines(&mut self, bytes: &[u8]) -> Result<Piece, Malformed> {
        let trailer = self.in_trailer();
        for (index, byte) in bytes.iter().enumerate() {
            self.byte(*byte)?;
            let taken = index + 1;
            if matches!(self.state, State::Data | State::Done) || self.in_trailer() != trailer {
                return Ok(if trailer { Piece::Trailer(taken) } else { Piece::Framing(taken) });
            }
        }
        Ok(if trailer { Piece::Trailer(bytes.len()) } else { Piece::Framing(bytes.len()) })
    }

    fn in_trailer(&self) -> bool {
        matches!(self.state, State::Line | State::Name | State::Value | State::ValueLf | State::LastLf)
    }

    fn byte(&mut self, byte: u8) -> Result<(), Malformed> {
        self.state = match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (State::Size, b'\r') if self.digits > 0 => State::SizeLf,
            (State::Size, b';') if self.digits > 0 => self.more(State::Extension, EXTENSION)?,
            (State::Extension, b'\r') => State::SizeLf,
            (State::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.more(State::Extension, EXTENSION)?,
            (State::SizeLf, b'\n') => self.sized(),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size,
            (State::Line, b'\r') => State::LastLf,
            (State::Line, byte) if is_token(byte) => self.more(State::Name, TRAILERS)?,
            (State::Name, b':') => self.more(State::Value, TRAILERS)?,
            (State::Name, byte) if is_token(byte) => self.more(State::Name, TRAILERS)?,
            (State::Value, b'\r') => State::ValueLf,
            (State::Value, b'\t' | b' '..=b'~' | 0x80..) => self.more(State::Value, TRAILERS)?,
            (State::ValueLf, b'\n') => State::Line,
            (State::LastLf, b'\n') => State::Done,
            _ => return Err(Malformed),
        };
        Ok(())
    }

    fn digit(&mut self, byte: u8) -> Result<State, Malformed> {
        self.digits += 1;
        if self.digits > DIGITS {
            return Err(Malformed);
        }
        let value = (byte as char).to_digit(16).ok_or(Malformed)?;
        self.left = self.left << 4 | u64::from(value);
        Ok(State::Size)
    }

    /// The size has been read.
    fn sized(&mut self) -> State {
        self.digits = 0;
        self.extra = 0;
        if self.left == 0 { State::Line } else { State::Data }
    }

    fn more(&mut self, next: State, most: u32) -> Result<State, Malformed> {
        self.extra += 1;
        if self.extra > most { Err(Malformed) } else { Ok(next) }
    }
}

/// Whether a byte may stand in the name of a field.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
