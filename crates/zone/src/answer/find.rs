//! What a name of the cluster's domain names: a Service, one of its ports or endpoints, a Pod, or nothing.

use std::net::IpAddr;

use crate::name::Name;
use crate::options::PodRecords;
use crate::question::Question;
use crate::zone::{Apex, Entry, Form, Member, Zone};

/// What a name names.
pub(crate) enum Found<'z> {
    /// There is no such name.
    Missing,
    /// A name that only has names below it.
    Empty,
    /// A Service.
    Service(&'z Entry),
    /// One of its ports, or those of a protocol: which, and there is at least one.
    Ported(&'z Entry, PortWanted),
    /// Endpoints of one name.
    Host(&'z [Member]),
    /// Endpoints in a zone; there may be none.
    Zonal(Vec<&'z Member>),
    /// Another name.
    Alias(&'z Name),
    /// A Pod's address.
    Pod(IpAddr),
    /// The name server of the zone.
    NameServer,
}

/// Which port is asked for; an empty label asks for any.
pub(crate) struct PortWanted {
    pub(crate) name: Box<[u8]>,
    pub(crate) protocol: Box<[u8]>,
}

impl Zone {
    /// Finds what a name names. `before` is the number of labels before the zone.
    pub(crate) fn find(&self, question: &Question, apex: &Apex, before: usize) -> Found<'_> {
        let last = match before {
            0 => return Found::Empty,
            2 if question.label(0) == b"ns" && question.label(1) == b"dns" => return Found::NameServer,
            _ => question.label(before - 1),
        };
        match last {
            _ if apex.reverse => Found::Missing,
            b"svc" | b"pod" if before == 1 => Found::Empty,
            b"svc" | b"pod" if !self.namespaces.contains(question.label(before - 2)) => Found::Missing,
            b"svc" => self.find_service(question, before - 1),
            b"pod" => self.find_pod(question, before - 1),
            _ => Found::Missing,
        }
    }

    /// `end` is the number of labels up to the namespace, it included.
    fn find_service(&self, question: &Question, end: usize) -> Found<'_> {
        if end == 1 {
            return Found::Empty;
        }
        let Some(entry) = self.services.get(question.labels_wire(end - 2, end)) else { return Found::Missing };
        let hidden = match entry.form {
            Form::Unknown => true,
            Form::ClusterIp { .. } => self.options.ignore_empty_service && entry.has_no_endpoints(),
            Form::Headless | Form::ExternalName(_) => false,
        };
        match end - 2 {
            _ if hidden => Found::Missing,
            0 => entry.own(),
            1 => entry.host(question.label(0)),
            2 => entry.ported(question.label(0), question.label(1)),
            labels => self.find_zonal(entry, question, labels),
        }
    }

    /// `us-east-1a.pin._zone` or `us-east-1a.prefer._zone` before a headless Service; a zone may have dots in its name.
    fn find_zonal<'z>(&'z self, entry: &'z Entry, question: &Question, labels: usize) -> Found<'z> {
        let (anchor, directive) = (question.label(labels - 1), question.label(labels - 2));
        let prefers = directive == b"prefer";
        if !self.options.zonal
            || anchor != b"_zone"
            || !(prefers || directive == b"pin")
            || entry.form != Form::Headless
        {
            return Found::Missing;
        }
        let parts: Vec<&[u8]> = (0..labels - 2).map(|number| question.label(number)).collect();
        let zone = parts.join(&b'.');
        let inside = |member: &&Member| member.zone.as_deref().is_some_and(|other| other.as_bytes() == zone);
        let members: Vec<&Member> = entry.members.iter().filter(inside).collect();
        if members.is_empty() && prefers {
            return Found::Zonal(entry.members.iter().collect());
        }
        Found::Zonal(members)
    }

    fn find_pod(&self, question: &Question, end: usize) -> Found<'_> {
        // What stands before the address is not looked at, as long as there is not too much of it.
        match (self.options.pods, end) {
            (PodRecords::Disabled, _) | (_, 5..) => return Found::Missing,
            (_, 1) => return Found::Empty,
            _ => {}
        }
        let Some(address) = undashed(question.label(end - 2)) else { return Found::Missing };
        let namespace = question.label(end - 1);
        let exists = self.options.pods == PodRecords::Insecure
            || self
                .pod_addresses
                .get(&address)
                .is_some_and(|pods| pods.iter().any(|key| key.namespace.as_bytes() == namespace));
        if exists { Found::Pod(address) } else { Found::Missing }
    }
}

impl Entry {
    /// What the Service's own name names.
    fn own(&self) -> Found<'_> {
        match &self.form {
            Form::ExternalName(target) => target.as_ref().map_or(Found::Missing, Found::Alias),
            Form::Headless if self.members.is_empty() => {
                self.names.first().map_or(Found::Missing, |(_, name)| Found::Alias(name))
            }
            _ => Found::Service(self),
        }
    }

    fn host(&self, host: &[u8]) -> Found<'_> {
        match self.members_named(host) {
            [] => Found::Missing,
            _ if matches!(self.form, Form::ExternalName(_)) => Found::Missing,
            members => Found::Host(members),
        }
    }

    /// The underscores of `_http._tcp` may be missing.
    fn ported(&self, name: &[u8], protocol: &[u8]) -> Found<'_> {
        let strip = |label: &[u8]| label.strip_prefix(b"_").unwrap_or(label).into();
        let wanted = PortWanted { name: strip(name), protocol: strip(protocol) };
        let exists = match &self.form {
            Form::ClusterIp { ports, .. } => ports.iter().any(|port| port.matches(&wanted.name, &wanted.protocol)),
            Form::Headless => self.members.iter().any(|member| wanted.is_of(member)),
            Form::ExternalName(_) | Form::Unknown => false,
        };
        if exists { Found::Ported(self, wanted) } else { Found::Missing }
    }
}

impl PortWanted {
    /// Whether an endpoint has such a port.
    pub(crate) fn is_of(&self, member: &Member) -> bool {
        member.slice.ports.iter().any(|port| port.matches(&self.name, &self.protocol))
    }
}

/// The address that a label such as `10-244-1-7` or `fd00--1` spells.
pub(crate) fn undashed(label: &[u8]) -> Option<IpAddr> {
    let label = std::str::from_utf8(label).ok()?;
    let is_v4 = label.matches('-').count() == 3 && !label.contains("--");
    let text = label.replace('-', if is_v4 { "." } else { ":" });
    text.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}
