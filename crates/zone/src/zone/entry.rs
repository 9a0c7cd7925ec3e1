//! What is known of one Service, with the addresses of its name kept ready.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fairlead_api::ip;
use fairlead_api::view::{Service, ServicePort, ServiceType};
use foldhash::fast::RandomState;

use super::slice::{Endpoints, Member, Port};
use crate::name::Name;

/// A Service, or what slices say of one that is not there.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) form: Form,
    /// Ready endpoints, sorted by host, address and slice.
    pub(crate) members: Vec<Member>,
    /// Endpoints that are names, with the slice they are from.
    pub(crate) names: Vec<(Box<str>, Name)>,
    /// The IPv4 addresses of the Service's name.
    pub(crate) v4: Vec<Ipv4Addr>,
    /// The IPv6 addresses of the Service's name.
    pub(crate) v6: Vec<Ipv6Addr>,
}

/// What a Service is for those who look it up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Form {
    /// There is none.
    #[default]
    Unknown,
    /// It has addresses of its own.
    ClusterIp { addresses: Vec<IpAddr>, ports: Vec<Port> },
    /// It has those of its endpoints.
    Headless,
    /// It is another name; none if what it stands for cannot be one.
    ExternalName(Option<Name>),
}

impl Form {
    pub(crate) fn of(service: &Service) -> Form {
        let spec = &service.spec;
        if spec.kind == ServiceType::ExternalName {
            let is_name = ip::parse(&spec.external_name).is_none() && !spec.external_name.is_empty();
            return Form::ExternalName(spec.external_name.parse().ok().filter(|_| is_name));
        }
        let texts =
            if spec.cluster_ips.is_empty() { std::slice::from_ref(&spec.cluster_ip) } else { &spec.cluster_ips };
        if texts.first().is_some_and(|first| first == "None") {
            return Form::Headless;
        }
        let addresses = texts.iter().filter_map(|text| address(text)).collect();
        Form::ClusterIp { addresses, ports: ports(&spec.ports) }
    }

    pub(crate) fn cluster_ips(&self) -> Vec<IpAddr> {
        match self {
            Form::ClusterIp { addresses, .. } => addresses.clone(),
            _ => Vec::new(),
        }
    }
}

fn ports(ports: &[ServicePort]) -> Vec<Port> {
    if ports.is_empty() {
        return vec![Port::none()];
    }
    let port = |port: &ServicePort| Port {
        name: port.name.as_str().into(),
        protocol: Some(port.protocol),
        number: u16::try_from(port.port).ok(),
    };
    ports.iter().map(port).collect()
}

/// Addresses that ceased to be those of endpoints, and those that became it.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    pub(crate) gone: Vec<IpAddr>,
    pub(crate) come: Vec<IpAddr>,
}

type Addresses = HashSet<IpAddr, RandomState>;

impl Entry {
    /// Whether nothing is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.form == Form::Unknown && self.has_no_endpoints()
    }

    /// Whether no endpoint is ready.
    pub(crate) fn has_no_endpoints(&self) -> bool {
        self.members.is_empty() && self.names.is_empty()
    }

    /// Puts the endpoints of a slice in the place of those it had.
    pub(crate) fn replace(&mut self, slice: &str, endpoints: Endpoints) -> Moved {
        let mut old = Addresses::default();
        self.members.retain(|member| {
            let stays = *member.slice.name != *slice;
            if !stays {
                old.insert(member.address);
            }
            stays
        });
        let new: Addresses = endpoints.members.iter().map(|member| member.address).collect();
        self.members.extend(endpoints.members);
        self.members.sort_by(|a, b| a.rank().cmp(&b.rank()));
        self.names.retain(|(name, _)| **name != *slice);
        self.names.extend(endpoints.names.into_iter().map(|name| (slice.into(), name)));
        self.names.sort();
        self.settle();
        let mut gone: Vec<IpAddr> = old.difference(&new).copied().collect();
        if !gone.is_empty() {
            let here: Addresses = self.members.iter().map(|member| member.address).collect();
            gone.retain(|address| !here.contains(address));
        }
        Moved { gone, come: new.difference(&old).copied().collect() }
    }

    /// Finds the addresses of the Service's name.
    pub(crate) fn settle(&mut self) {
        (self.v4, self.v6) = match &self.form {
            Form::ClusterIp { addresses, .. } => split(addresses.iter().copied()),
            Form::Headless => split(self.members.iter().map(|member| member.address)),
            Form::ExternalName(_) | Form::Unknown => <(Vec<_>, Vec<_>)>::default(),
        };
    }

    /// The endpoints with a host name.
    pub(crate) fn members_named(&self, host: &[u8]) -> &[Member] {
        let from = self.members.partition_point(|member| member.host.as_bytes() < host);
        let count = self.members[from..].partition_point(|member| member.host.as_bytes() == host);
        &self.members[from..from + count]
    }
}

impl Member {
    fn rank(&self) -> (&str, IpAddr, &str) {
        (&self.host, self.address, &self.slice.name)
    }
}

/// An address as it is kept: one of IPv4 that is written as one of IPv6 is one of IPv4.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    ip::parse(text).map(|ip| ip.to_canonical())
}

/// Addresses by family, each once.
pub(crate) fn split(addresses: impl Iterator<Item = IpAddr>) -> (Vec<Ipv4Addr>, Vec<Ipv6Addr>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for address in addresses {
        match address {
            IpAddr::V4(ip) => v4.push(ip),
            IpAddr::V6(ip) => v6.push(ip),
        }
    }
    v4.sort_unstable();
    v4.dedup();
    v6.sort_unstable();
    v6.dedup();
    v4.shrink_to_fit();
    v6.shrink_to_fit();
    (v4, v6)
}
