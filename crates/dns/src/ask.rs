//! A question on its way through the chain, and what it is answered with.

use std::net::IpAddr;

use fairlead_zone::Name;
use fairlead_zone::message::{self, Builder, CD, Edns, Head, Message, Query, RD, Rcode, Reading, Record};

/// What is asked, and by whom.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) name: Name,
    pub(crate) rtype: u16,
    pub(crate) class: u16,
    /// What the client says of itself.
    pub(crate) edns: Option<Edns>,
    /// Whether others may be asked, as the client wants it.
    pub(crate) recursion: bool,
    /// Whether the client verifies answers itself.
    pub(crate) unchecked: bool,
    pub(crate) client: IpAddr,
    pub(crate) transport: Transport,
    /// How many aliases led here.
    pub(crate) depth: u8,
}

/// How a question came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

impl Transport {
    /// As logs and metrics name it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        }
    }

    /// Returns the maximum length of a reply to a query. By UDP it is the one that the client
    /// states with EDNS, as in CoreDNS (`request.Size`).
    pub(crate) fn limit(self, query: &Query<'_>) -> usize {
        match self {
            Transport::Udp => query.limit(),
            Transport::Tcp => message::MAX_MESSAGE,
        }
    }
}

/// More aliases than this lead nowhere.
pub(crate) const DEPTH: u8 = 10;

impl Ask {
    /// What a query asks.
    pub(crate) fn of(query: &Query<'_>, client: IpAddr, transport: Transport) -> Ask {
        Ask {
            name: query.name(),
            rtype: query.question.rtype,
            class: query.class,
            edns: query.edns,
            recursion: query.flags() & RD != 0,
            unchecked: query.flags() & CD != 0,
            client,
            transport,
            depth: 0,
        }
    }

    /// A question of nobody in particular.
    #[cfg(test)]
    pub(crate) fn sample(name: &str, rtype: u16) -> Ask {
        let name = name.parse().expect("a name");
        let (client, transport) = (IpAddr::from([127, 0, 0, 1]), Transport::Udp);
        Ask { name, rtype, class: 1, edns: None, recursion: true, unchecked: false, client, transport, depth: 0 }
    }

    /// The same for another name.
    pub(crate) fn with_name(&self, name: Name) -> Ask {
        Ask { name, ..self.clone() }
    }

    /// The message that asks this, with a number.
    pub(crate) fn message(&self, id: u16) -> Vec<u8> {
        let edns = self.edns.map(|edns| Edns { dnssec_ok: edns.dnssec_ok, ..Edns::default() });
        let mut bytes = message::query(id, &self.name, self.rtype, edns);
        let flag = |is: bool, flag: u16| if is { flag } else { 0 };
        let flags = flag(self.recursion, RD) | flag(self.unchecked, CD);
        bytes[2..4].copy_from_slice(&flags.to_be_bytes());
        let class = message::HEADER + self.name.wire().len() + 2;
        bytes[class..class + 2].copy_from_slice(&self.class.to_be_bytes());
        bytes
    }

    /// The message that asks this as a query, to be given to a zone.
    pub(crate) fn with_query<T>(&self, take: impl FnOnce(&Query<'_>) -> T) -> Option<T> {
        match message::read(&self.message(0)) {
            Reading::Query(query) => Some(take(&query)),
            _ => None,
        }
    }
}

/// An answer, as records.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) head: Head,
    pub(crate) answer: Vec<Record>,
    pub(crate) authority: Vec<Record>,
    pub(crate) additional: Vec<Record>,
    /// The plugin that made it; empty: the server itself.
    pub(crate) plugin: &'static str,
}

impl Reply {
    /// One without records.
    pub(crate) fn failed(rcode: Rcode) -> Reply {
        Reply { head: Head { rcode, ..Head::default() }, ..Reply::default() }
    }

    /// What a message of somebody else says.
    pub(crate) fn of(message: Message, plugin: &'static str) -> Reply {
        let flag = |flag: u16| message.flags & flag != 0;
        let head = Head {
            rcode: message.rcode,
            authoritative: flag(message::AA),
            recursion_available: flag(message::RA),
            authentic: flag(message::AD),
            truncated: flag(message::TC),
        };
        let Message { answer, authority, additional, .. } = message;
        Reply { head, answer, authority, additional, plugin }
    }

    /// Writes it as the reply to a query, in the place of what was there.
    pub(crate) fn write(&self, query: &Query<'_>, limit: usize, out: &mut Vec<u8>) {
        let mut builder = Builder::new(query, self.head, limit, out);
        self.answer.iter().for_each(|record| builder.answer(record));
        self.authority.iter().for_each(|record| builder.authority(record));
        self.additional.iter().for_each(|record| builder.additional(record));
        builder.finish();
    }

    /// All records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.answer.iter().chain(&self.authority).chain(&self.additional)
    }

    /// All records, to be changed.
    pub(crate) fn records_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.answer.iter_mut().chain(&mut self.authority).chain(&mut self.additional)
    }

    /// No time to live is longer than this.
    pub(crate) fn cap(&mut self, ttl: u32) {
        self.records_mut().for_each(|record| record.ttl = record.ttl.min(ttl));
    }

    /// Addresses take turns in being first; aliases stay before them.
    pub(crate) fn rotate(&mut self, turn: u32) {
        let is_address = |record: &Record| matches!(record.rtype, crate::words::A | crate::words::AAAA);
        let first = self.answer.iter().position(is_address).unwrap_or(self.answer.len());
        let addresses = &mut self.answer[first..];
        if addresses.iter().all(is_address) && !addresses.is_empty() {
            addresses.rotate_left(turn as usize % addresses.len());
        }
    }
}
