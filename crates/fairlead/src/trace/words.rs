//! How senders and receivers of packets are written on the command line.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_proxy::trace::{From, To};

/// `pod/web`, `pod/default/web`, `node`, `198.51.100.7`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sender {
    Pod(Name),
    Node,
    Address(IpAddr),
}

/// `10.96.0.10:53/UDP`, `svc/dns:53/UDP`, `svc/kube-system/dns`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Receiver {
    Address(SocketAddr, Protocol),
    Service(Name, Option<String>, Option<Protocol>),
}

/// A name, perhaps with its namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    namespace: Option<String>,
    name: String,
}

impl Name {
    fn read(text: &str) -> Result<Name, String> {
        let fine = |part: &str| {
            !part.is_empty() && part.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '.')
        };
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        match namespace.is_none_or(fine) && fine(name) {
            true => Ok(Name { namespace: namespace.map(ToOwned::to_owned), name: name.to_owned() }),
            false => Err(format!("{text:?} is no name")),
        }
    }

    fn key(&self, namespace: &str) -> Key {
        Key::new(self.namespace.as_deref().unwrap_or(namespace), self.name.as_str())
    }
}

impl FromStr for Sender {
    type Err = String;

    fn from_str(text: &str) -> Result<Sender, String> {
        if let Some(name) = strip(text, &["pod/", "pods/", "po/"]) {
            return Name::read(name).map(Sender::Pod);
        }
        match text {
            "node" => Ok(Sender::Node),
            _ => text.parse().map(Sender::Address).map_err(|_| "want pod/NAME, node, or an address".to_owned()),
        }
    }
}

impl FromStr for Receiver {
    type Err = String;

    fn from_str(text: &str) -> Result<Receiver, String> {
        let (rest, protocol) = protocol(text);
        if let Some(name) = strip(rest, &["svc/", "service/", "services/"]) {
            let (name, port) = match name.split_once(':') {
                Some((name, port)) if !port.is_empty() => (name, Some(port.to_owned())),
                Some(_) => return Err("want a port behind the colon".to_owned()),
                None => (name, None),
            };
            return Ok(Receiver::Service(Name::read(name)?, port, protocol));
        }
        let address = rest.parse().map_err(|_| "want ADDRESS:PORT, ADDRESS:PORT/UDP or svc/NAME:PORT".to_owned())?;
        Ok(Receiver::Address(address, protocol.unwrap_or_default()))
    }
}

impl Sender {
    /// With the namespace for names that have none.
    pub(super) fn resolve(&self, namespace: &str) -> From {
        match self {
            Sender::Pod(name) => From::Pod(name.key(namespace)),
            Sender::Node => From::Node,
            Sender::Address(ip) => From::Address(*ip),
        }
    }
}

impl Receiver {
    /// With the namespace for names that have none.
    pub(super) fn resolve(&self, namespace: &str) -> To {
        match self {
            Receiver::Address(address, protocol) => To::Address(address.ip(), address.port(), *protocol),
            Receiver::Service(name, port, protocol) => To::Service(name.key(namespace), port.clone(), *protocol),
        }
    }
}

fn strip<'a>(text: &'a str, prefixes: &[&str]) -> Option<&'a str> {
    prefixes.iter().find_map(|prefix| text.strip_prefix(prefix))
}

/// Takes the protocol off the end.
fn protocol(text: &str) -> (&str, Option<Protocol>) {
    let Some((rest, last)) = text.rsplit_once('/') else { return (text, None) };
    match last.to_ascii_uppercase().as_str() {
        "TCP" => (rest, Some(Protocol::Tcp)),
        "UDP" => (rest, Some(Protocol::Udp)),
        "SCTP" => (rest, Some(Protocol::Sctp)),
        _ => (text, None),
    }
}
