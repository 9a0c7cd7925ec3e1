//! Writing replies made of records: names are compressed, and what does not fit is cut off and said to be.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::record::Names;
use super::{AA, CD, Edns, HEADER, MAX_MESSAGE, QR, Query, RA, RD, Rcode, Record, TC, UDP_SIZE};
use crate::question::Question;
use crate::rtype;

/// The bytes of an OPT record without options.
pub(super) const OPT_LEN: usize = 11;
/// A pointer has 14 bits.
const MAX_POINTER: usize = 0x3fff;

/// What a reply says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// How it went.
    pub rcode: Rcode,
    /// Whether it is from one who must know.
    pub authoritative: bool,
    /// Whether others can be asked.
    pub recursion_available: bool,
    /// Whether the data was verified.
    pub authentic: bool,
    /// Whether it is known to be incomplete whatever fits.
    pub truncated: bool,
}

impl Head {
    /// The flags of a reply to a query.
    pub(super) fn flags(self, query: &Query<'_>) -> u16 {
        let bit = |is: bool, bit: u16| if is { bit } else { 0 };
        QR | query.flags() & (RD | CD)
            | bit(self.authoritative, AA)
            | bit(self.recursion_available, RA)
            | bit(self.authentic, super::AD)
            | bit(self.truncated, TC)
            | self.rcode.0 & 15
    }
}

/// A reply while it is written: answers first, then the authority section, then additional records.
#[derive(Debug)]
pub struct Builder<'a> {
    out: &'a mut Vec<u8>,
    /// Where records must end.
    limit: usize,
    edns: Option<Edns>,
    rcode: Rcode,
    counts: [u16; 3],
    truncated: bool,
    /// The name in the question.
    asked: Question,
    /// Where names stand already, in wire form. Case counts, so that a name comes out as it was put in.
    places: HashMap<Box<[u8]>, u16, RandomState>,
}

impl<'a> Builder<'a> {
    /// Begins a reply of at most `limit` bytes. It repeats the question and speaks EDNS if the query does.
    pub fn new(query: &Query<'_>, head: Head, limit: usize, out: &'a mut Vec<u8>) -> Builder<'a> {
        let edns = query.edns.map(|edns| Edns { size: UDP_SIZE, dnssec_ok: edns.dnssec_ok });
        begin(query, head, out);
        let limit = limit.min(MAX_MESSAGE).saturating_sub(if edns.is_some() { OPT_LEN } else { 0 });
        let (rcode, truncated) = (head.rcode, head.truncated);
        let (asked, counts, places) = (query.question, [0; 3], HashMap::default());
        let mut builder = Builder { out, limit, edns, rcode, counts, truncated, asked, places };
        let name = &query.question_bytes()[..asked.lower().len()];
        builder.note_labels(name, name.len() - 1, HEADER);
        builder
    }

    /// Adds an answer.
    pub fn answer(&mut self, record: &Record) {
        self.push(0, record);
    }

    /// Adds a record about who must know.
    pub fn authority(&mut self, record: &Record) {
        self.push(1, record);
    }

    /// Adds a record that goes with the answer.
    pub fn additional(&mut self, record: &Record) {
        self.push(2, record);
    }

    /// Ends the reply. Returns whether it is cut off.
    pub fn finish(self) -> bool {
        if let Some(edns) = self.edns {
            push_opt(self.out, edns, self.rcode);
        }
        let [answer, authority, additional] = self.counts;
        let additional = additional + u16::from(self.edns.is_some());
        for (place, count) in [answer, authority, additional].into_iter().enumerate() {
            self.out[6 + 2 * place..8 + 2 * place].copy_from_slice(&count.to_be_bytes());
        }
        if self.truncated {
            self.out[2] |= (TC >> 8) as u8;
        }
        self.truncated
    }

    fn push(&mut self, section: usize, record: &Record) {
        if self.truncated {
            return;
        }
        let start = self.out.len();
        self.owner(record);
        for number in [record.rtype, record.class, (record.ttl >> 16) as u16, record.ttl as u16, 0] {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        let data = self.out.len();
        self.rdata(record);
        let len = self.out.len() - data;
        if self.out.len() > self.limit {
            self.out.truncate(start);
            self.truncated = true;
            return;
        }
        let len = u16::try_from(len).expect("less than the limit, which is that of a message");
        self.out[data - 2..data].copy_from_slice(&len.to_be_bytes());
        self.counts[section] += 1;
    }

    fn rdata(&mut self, record: &Record) {
        let Some(names) = Names::of(record.rtype).filter(|names| record.rdata.len() > names.skip) else {
            self.out.extend_from_slice(&record.rdata);
            return;
        };
        let (head, mut rest) = record.rdata.split_at(names.skip);
        self.out.extend_from_slice(head);
        for _ in 0..names.count {
            let Some(len) = name_len(rest) else { break };
            let (name, after) = rest.split_at(len);
            self.name(name, names.compress);
            rest = after;
        }
        self.out.extend_from_slice(rest);
    }

    /// Most records are of the name in the question, whose case is the client's.
    fn owner(&mut self, record: &Record) {
        let wire = record.name.wire();
        if wire.len() > 1 && wire.eq_ignore_ascii_case(self.asked.lower()) {
            self.out.extend_from_slice(&[0xc0, HEADER as u8]);
        } else {
            self.name(wire, true);
        }
    }

    /// Writes a name; its end as a pointer, if it stands somewhere already.
    fn name(&mut self, wire: &[u8], compress: bool) {
        let (start, mut at) = (self.out.len(), 0);
        while wire[at] != 0 {
            if let Some(place) = self.places.get(&wire[at..]).filter(|_| compress) {
                let pointer = (0xc000 | place).to_be_bytes();
                self.out.extend_from_slice(&wire[..at]);
                self.out.extend_from_slice(&pointer);
                return self.note_labels(wire, at, start);
            }
            at += 1 + usize::from(wire[at]);
        }
        self.out.extend_from_slice(wire);
        self.note_labels(wire, at, start);
    }

    /// Remembers where the first labels of a name, up to a place in it, were written.
    fn note_labels(&mut self, wire: &[u8], until: usize, start: usize) {
        let mut at = 0;
        while at < until && start + at <= MAX_POINTER {
            let place = u16::try_from(start + at).expect("a pointer has 14 bits");
            if self.places.contains_key(&wire[at..]) {
                return;
            }
            self.places.insert(wire[at..].into(), place);
            at += 1 + usize::from(wire[at]);
        }
    }
}

/// Writes the header and the question of a reply.
pub(super) fn begin(query: &Query<'_>, head: Head, out: &mut Vec<u8>) {
    out.clear();
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&query.message()[..2]);
    header[2..4].copy_from_slice(&head.flags(query).to_be_bytes());
    header[5] = 1;
    out.extend_from_slice(&header);
    out.extend_from_slice(query.question_bytes());
}

/// Writes an OPT record.
pub(super) fn push_opt(out: &mut Vec<u8>, edns: Edns, rcode: Rcode) {
    let [size_high, size_low] = edns.size.to_be_bytes();
    let flags = if edns.dnssec_ok { 0x80 } else { 0 };
    let opt = rtype::OPT as u8;
    out.extend_from_slice(&[0, 0, opt, size_high, size_low, (rcode.0 >> 4) as u8, 0, flags, 0, 0, 0]);
}

/// The length of the name that bytes begin with; none if they begin with none.
fn name_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            len @ 1..=63 => at += 1 + usize::from(len),
            _ => return None,
        }
    }
}
