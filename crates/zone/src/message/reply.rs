//! Answers of a zone as bytes. Addresses go straight from where they are kept into the reply.

use std::net::IpAddr;

use super::build::{OPT_LEN, begin, push_opt};
use super::{Builder, Edns, HEADER, Head, Query, Rcode, TC, UDP_SIZE};
use crate::answer::{Alias, Answer, Data, Records};
use crate::name::Name;
use crate::rtype;
use crate::zone::{Member, Zone};

/// What became of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<'z> {
    /// The reply is written.
    Answered,
    /// The reply is written; it says that there is no such name. A caller that lets names of this zone fall through drops
    /// it and asks elsewhere.
    NameError(&'z Name),
    /// The name stands for one outside. Nothing is written: the caller looks for that one and adds what it finds to
    /// [`Alias::records`].
    Alias(Alias<'z>),
    /// The name is in no zone of ours. Nothing is written.
    NotOurs,
}

/// Answers a query from a zone. Addresses are given in the order that follows from `turn`, so that a number that counts up
/// makes clients go round among them. The reply has at most `limit` bytes, see [`Query::limit`].
pub fn reply<'z>(zone: &'z Zone, query: &Query<'_>, turn: u32, limit: usize, out: &mut Vec<u8>) -> Outcome<'z> {
    let answer = zone.answer(&query.question);
    write_answer(zone, query, &answer, turn, limit, out);
    match answer {
        Answer::Records(_) | Answer::NoData(_) | Answer::Refused => Outcome::Answered,
        Answer::NxDomain(zone) => Outcome::NameError(zone),
        Answer::Alias(alias) => Outcome::Alias(alias),
        Answer::NotOurs => Outcome::NotOurs,
    }
}

/// Writes the reply that says what a zone answered; nothing if the answer is not the zone's to give.
pub fn write_answer(zone: &Zone, query: &Query<'_>, answer: &Answer<'_>, turn: u32, limit: usize, out: &mut Vec<u8>) {
    match answer {
        Answer::Records(records) => write_records(query, records, turn, limit, out),
        Answer::NoData(name) => write_negative(zone, query, name, Rcode::NO_ERROR, limit, out),
        Answer::NxDomain(name) => write_negative(zone, query, name, Rcode::NX_DOMAIN, limit, out),
        Answer::Refused => {
            let head = Head { rcode: Rcode::REFUSED, ..Head::default() };
            Builder::new(query, head, limit, out).finish();
        }
        Answer::Alias(_) | Answer::NotOurs => out.clear(),
    }
}

const OURS: Head = Head {
    rcode: Rcode::NO_ERROR,
    authoritative: true,
    recursion_available: false,
    authentic: false,
    truncated: false,
};

fn write_records(query: &Query<'_>, records: &Records<'_>, turn: u32, limit: usize, out: &mut Vec<u8>) {
    if !records.aliases.is_empty() || matches!(records.data, Data::Made(_)) {
        return write_sections(query, records, turn, limit, out);
    }
    begin(query, OURS, out);
    let mut addresses = Addresses::new(query, records.ttl, limit, out);
    match &records.data {
        Data::V4(list) => in_turn(list, turn, |ip| addresses.push(ip.octets())),
        Data::V6(list) => in_turn(list, turn, |ip| addresses.push(ip.octets())),
        Data::One(ip) => drop(addresses.push_ip(*ip)),
        Data::Members(members) => push_members(members, turn, &mut addresses),
        Data::Made(_) => {}
    }
    addresses.finish();
}

/// Calls a function for each, beginning at a place that goes round, until it says no.
fn in_turn<T>(list: &[T], turn: u32, mut push: impl FnMut(&T) -> bool) {
    let (before, after) = list.split_at(turn as usize % list.len().max(1));
    let _ = after.iter().chain(before).all(&mut push);
}

/// Endpoints are sorted by address, so two of one address stand beside each other.
fn push_members(members: &[Member], turn: u32, addresses: &mut Addresses<'_>) {
    let first = turn as usize % members.len().max(1);
    for place in (first..members.len()).chain(0..first) {
        let member = &members[place];
        let again = place > 0 && members[place - 1].address == member.address;
        if !again && member.is_of_type(addresses.rtype) && !addresses.push_ip(member.address) {
            return;
        }
    }
}

/// A and AAAA records of the name in the question, while they are written.
struct Addresses<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    rtype: u16,
    /// All of a record but its address.
    head: [u8; 12],
    count: u16,
    truncated: bool,
    edns: Option<Edns>,
}

