//! What an address is called (PTR), and which addresses a name has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::find::{Found, PortWanted};
use super::{Data, Made, Step};
use crate::message::Record;
use crate::name::{Name, labels};
use crate::question::Question;
use crate::rtype;
use crate::zone::{Apex, Claim, Entry, Form, Member, Zone};

impl Zone {
    pub(super) fn v4_of<'z>(&'z self, question: &Question, apex: &Apex, found: &Found<'z>) -> Step<'z> {
        match found {
            Found::Service(entry) if entry.v4.is_empty() => Step::NoData,
            Found::Service(entry) => Step::Data(Data::V4(&entry.v4)),
            _ => self.family_of(question, apex, found, IpAddr::is_ipv4),
        }
    }

    pub(super) fn v6_of<'z>(&'z self, question: &Question, apex: &Apex, found: &Found<'z>) -> Step<'z> {
        match found {
            Found::Service(entry) if entry.v6.is_empty() => Step::NoData,
            Found::Service(entry) => Step::Data(Data::V6(&entry.v6)),
            _ => self.family_of(question, apex, found, IpAddr::is_ipv6),
        }
    }

    fn family_of<'z>(
        &'z self,
        question: &Question,
        apex: &Apex,
        found: &Found<'z>,
        wanted: fn(&IpAddr) -> bool,
    ) -> Step<'z> {
        match found {
            Found::Host(members) if members.iter().any(|member| wanted(&member.address)) => {
                Step::Data(Data::Members(members))
            }
            Found::Pod(address) if wanted(address) => Step::Data(Data::One(*address)),
            Found::Ported(entry, port) => self.made(question, entry.addresses_of(port), wanted),
            Found::Zonal(members) => self.made(question, members.iter().map(|member| member.address).collect(), wanted),
            Found::NameServer => {
                let servers = self.name_servers(apex);
                self.made(question, servers.into_iter().map(|(_, address)| address).collect(), wanted)
            }
            _ => Step::NoData,
        }
    }

    fn made(&self, question: &Question, mut addresses: Vec<IpAddr>, wanted: fn(&IpAddr) -> bool) -> Step<'_> {
        addresses.retain(wanted);
        addresses.sort_unstable();
        addresses.dedup();
        let name = question.name();
        let answer = addresses.into_iter().map(|address| Record::address(name.clone(), self.ttl(), address));
        made_step(answer.collect(), Vec::new())
    }

    /// What an address is called: the Service whose cluster IP it is, else the endpoints that have it.
    pub(super) fn pointer(&self, question: &Question, apex: &Apex, before: usize) -> Step<'_> {
        let Some(address) = reverse_address(question) else {
            return match self.find(question, apex, before) {
                Found::Missing | Found::NameServer => Step::NxDomain,
                _ => Step::NoData,
            };
        };
        let claims = self.addresses.get(&address).map_or(&[][..], Vec::as_slice);
        let mut names = Vec::new();
        for claim in claims {
            match claim {
                Claim::ClusterIp(wire) if names.is_empty() && self.tells_of(wire) => {
                    names.extend(service_name(b"", wire, &self.primary));
                    break;
                }
                Claim::Endpoint(wire) if self.tells_of(wire) => names.extend(self.endpoint_names(wire, address)),
                Claim::ClusterIp(_) | Claim::Endpoint(_) => {}
            }
        }
        let name = question.name();
        let record = |target: Name| Record::new(name.clone(), rtype::PTR, self.ttl(), target.wire());
        let answer: Vec<Record> = names.into_iter().map(record).collect();
        if answer.is_empty() { Step::NxDomain } else { made_step(answer, Vec::new()) }
    }

    /// Whether addresses lead to a Service's name: its namespace is served, or which ones are was not said by name.
    fn tells_of(&self, wire: &[u8]) -> bool {
        let namespace = labels_of(wire).nth(1).unwrap_or_default();
        self.options.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    fn endpoint_names(&self, wire: &[u8], address: IpAddr) -> Vec<Name> {
        let members = self.services.get(wire).map_or(&[][..], |entry| &entry.members);
        let mut hosts: Vec<&str> =
            members.iter().filter(|member| member.address == address).map(|member| &*member.host).collect();
        hosts.dedup();
        hosts.into_iter().filter_map(|host| service_name(host.as_bytes(), wire, &self.primary)).collect()
    }

    /// The name servers of a zone: the Services our own addresses are endpoints of, else ourselves.
    pub(super) fn name_servers(&self, apex: &Apex) -> Vec<(Name, IpAddr)> {
        let mut servers = Vec::new();
        let mut found = false;
        for claim in self.options.local_addresses.iter().filter_map(|address| self.addresses.get(address)).flatten() {
            let Claim::Endpoint(wire) = claim else { continue };
            found = true;
            servers.extend(self.services.get(wire).into_iter().flat_map(|entry| entry.servers(wire, &apex.name)));
        }
        if !found && let Some(name) = below(&[b"ns", b"dns"], &apex.name) {
            servers.extend(self.options.local_addresses.iter().map(|address| (name.clone(), *address)));
        }
        servers.dedup();
        servers
    }
}

