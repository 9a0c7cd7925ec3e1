//! Records that are made when they are asked for: SRV, NS, SOA, the version, aliases; and answers as plain records.

use std::net::IpAddr;

use super::address::{below, made_step, service_name};
use super::find::Found;
use super::{Data, Made, Records, Step};
use crate::message::{MAX_MESSAGE, Record};
use crate::name::Name;
use crate::question::Question;
use crate::rtype;
use crate::zone::{Apex, Entry, Form, Member, Port, Zone};

/// The version of the DNS specification that is followed, as TXT data.
const VERSION: &[u8] = b"\x051.1.0";
/// How long the version holds, in seconds.
const VERSION_TTL: u32 = 28800;
/// The longest TTL a SOA record has.
const MAX_SOA_TTL: u32 = 300;
/// No SRV record with its address is smaller, so more of them than this fit in no message.
const MAX_SRV: usize = MAX_MESSAGE / 32;

/// CNAME records from a name along its aliases.
pub(super) fn aliases(from: &Name, aliases: &[Name], ttl: u32) -> Vec<Record> {
    let owners = std::iter::once(from).chain(aliases);
    owners.zip(aliases).map(|(owner, target)| Record::new(owner.clone(), rtype::CNAME, ttl, target.wire())).collect()
}

impl Records<'_> {
    /// The answer and additional sections as plain records, for a question with this name and type.
    pub fn sections(&self, name: &Name, rtype: u16) -> (Vec<Record>, Vec<Record>) {
        let mut answer = aliases(name, &self.aliases, self.ttl);
        let owner = self.aliases.last().unwrap_or(name);
        let address = |address: IpAddr| Record::address(owner.clone(), self.ttl, address);
        match &self.data {
            Data::V4(addresses) => answer.extend(addresses.iter().map(|ip| address(IpAddr::V4(*ip)))),
            Data::V6(addresses) => answer.extend(addresses.iter().map(|ip| address(IpAddr::V6(*ip)))),
            Data::One(ip) => answer.push(address(*ip)),
            Data::Members(members) => {
                let mut addresses: Vec<IpAddr> =
                    members.iter().filter(|member| member.is_of_type(rtype)).map(|member| member.address).collect();
                addresses.dedup();
                answer.extend(addresses.into_iter().map(address));
            }
            Data::Made(made) => {
                answer.extend(made.answer.iter().map(|record| Record { name: owner.clone(), ..record.clone() }));
                return (answer, made.additional.clone());
            }
        }
        (answer, Vec::new())
    }
}

/// An SRV record in the making: which name, which address, which port.
struct Target<'z> {
    host: &'z str,
    address: IpAddr,
    port: Option<u16>,
}