impl<'a> Addresses<'a> {
    fn new(query: &Query<'_>, ttl: u32, limit: usize, out: &'a mut Vec<u8>) -> Addresses<'a> {
        let rtype = query.question.rtype;
        let [a, b, c, d] = ttl.to_be_bytes();
        // The owner is a pointer to the question; the class is that of the Internet.
        let len = if rtype == rtype::A { 4 } else { 16 };
        let head = [0xc0, HEADER as u8, 0, rtype as u8, 0, 1, a, b, c, d, 0, len];
        let limit = limit.min(super::MAX_MESSAGE).saturating_sub(if query.edns.is_some() { OPT_LEN } else { 0 });
        Addresses { out, limit, rtype, head, count: 0, truncated: false, edns: query.edns }
    }

    /// Adds one. Returns whether it fit.
    fn push<const N: usize>(&mut self, octets: [u8; N]) -> bool {
        if self.out.len() + self.head.len() + N > self.limit {
            self.truncated = true;
            return false;
        }
        self.out.extend_from_slice(&self.head);
        self.out.extend_from_slice(&octets);
        self.count += 1;
        true
    }

    fn push_ip(&mut self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(ip) => self.push(ip.octets()),
            IpAddr::V6(ip) => self.push(ip.octets()),
        }
    }

    fn finish(self) {
        self.out[6..8].copy_from_slice(&self.count.to_be_bytes());
        if self.truncated {
            self.out[2] |= (TC >> 8) as u8;
        }
        end(self.out, self.edns);
    }
}

/// Writes the OPT record, if the client speaks EDNS.
fn end(out: &mut Vec<u8>, edns: Option<Edns>) {
    if let Some(edns) = edns {
        push_opt(out, Edns { size: UDP_SIZE, dnssec_ok: edns.dnssec_ok }, Rcode::NO_ERROR);
        out[11] += 1;
    }
}

fn write_sections(query: &Query<'_>, records: &Records<'_>, turn: u32, limit: usize, out: &mut Vec<u8>) {
    let (mut answer, additional) = records.sections(&query.name(), query.question.rtype);
    let aliases = records.aliases.len();
    if matches!(query.question.rtype, rtype::A | rtype::AAAA) && answer.len() > aliases {
        let addresses = &mut answer[aliases..];
        addresses.rotate_left(turn as usize % addresses.len());
    }
    let mut builder = Builder::new(query, OURS, limit, out);
    answer.iter().for_each(|record| builder.answer(record));
    additional.iter().for_each(|record| builder.additional(record));
    builder.finish();
}

/// Says no, with the start of the zone: its name, and the end of the names in it, are pointers into the question.
fn write_negative(zone: &Zone, query: &Query<'_>, name: &Name, rcode: Rcode, limit: usize, out: &mut Vec<u8>) {
    begin(query, Head { rcode, ..OURS }, out);
    let place = HEADER + query.question.lower().len() - name.wire().len();
    // At most 255 bytes after the header.
    let pointer = [0xc0 | (place >> 8) as u8, place as u8];
    let pointer: &[u8] = if name.is_root() { &[0] } else { &pointer };
    let (server, mailbox) = (b"\x02ns\x03dns", b"\x0ahostmaster");
    let rdlen = server.len() + mailbox.len() + 2 * pointer.len() + 20;
    let opt = if query.edns.is_some() { OPT_LEN } else { 0 };
    if out.len() + pointer.len() + 10 + rdlen + opt <= limit {
        out.extend_from_slice(pointer);
        out.extend_from_slice(&[0, rtype::SOA as u8, 0, 1]);
        out.extend_from_slice(&zone.soa_ttl().to_be_bytes());
        out.extend_from_slice(&[0, rdlen as u8]);
        for part in [&server[..], pointer, mailbox, pointer, &zone.soa_numbers()] {
            out.extend_from_slice(part);
        }
        out[9] = 1;
    }
    end(out, query.edns);
}
