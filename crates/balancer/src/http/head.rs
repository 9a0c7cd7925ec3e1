//! What requests and answers of HTTP/1 have in common: fields that frame the body, and those for one connection only. Found in
//! one look over what `httparse` found; the rest is copied as it stands.

use std::mem::MaybeUninit;

use httparse::Header;

use super::forwarded::line;
use super::name::{self, Name};
use super::refusal::Refusal;

/// How many fields a head may have.
pub(crate) const FIELDS: usize = 128;
/// How long a head may be; buffers are as large.
pub(crate) const LONGEST: usize = 64 << 10;
/// How many words `Connection` may have: each is compared with each field.
const WORDS: usize = 32;

/// Room for the fields of a head.
pub(crate) type Room<'a> = [MaybeUninit<Header<'a>>; FIELDS];

/// Room with nothing in it, which costs nothing.
pub(crate) fn room<'a>() -> Room<'a> {
    [const { MaybeUninit::uninit() }; FIELDS]
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    Empty,
    /// By its length, which is not 0.
    Length(u64),
    /// By chunks.
    Chunked,
    /// By the end of the connection; answers only.
    End,
}

/// What the fields of a head say about the message and its connection.
#[derive(Debug)]
pub(crate) struct Survey {
    kinds: [Name; FIELDS],
    /// `Content-Length`.
    pub(crate) length: Option<u64>,
    /// True if `Content-Length` is written as a number is: `07` is not.
    plain_length: bool,
    /// `Transfer-Encoding: chunked`.
    pub(crate) chunked: bool,
    /// `Connection: close`.
    pub(crate) close: bool,
    /// `Connection: keep-alive`.
    pub(crate) keep_alive: bool,
    /// `Connection: upgrade`.
    pub(crate) upgrade: bool,
    /// `Connection` names fields.
    named: bool,
}

impl Survey {
    /// Looks at each field of a head that is the whole of `head`.
    pub(crate) fn of(head: &[u8], fields: &[Header<'_>]) -> Result<Survey, Refusal> {
        let mut survey = Survey {
            kinds: [Name::Other; FIELDS],
            length: None,
            plain_length: true,
            chunked: false,
            close: false,
            keep_alive: false,
            upgrade: false,
            named: false,
        };
        if !head.ends_with(b"\r\n\r\n") {
            return Err(Refusal::LINES);
        }
        for (field, kind) in fields.iter().zip(&mut survey.kinds) {
            if !head[..start(head, field)].ends_with(b"\r\n") {
                return Err(Refusal::LINES);
            }
            *kind = Name::of(field.name.as_bytes());
        }
        for (index, field) in fields.iter().enumerate() {
            survey.see(survey.kinds[index], field.value)?;
        }
        if survey.chunked && survey.length.is_some() {
            return Err(Refusal::TWO_FRAMINGS);
        }
        Ok(survey)
    }

    fn see(&mut self, kind: Name, value: &[u8]) -> Result<(), Refusal> {
        match kind {
            Name::Connection => self.connection(value)?,
            Name::ContentLength => {
                let before = self.length.replace(name::length(value).ok_or(Refusal::LENGTH)?);
                if before.is_some() {
                    return Err(Refusal::LENGTH);
                }
                self.plain_length = value.len() == 1 || !value.starts_with(b"0");
            }
            Name::TransferEncoding => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::ENCODING);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for (index, word) in name::words(value).enumerate() {
            if index == WORDS {
                return Err(Refusal::FIELDS);
            }
            if word.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if word.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if word.eq_ignore_ascii_case(b"upgrade") {
                self.upgrade = true;
            } else {
                self.named = true;
            }
        }
        Ok(())
    }

    /// What the field at this place is.
    pub(crate) fn kind(&self, index: usize) -> Name {
        self.kinds[index]
    }

    /// Whether `Connection` names this field, and may.
    pub(crate) fn names(&self, fields: &[Header<'_>], index: usize) -> bool {
        let name = fields[index].name.as_bytes();
        self.named
            && self.kinds[index].may_be_named()
            && (0..fields.len())
                .filter(|other| self.kinds[*other] == Name::Connection)
                .any(|other| name::words(fields[other].value).any(|word| word.eq_ignore_ascii_case(name)))
    }

    /// Writes the fields that frame a message and are not copied, in canonical form: a backend that
    /// reads `Transfer-Encoding:\tCHUNKED` in another way than this process would see other
    /// messages (request smuggling). `chunked`, `length`: which of the two may be written.
    pub(crate) fn frame(&self, chunked: bool, length: bool, out: &mut Vec<u8>) {
        if chunked && self.chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if let Some(value) = self.length.filter(|_| length && !self.plain_length) {
            line(out, "Content-Length", value.to_string().as_bytes());
        }
    }

    /// True if `Content-Length` may be copied as it stands.
    pub(crate) fn has_plain_length(&self) -> bool {
        self.plain_length
    }

    /// Writes the fields that are to be passed on, in runs as they stand.
    pub(crate) fn copy(&self, head: &[u8], fields: &[Header<'_>], keep: impl Fn(Name) -> bool, out: &mut Vec<u8>) {
        let mut run = None;
        for (index, field) in fields.iter().enumerate() {
            let kept = keep(self.kinds[index]) && !self.names(fields, index);
            match (kept, run) {
                (true, None) => run = Some(start(head, field)),
                (false, Some(from)) => {
                    out.extend_from_slice(&head[from..start(head, field)]);
                    run = None;
                }
                _ => {}
            }
        }
        if let Some(from) = run {
            out.extend_from_slice(&head[from..head.len() - 2]);
        }
    }
}

/// Where in the head a field begins.
fn start(head: &[u8], field: &Header<'_>) -> usize {
    (field.name.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize).min(head.len())
}

/// Whether there may be a whole head in bytes of which so many were looked at before: a blank line, by any line ends.
pub(crate) fn may_be_whole(bytes: &[u8], before: usize) -> bool {
    let from = before.saturating_sub(3);
    bytes[from..].windows(2).any(|two| two == b"\n\n") || bytes[from..].windows(3).any(|three| three == b"\n\r\n")
}
