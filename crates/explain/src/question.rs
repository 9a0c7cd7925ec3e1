//! What is asked: which Service, which of its ports, and from where.

use std::net::IpAddr;

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The Service.
    pub service: Key,
    /// The port a client uses, by number or name; `None`: all of the Service's.
    pub port: Option<String>,
    /// Its protocol, if that matters.
    pub protocol: Option<Protocol>,
    /// Who the client is.
    pub from: From,
    /// The name the client uses, such as `web` or `web.shop`; `None`: the whole name.
    pub host: Option<String>,
}

impl Question {
    /// About all ports of a Service, from anywhere in the cluster.
    pub fn about(service: Key) -> Question {
        Question { service, port: None, protocol: None, from: From::Cluster, host: None }
    }
}

/// Who the client is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum From {
    /// Somebody in the cluster.
    #[default]
    Cluster,
    /// A Pod.
    Pod(Key),
    /// A Node itself; the name if it is known.
    Node(Option<String>),
    /// Somebody outside of the cluster, with that address if it is known.
    Outside(Option<IpAddr>),
}