impl Entry {
    /// The addresses behind a port.
    fn addresses_of(&self, port: &PortWanted) -> Vec<IpAddr> {
        match &self.form {
            Form::ClusterIp { addresses, .. } => addresses.clone(),
            _ => self.members.iter().filter(|member| port.is_of(member)).map(|member| member.address).collect(),
        }
    }

    /// The names and addresses that a name server has as this Service.
    fn servers(&self, wire: &[u8], zone: &Name) -> Vec<(Name, IpAddr)> {
        let named = |host: &str, address| service_name(host.as_bytes(), wire, zone).map(|name| (name, address));
        match &self.form {
            Form::ClusterIp { addresses, .. } => addresses.iter().filter_map(|address| named("", *address)).collect(),
            Form::Headless => self.members.iter().filter_map(|member| named(&member.host, member.address)).collect(),
            Form::ExternalName(_) | Form::Unknown => Vec::new(),
        }
    }
}

/// Data if there is any.
pub(super) fn made_step<'z>(answer: Vec<Record>, additional: Vec<Record>) -> Step<'z> {
    if answer.is_empty() { Step::NoData } else { Step::Data(Data::Made(Made { answer, additional }.into())) }
}

/// The name of a Service, or of a host below it, in a zone; none if it would be too long. A host may have dots.
pub(super) fn service_name(host: &[u8], wire: &[u8], zone: &Name) -> Option<Name> {
    let host = host.split(|byte| *byte == b'.').filter(|label| !label.is_empty());
    Name::from_labels(host.chain(labels_of(wire)).chain([&b"svc"[..]]).chain(zone.labels())).ok()
}

/// Some labels with a zone after them.
pub(super) fn below(before: &[&[u8]], zone: &Name) -> Option<Name> {
    Name::from_labels(before.iter().copied().chain(zone.labels())).ok()
}

/// The labels of a wire form without an end.
fn labels_of(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = wire;
    std::iter::from_fn(move || {
        let (len, after) = rest.split_first()?;
        let (label, after) = after.split_at_checked(usize::from(*len))?;
        rest = after;
        Some(label)
    })
}

/// The address a reverse name is about.
pub(crate) fn reverse_address(question: &Question) -> Option<IpAddr> {
    let count = question.label_count();
    let [.., zone, arpa] = labels(question.lower()).collect::<Vec<_>>()[..] else { return None };
    match (zone, arpa, count) {
        (b"in-addr", b"arpa", 6) => {
            let mut octets = [0; 4];
            for (number, octet) in octets.iter_mut().rev().enumerate() {
                *octet = decimal(question.label(number))?;
            }
            Some(Ipv4Addr::from(octets).into())
        }
        (b"ip6", b"arpa", 34) => {
            let mut bits = 0u128;
            for number in (0..32).rev() {
                let [digit] = question.label(number) else { return None };
                bits = bits << 4 | u128::from(char::from(*digit).to_digit(16)?);
            }
            Some(Ipv6Addr::from(bits).into())
        }
        _ => None,
    }
}

/// A number without leading zeros.
fn decimal(label: &[u8]) -> Option<u8> {
    let plain = label.iter().all(u8::is_ascii_digit) && (label.len() == 1 || label.first() != Some(&b'0'));
    std::str::from_utf8(label).ok().filter(|_| plain)?.parse().ok()
}

impl Member {
    /// Whether it is of the family that records of a type have.
    pub(crate) fn is_of_type(&self, rtype: u16) -> bool {
        self.address.is_ipv4() == (rtype == rtype::A)
    }
}
