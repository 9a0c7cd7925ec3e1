//! What a question is answered with: the names and types of the `kubernetes` plugin, and aliases within the cluster.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::message::Record;
use crate::name::Name;
use crate::question::Question;
use crate::rtype;
use crate::zone::{Apex, Member, Zone};

mod address;
mod find;
mod records;

pub(crate) use address::reverse_address;
use find::Found;
pub(crate) use find::undashed;

/// The most aliases that are followed.
const MAX_ALIASES: usize = 11;

/// What a zone knows of a name and a type.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<'z> {
    /// These records.
    Records(Records<'z>),
    /// The name exists and has no such records. The zone is the one it is in.
    NoData(&'z Name),
    /// There is no such name in the zone. Whether it is looked for elsewhere is the caller's decision.
    NxDomain(&'z Name),
    /// The name stands for one outside of the zone.
    Alias(Alias<'z>),
    /// Transfers are not given.
    Refused,
    /// The name is in none of the zones.
    NotOurs,
}

/// Records of a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Records<'z> {
    /// The zone the name is in.
    pub zone: &'z Name,
    /// What the name stands for, each alias followed; the records are those of the last one.
    pub aliases: Vec<Name>,
    /// How long they hold, in seconds.
    pub ttl: u32,
    pub(crate) data: Data<'z>,
}

/// An alias that leads out of the zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Alias<'z> {
    /// The zone the name is in.
    pub zone: &'z Name,
    /// What the name stands for, each alias followed; the last one is outside. Never empty.
    pub aliases: Vec<Name>,
    /// How long the aliases hold, in seconds.
    pub ttl: u32,
}

/// Records, as they are kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data<'z> {
    /// A records.
    V4(&'z [Ipv4Addr]),
    /// AAAA records.
    V6(&'z [Ipv6Addr]),
    /// A or AAAA records: of endpoints, sorted by address, those of the family of the question.
    Members(&'z [Member]),
    /// One A or AAAA record.
    One(IpAddr),
    /// Made for this question. Boxed, because it is seldom.
    Made(Box<Made>),
}

/// Records made for one question.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Made {
    pub(crate) answer: Vec<Record>,
    pub(crate) additional: Vec<Record>,
}

/// What one name has, aliases not followed.
enum Step<'z> {
    Data(Data<'z>),
    Alias(&'z Name),
    NoData,
    NxDomain,
}

impl Alias<'_> {
    /// The name outside.
    pub fn target(&self) -> &Name {
        self.aliases.last().expect("there is one, or it would be no alias")
    }

    /// The CNAME records that lead from a name to the target.
    pub fn records(&self, from: &Name) -> Vec<Record> {
        records::aliases(from, &self.aliases, self.ttl)
    }
}

impl Zone {
    /// Looks up a name. For addresses of Services and endpoints nothing is allocated.
    pub fn answer(&self, question: &Question) -> Answer<'_> {
        let Some((apex, before)) = self.apex_of(question) else { return Answer::NotOurs };
        if matches!(question.rtype, rtype::AXFR | rtype::IXFR) {
            return Answer::Refused;
        }
        match self.step(question, apex, before) {
            Step::Data(data) => Answer::Records(self.records(apex, Vec::new(), data)),
            Step::NoData => Answer::NoData(&apex.name),
            Step::NxDomain => Answer::NxDomain(&apex.name),
            Step::Alias(target) => self.follow(question, apex, target),
        }
    }

    /// The TTL of records.
    pub fn ttl(&self) -> u32 {
        self.capped(self.options.ttl)
    }

    pub(crate) fn capped(&self, ttl: u32) -> u32 {
        self.options.max_ttl.map_or(ttl, |max| ttl.min(max))
    }

    fn records<'z>(&self, apex: &'z Apex, aliases: Vec<Name>, data: Data<'z>) -> Records<'z> {
        Records { zone: &apex.name, aliases, ttl: self.ttl(), data }
    }

    /// The longest zone a name is in, and how many labels stand before it.
    pub(crate) fn apex_of(&self, question: &Question) -> Option<(&Apex, usize)> {
        let found = self
            .apexes
            .iter()
            .filter_map(|apex| question.labels_before(&apex.lower, apex.labels).map(|before| (apex, before)));
        found.min_by_key(|(_, before)| *before)
    }

    /// Follows an alias as long as it stays in the zone. An alias that leads nowhere, or round in a circle, is no data.
    fn follow<'z>(&'z self, question: &Question, apex: &'z Apex, first: &'z Name) -> Answer<'z> {
        let (mut name, mut target, mut aliases) = (question.name(), first, Vec::new());
        loop {
            if target.is_under(&name) || aliases.contains(target) || aliases.len() == MAX_ALIASES {
                return Answer::NoData(&apex.name);
            }
            aliases.push(target.clone());
            let next = Question::new(target, question.rtype);
            let Some(before) = next.labels_before(&apex.lower, apex.labels) else {
                return Answer::Alias(Alias { zone: &apex.name, aliases, ttl: self.ttl() });
            };
            match self.step(&next, apex, before) {
                Step::Data(data) => return Answer::Records(self.records(apex, aliases, data)),
                Step::Alias(further) => (name, target) = (target.clone(), further),
                Step::NoData | Step::NxDomain => return Answer::NoData(&apex.name),
            }
        }
    }

    fn step(&self, question: &Question, apex: &Apex, before: usize) -> Step<'_> {
        match question.rtype {
            rtype::SOA | rtype::NS if before == 0 => self.of_apex(question.rtype, apex),
            // A zone has its start at its top alone; whether the name exists is not looked at.
            rtype::SOA => Step::NoData,
            rtype::TXT if before == 1 && question.label(0) == b"dns-version" => Step::Data(self.version(question)),
            rtype::PTR => self.pointer(question, apex, before),
            _ => self.of_found(question, apex, &self.find(question, apex, before)),
        }
    }

    /// The records of one type that what was found has.
    fn of_found<'z>(&'z self, question: &Question, apex: &Apex, found: &Found<'z>) -> Step<'z> {
        match found {
            Found::Missing => return Step::NxDomain,
            Found::Empty => return Step::NoData,
            Found::Alias(target) => return self.of_alias(question, target),
            _ => {}
        }
        match question.rtype {
            rtype::A => self.v4_of(question, apex, found),
            rtype::AAAA => self.v6_of(question, apex, found),
            rtype::SRV => self.srv(question, apex, found),
            _ => Step::NoData,
        }
    }

    fn of_alias<'z>(&'z self, question: &Question, target: &'z Name) -> Step<'z> {
        match question.rtype {
            rtype::A | rtype::AAAA => Step::Alias(target),
            rtype::CNAME => {
                let answer = records::aliases(&question.name(), std::slice::from_ref(target), self.ttl());
                Step::Data(Data::Made(Made { answer, additional: Vec::new() }.into()))
            }
            _ => Step::NoData,
        }
    }
}