impl Zone {
    pub(super) fn version(&self, question: &Question) -> Data<'_> {
        let record = Record::new(question.name(), rtype::TXT, self.capped(VERSION_TTL), VERSION);
        Data::Made(Made { answer: vec![record], additional: Vec::new() }.into())
    }

    pub(super) fn of_apex(&self, rtype: u16, apex: &Apex) -> Step<'_> {
        if rtype == rtype::SOA {
            return made_step(self.soa(&apex.name).into_iter().collect(), Vec::new());
        }
        let servers = self.name_servers(apex);
        let mut names: Vec<&Name> = servers.iter().map(|(name, _)| name).collect();
        names.dedup();
        let record = |name: &Name| Record::new(apex.name.clone(), rtype::NS, self.ttl(), name.wire());
        let answer = names.into_iter().map(record).collect();
        let glue = servers.iter().map(|(name, address)| Record::address(name.clone(), self.ttl(), *address));
        made_step(answer, glue.collect())
    }

    /// The start of a zone, which negative answers carry; none if its names would be too long.
    pub fn soa(&self, zone: &Name) -> Option<Record> {
        let (server, mailbox) = (below(&[b"ns", b"dns"], zone)?, below(&[b"hostmaster"], zone)?);
        let numbers = self.soa_numbers();
        let rdata = [server.wire(), mailbox.wire(), &numbers].concat();
        Some(Record::new(zone.clone(), rtype::SOA, self.soa_ttl(), &rdata))
    }

    pub(crate) fn soa_ttl(&self) -> u32 {
        self.capped(self.options.ttl.min(MAX_SOA_TTL))
    }

    /// Serial, refresh, retry, expire and minimum, in wire form.
    pub(crate) fn soa_numbers(&self) -> [u8; 20] {
        let mut wire = [0; 20];
        let numbers = [self.serial, 7200, 1800, 86400, self.options.ttl];
        for (place, number) in wire.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        wire
    }

    pub(super) fn srv<'z>(&'z self, question: &Question, apex: &Apex, found: &Found<'z>) -> Step<'z> {
        let name = question.name();
        let (targets, of): (Vec<Target<'_>>, _) = match found {
            Found::Service(entry) => (entry.targets(&any), Of::Service),
            Found::Ported(entry, port) => {
                (entry.targets(&|other| other.matches(&port.name, &port.protocol)), Of::Service)
            }
            Found::Host(members) => (targets_of(members.iter(), &any), Of::Service),
            Found::Zonal(members) => (targets_of(members.iter().copied(), &any), Of::Service),
            Found::Pod(address) => (vec![Target { host: "", address: *address, port: Some(0) }], Of::Pod),
            _ => return Step::NoData,
        };
        let labels: Vec<&[u8]> = name.labels().collect();
        let before = labels.len() - apex.labels;
        let named = |host: &str| match of {
            Of::Pod => below(&labels[before - 3..before], &apex.name),
            Of::Service => service_name(host.as_bytes(), question.labels_wire(before - 3, before - 1), &apex.name),
        };
        let (answer, additional) = self.srv_records(&name, &targets, named);
        made_step(answer, additional)
    }

    /// All weigh the same, and together about 100.
    fn srv_records(
        &self,
        owner: &Name,
        targets: &[Target<'_>],
        named: impl Fn(&str) -> Option<Name>,
    ) -> (Vec<Record>, Vec<Record>) {
        let weight = u16::try_from(100 / targets.len().max(1)).unwrap_or(1).max(1);
        let (mut answer, mut additional) = (Vec::new(), Vec::new());
        // Targets of one name stand beside each other.
        for same in targets.chunk_by(|a, b| a.host == b.host) {
            let Some(target) = named(same[0].host) else { continue };
            let mut ports: Vec<u16> = same.iter().filter_map(|target| target.port).collect();
            ports.sort_unstable();
            ports.dedup();
            for port in &ports {
                let head = [0, weight, *port].map(u16::to_be_bytes).concat();
                answer.push(Record::new(owner.clone(), rtype::SRV, self.ttl(), &[&head, target.wire()].concat()));
            }
            let with_port = same.iter().filter(|target| target.port.is_some());
            let mut addresses: Vec<IpAddr> = with_port.map(|target| target.address).collect();
            addresses.sort_unstable();
            addresses.dedup();
            additional.extend(addresses.into_iter().map(|ip| Record::address(target.clone(), self.ttl(), ip)));
            if answer.len() > MAX_SRV {
                break;
            }
        }
        (answer, additional)
    }
}

/// What SRV records are of.
#[derive(Clone, Copy)]
enum Of {
    Service,
    Pod,
}

fn any(_: &Port) -> bool {
    true
}

impl Entry {
    fn targets(&self, wanted: &dyn Fn(&Port) -> bool) -> Vec<Target<'_>> {
        match &self.form {
            Form::ClusterIp { addresses, ports } => {
                let ports = ports.iter().filter(|port| wanted(port)).map(|port| port.number);
                let target = |port, address: &IpAddr| Target { host: "", address: *address, port };
                ports.flat_map(|port| addresses.iter().map(move |address| target(port, address))).collect()
            }
            _ => targets_of(self.members.iter(), wanted),
        }
    }
}

fn targets_of<'z>(members: impl Iterator<Item = &'z Member>, wanted: &dyn Fn(&Port) -> bool) -> Vec<Target<'z>> {
    let mut targets = Vec::new();
    for member in members {
        let ports = member.slice.ports.iter().filter(|port| wanted(port));
        targets.extend(ports.map(|port| Target { host: &member.host, address: member.address, port: port.number }));
    }
    targets
}
