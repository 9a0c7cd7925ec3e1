//! What a network load balancer lets through to Nodes: the three rules AWS keeps in their security groups, as data.

use fairlead_api::view::{Family, Protocol};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{Kind, Spec};

/// What is let through to Nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What for.
    pub purpose: Purpose,
    /// What is let through.
    pub carries: Carries,
    /// From where.
    pub ranges: Vec<IpNet>,
    /// And from the members of these groups of the configuration.
    pub groups: Vec<String>,
    /// As AWS describes it: `kubernetes.io/rule/nlb/client=NAME`.
    pub description: String,
}

/// What a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The load balancer's own look at Nodes.
    Health,
    /// What clients send.
    Client,
    /// Word of packets that are too big.
    Mtu,
}

impl Purpose {
    /// `health`, `client` or `mtu`.
    pub fn as_str(self) -> &'static str {
        match self {
            Purpose::Health => "health",
            Purpose::Client => "client",
            Purpose::Mtu => "mtu",
        }
    }
}

/// What a rule lets through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carries {
    /// To these ports of Nodes.
    Ports(Protocol, Vec<u16>),
    /// ICMP of a type and code: 3, 4 is "fragmentation needed".
    Icmp(u8, u8),
    /// The same for IPv6: 2, 0 is "packet too big".
    Icmpv6(u8, u8),
}

impl Spec {
    /// The rules of a network load balancer; none for others. Ports are node ports: a listener without one leads to Pods
    /// directly and opens nothing on Nodes.
    pub fn rules(&self, vpc: &[IpNet], lb_name: &str) -> Vec<Rule> {
        if self.kind != Kind::Network {
            return Vec::new();
        }
        let describe = |purpose: Purpose| format!("kubernetes.io/rule/nlb/{}={lb_name}", purpose.as_str());
        let mut rules = Vec::new();
        let health = match self.health_check_port.filter(|_| self.local) {
            Some(port) => vec![port],
            None => self.node_ports(Protocol::Tcp),
        };
        if !health.is_empty() {
            let carries = Carries::Ports(Protocol::Tcp, health);
            let description = describe(Purpose::Health);
            rules.push(Rule {
                purpose: Purpose::Health,
                carries,
                ranges: vpc.to_vec(),
                groups: Vec::new(),
                description,
            });
        }
        let from = |purpose, carries, ranges| Rule {
            purpose,
            carries,
            ranges,
            groups: self.sources.groups.clone(),
            description: describe(purpose),
        };
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Sctp] {
            let ports = self.node_ports(protocol);
            if !ports.is_empty() {
                rules.push(from(Purpose::Client, Carries::Ports(protocol, ports), self.client_ranges()));
            }
        }
        for (family, carries) in [(Family::V4, Carries::Icmp(3, 4)), (Family::V6, Carries::Icmpv6(2, 0))] {
            let of = |range: &IpNet| matches!(range, IpNet::V4(_)) == (family == Family::V4);
            let ranges: Vec<_> = self.client_ranges().into_iter().filter(of).collect();
            if !ranges.is_empty() || !self.sources.groups.is_empty() && self.families.contains(&family) {
                rules.push(from(Purpose::Mtu, carries, ranges));
            }
        }
        rules
    }

    /// Where clients may be: everywhere, if nothing is said.
    pub fn client_ranges(&self) -> Vec<IpNet> {
        if !self.sources.ranges.is_empty() || !self.sources.groups.is_empty() {
            return self.sources.ranges.clone();
        }
        let everywhere = |family: &Family| match family {
            Family::V4 => IpNet::V4(Ipv4Net::default()),
            Family::V6 => IpNet::V6(Ipv6Net::default()),
        };
        self.families.iter().map(everywhere).collect()
    }

    fn node_ports(&self, protocol: Protocol) -> Vec<u16> {
        let listeners = self.listeners.iter().filter(|listener| listener.protocol == protocol);
        listeners.filter_map(|listener| listener.node_port).collect()
    }
}
