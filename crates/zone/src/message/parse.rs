//! Reading whole messages, as others send them: replies of upstream servers.

use super::record::Names;
use super::{Edns, HEADER, Rcode, Record, TC, number_at};
use crate::name::{Name, NameError};
use crate::rtype;

/// A message taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number.
    pub id: u16,
    /// Its flags, the rcode not among them.
    pub flags: u16,
    /// How it went, with what EDNS adds.
    pub rcode: Rcode,
    /// What was asked: name, type and class.
    pub question: Option<(Name, u16, u16)>,
    /// Answers.
    pub answer: Vec<Record>,
    /// Records about who must know.
    pub authority: Vec<Record>,
    /// What goes with them, without the OPT record.
    pub additional: Vec<Record>,
    /// What the other side says of itself.
    pub edns: Option<Edns>,
}

/// Why a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends too early.
    #[error("the message ends within a record")]
    Cut,
    /// A name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The data of a record does not end where it says.
    #[error("a record's data does not have its length")]
    Data,
    /// There are several questions.
    #[error("there is more than one question")]
    Questions,
}

impl Message {
    /// Reads a message. What follows its last record is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Message, Malformed> {
        let number = |place: usize| number_at(bytes, 2 * place).ok_or(Malformed::Cut);
        let flags = number(1)?;
        let (question, mut at) = read_question(bytes, number(2)?)?;
        let mut sections = [Vec::new(), Vec::new(), Vec::new()];
        for (place, section) in sections.iter_mut().enumerate() {
            for _ in 0..number(3 + place)? {
                let (record, end) = read_record(bytes, at)?;
                section.push(record);
                at = end;
            }
        }
        let [answer, authority, mut additional] = sections;
        let opt = additional.iter().position(|record| record.rtype == rtype::OPT).map(|place| additional.remove(place));
        let high = opt.as_ref().map_or(0, |opt| (opt.ttl >> 24) as u16);
        let edns = opt.map(|opt| Edns { size: opt.class, dnssec_ok: opt.ttl & 0x8000 != 0 });
        let rcode = Rcode(high << 4 | flags & 15);
        Ok(Message { id: number(0)?, flags: flags & !15, rcode, question, answer, authority, additional, edns })
    }

    /// Whether it is cut off.
    pub fn is_truncated(&self) -> bool {
        self.flags & TC != 0
    }
}

type Asked = Option<(Name, u16, u16)>;

fn read_question(bytes: &[u8], count: u16) -> Result<(Asked, usize), Malformed> {
    match count {
        0 => Ok((None, HEADER)),
        1 => {
            let (name, end) = Name::read(bytes, HEADER)?;
            let rtype = number_at(bytes, end).ok_or(Malformed::Cut)?;
            let class = number_at(bytes, end + 2).ok_or(Malformed::Cut)?;
            Ok((Some((name, rtype, class)), end + 4))
        }
        _ => Err(Malformed::Questions),
    }
}

fn read_record(bytes: &[u8], at: usize) -> Result<(Record, usize), Malformed> {
    let (name, at) = Name::read(bytes, at)?;
    let number = |place: usize| number_at(bytes, at + 2 * place).ok_or(Malformed::Cut);
    let (rtype, class, ttl) = (number(0)?, number(1)?, u32::from(number(2)?) << 16 | u32::from(number(3)?));
    let (start, len) = (at + 10, usize::from(number(4)?));
    let raw = bytes.get(start..start + len).ok_or(Malformed::Cut)?;
    let rdata = match Names::of(rtype) {
        Some(names) if len > 0 => read_rdata(bytes, start, start + len, names)?,
        _ => raw.into(),
    };
    Ok((Record { name, rtype, class, ttl, rdata }, start + len))
}

/// The data of a record, its names written out.
fn read_rdata(bytes: &[u8], start: usize, end: usize, names: Names) -> Result<Box<[u8]>, Malformed> {
    // Names lead backward only, so what is after the data need not be seen.
    let bytes = &bytes[..end];
    let mut rdata = bytes.get(start..start + names.skip).ok_or(Malformed::Data)?.to_vec();
    let mut at = start + names.skip;
    for _ in 0..names.count {
        let (name, after) = Name::read(bytes, at).map_err(|_| Malformed::Data)?;
        rdata.extend_from_slice(name.wire());
        at = after;
    }
    rdata.extend_from_slice(&bytes[at..]);
    Ok(rdata.into())
}
