//! Names of things in a plan: the same from one plan to the next and from one run of the program to the next, so that a
//! renderer can tell what changed and what stayed.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{Family, Protocol};

/// One port of one Service in one address family. Everything a packet can meet belongs to one of these; session affinity is
/// kept per such port, whichever address the client used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortKey {
    /// The Service.
    pub service: Arc<Key>,
    /// The name of its port, empty for an unnamed one.
    pub name: Arc<str>,
    /// The protocol of its port.
    pub protocol: Protocol,
    /// The family of the addresses meant.
    pub family: Family,
}

/// `default/web:http/TCP/IPv4`
impl fmt::Display for PortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}/{}", self.service, self.name, self.protocol, self.family)
    }
}

/// What a packet must be addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrontendKey {
    /// This address.
    Address {
        /// The address.
        ip: IpAddr,
        /// The protocol.
        protocol: Protocol,
        /// The port.
        port: u16,
    },
    /// Any address of the Node that serves node ports (see [`crate::Node::node_ports`]).
    NodePort {
        /// The family.
        family: Family,
        /// The protocol.
        protocol: Protocol,
        /// The port.
        port: u16,
    },
}

impl FrontendKey {
    /// The family.
    pub fn family(&self) -> Family {
        match self {
            FrontendKey::Address { ip, .. } => family_of(*ip),
            FrontendKey::NodePort { family, .. } => *family,
        }
    }

    /// The protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            FrontendKey::Address { protocol, .. } | FrontendKey::NodePort { protocol, .. } => *protocol,
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        match self {
            FrontendKey::Address { port, .. } | FrontendKey::NodePort { port, .. } => *port,
        }
    }
}

/// `10.96.0.10:53/UDP`, `[fd00:96::a]:53/UDP` or `node port 30080/TCP/IPv4`
impl fmt::Display for FrontendKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrontendKey::Address { ip, protocol, port } => {
                write!(f, "{}/{protocol}", std::net::SocketAddr::new(*ip, *port))
            }
            FrontendKey::NodePort { family, protocol, port } => write!(f, "node port {port}/{protocol}/{family}"),
        }
    }
}

/// Which endpoints of a port: a traffic policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Those the whole cluster offers, narrowed by topology.
    Cluster,
    /// Those on this Node.
    Local,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scope::Cluster => "Cluster",
            Scope::Local => "Local",
        })
    }
}

/// A list of endpoints to choose from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey {
    /// Whose.
    pub port: PortKey,
    /// Which.
    pub scope: Scope,
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} policy)", self.port, self.scope)
    }
}

/// The family of an address.
pub fn family_of(ip: IpAddr) -> Family {
    if ip.is_ipv4() { Family::V4 } else { Family::V6 }
}
