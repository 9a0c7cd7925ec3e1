//! Which Services may have a part in what becomes of a packet: those that have its address, and those that have its port as a
//! node port. All others could be absent, so nobody need read or plan them.

use std::net::IpAddr;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::Service;

use super::To;
use super::world::cluster_ips;

#[cfg(test)]
mod tests;

/// The Services, addresses and ports packets go to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concern {
    named: Vec<Key>,
    addresses: Vec<IpAddr>,
    ports: Vec<i32>,
}

impl Concern {
    /// That of packets to these receivers; `find` is asked for Services that are named.
    pub fn of<'a, 'b>(
        receivers: impl IntoIterator<Item = &'a To>,
        find: impl Fn(&Key) -> Option<&'b Service>,
    ) -> Concern {
        let mut concern = Concern::default();
        for receiver in receivers {
            match receiver {
                To::Address(ip, port, _) => concern.add([*ip], [i32::from(*port)]),
                To::Service(key, ..) => {
                    concern.named.push(key.clone());
                    if let Some(service) = find(key) {
                        concern.add(cluster_ips(service), service.spec.ports.iter().map(|port| port.port));
                    }
                }
            }
        }
        concern
    }

    fn add(&mut self, addresses: impl IntoIterator<Item = IpAddr>, ports: impl IntoIterator<Item = i32>) {
        self.addresses.extend(addresses);
        self.ports.extend(ports);
    }

    /// Whether a Service may have a part in it.
    pub fn includes(&self, service: &Service) -> bool {
        let external = service.spec.external_ips.iter();
        let ingress = service.status.load_balancer.ingress.iter().map(|ingress| &ingress.ip);
        let others = external.chain(ingress).filter_map(|text| ip::parse(text));
        self.named
            .iter()
            .any(|named| *named.name == *service.metadata.name && *named.namespace == *service.metadata.namespace)
            || service.spec.ports.iter().any(|port| port.node_port != 0 && self.ports.contains(&port.node_port))
            || cluster_ips(service).chain(others).any(|ip| self.addresses.contains(&ip))
    }
}
