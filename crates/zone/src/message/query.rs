//! What a client asks, and what cannot be answered as it was asked.

use super::build::push_opt;
use super::{CD, HEADER, MIN_LIMIT, OPCODE, QR, RD, Rcode, TC, UDP_SIZE, number_at};
use crate::name::Name;
use crate::question::Question;
use crate::rtype;

/// More records than this have no place in a query.
const MAX_COUNTS: [u16; 3] = [1, 1, 2];

/// What came in.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives on the stack for one query; a box would be an allocation for each"
)]
pub enum Reading<'m> {
    /// A query.
    Query(Query<'m>),
    /// Something that is answered with an error.
    Rejected(Rejection<'m>),
    /// Something that is not answered: a reply, or too little to be anything.
    Ignored,
}

/// A query with one question.
#[derive(Debug, Clone, Copy)]
pub struct Query<'m> {
    message: &'m [u8],
    question_end: usize,
    /// What is asked.
    pub question: Question,
    /// The class it is asked for. The cluster's names are answered whatever it is.
    pub class: u16,
    /// What goes with it.
    pub edns: Option<Edns>,
}

/// What one side says of itself with a message (RFC 6891), version 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edns {
    /// How many bytes it takes over UDP.
    pub size: u16,
    /// Whether it wants the records that prove others.
    pub dnssec_ok: bool,
}

impl Default for Edns {
    fn default() -> Edns {
        Edns { size: UDP_SIZE, dnssec_ok: false }
    }
}

/// A query that is answered with an error without being looked at further.
#[derive(Debug, Clone, Copy)]
pub struct Rejection<'m> {
    message: &'m [u8],
    /// Where the question ends, if it is repeated.
    question_end: usize,
    /// What is wrong.
    pub rcode: Rcode,
}

impl<'m> Query<'m> {
    /// The number a reply must have.
    pub fn id(&self) -> u16 {
        number_at(self.message, 0).unwrap_or_default()
    }

    /// The flags as the client set them.
    pub fn flags(&self) -> u16 {
        number_at(self.message, 2).unwrap_or_default()
    }

    /// Whether the client wants others to be asked.
    pub fn recursion_desired(&self) -> bool {
        self.flags() & RD != 0
    }

    /// The message as it came.
    pub fn message(&self) -> &'m [u8] {
        self.message
    }

    /// The question as it came, with type and class: a reply repeats it to the byte, or the client takes it for a forged one.
    pub fn question_bytes(&self) -> &'m [u8] {
        &self.message[HEADER..self.question_end]
    }

    /// The name, with the case the client chose.
    pub fn name(&self) -> Name {
        let wire = &self.message[HEADER..self.question_end - 4];
        Name::from_wire(wire).expect("it was read as one")
    }

    /// Fills the question; none if it cannot be read.
    fn read_question(&mut self) -> Option<()> {
        let end = self.question.fill(self.message, HEADER).ok()?;
        self.question.rtype = number_at(self.message, end)?;
        self.class = number_at(self.message, end + 2)?;
        self.question_end = end + 4;
        Some(())
    }

    /// How many bytes the client takes over UDP.
    pub fn limit(&self) -> usize {
        self.edns.map_or(MIN_LIMIT, |edns| usize::from(edns.size).max(MIN_LIMIT))
    }
}

impl Rejection<'_> {
    /// Writes the reply.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        let flags = number_at(self.message, 2).unwrap_or_default();
        // A query too odd to be read is still told from others by its flags.
        let kept = if self.rcode == Rcode::NOT_IMP { flags & (OPCODE | RD | TC | CD) } else { flags & (RD | TC | CD) };
        let repeated = self.question_end > HEADER;
        let edns = self.rcode == Rcode::BAD_VERS;
        out.extend_from_slice(&self.message[..2]);
        for number in [QR | kept | (self.rcode.0 & 15), u16::from(repeated), 0, 0, u16::from(edns)] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        out.extend_from_slice(&self.message[HEADER..self.question_end]);
        if edns {
            push_opt(out, Edns::default(), self.rcode);
        }
    }
}

/// Takes a message apart.
pub fn read(message: &[u8]) -> Reading<'_> {
    if message.len() < HEADER {
        return Reading::Ignored;
    }
    let number = |place: usize| u16::from_be_bytes([message[2 * place], message[2 * place + 1]]);
    let rejected = |rcode| Reading::Rejected(Rejection { message, question_end: HEADER, rcode });
    if number(1) & QR != 0 {
        return Reading::Ignored;
    }
    if number(1) & OPCODE != 0 {
        return rejected(Rcode::NOT_IMP);
    }
    let counts = [number(3), number(4), number(5)];
    if number(2) != 1 || counts.iter().zip(MAX_COUNTS).any(|(count, most)| *count > most) {
        return rejected(Rcode::FORM_ERR);
    }
    // Filled where it is: it is large, and this is done for every query.
    let mut query = Query { message, question_end: HEADER, question: Question::empty(), class: 0, edns: None };
    if query.read_question().is_none() {
        return rejected(Rcode::FORM_ERR);
    }
    match read_edns(message, query.question_end, counts) {
        None => rejected(Rcode::FORM_ERR),
        Some(Some((_, version))) if version != 0 => {
            Reading::Rejected(Rejection { message, question_end: query.question_end, rcode: Rcode::BAD_VERS })
        }
        Some(edns) => {
            query.edns = edns.map(|(edns, _)| edns);
            Reading::Query(query)
        }
    }
}

/// Looks for an OPT record among what follows the question. The outer value is absent if that cannot be read.
#[expect(clippy::option_option, reason = "malformed, absent and present are three things")]
fn read_edns(message: &[u8], at: usize, counts: [u16; 3]) -> Option<Option<(Edns, u8)>> {
    let (mut at, mut found) = (at, None);
    for (section, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            let start = at;
            let end = name_end(message, at)?;
            let rdlen = usize::from(number_at(message, end + 8)?);
            let rdata = message.get(end + 10..end + 10 + rdlen)?;
            at = end + 10 + rdlen;
            if section != 2 || number_at(message, end)? != rtype::OPT {
                continue;
            }
            // One at most, of the root, with options that add up (RFC 6891, 6.1.1).
            if found.is_some() || message[start] != 0 || !are_options(rdata) {
                return None;
            }
            let edns = Edns { size: number_at(message, end + 2)?, dnssec_ok: message[end + 6] & 0x80 != 0 };
            found = Some((edns, message[end + 5]));
        }
    }
    Some(found)
}

/// The place after a name. Where its pointers lead is not looked at: nothing is done with it.
fn name_end(message: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            len @ 1..=63 => at += 1 + usize::from(len),
            192.. => return Some(at + 2),
            _ => return None,
        }
    }
}

fn are_options(rdata: &[u8]) -> bool {
    let mut rest = rdata;
    while !rest.is_empty() {
        let Some(len) = number_at(rest, 2) else { return false };
        let Some(after) = rest.get(4 + usize::from(len)..) else { return false };
        rest = after;
    }
    true
}
