//! Which port of a Service: what listeners, refusals and the status of a Service are matched by.

use std::fmt;
use std::str::FromStr;

use fairlead_api::view::{Protocol, Service, ServicePort};

use super::{Listener, Spec};

/// A port of a Service. No other port of the Service has the same number and protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId {
    /// The number.
    pub number: u16,
    /// The protocol.
    pub protocol: Protocol,
}

impl PortId {
    /// Returns the identity of a port of a Service; `None` if its number is none.
    pub fn of(port: &ServicePort) -> Option<PortId> {
        let number = u16::try_from(port.port).ok().filter(|number| *number > 0)?;
        Some(PortId { number, protocol: port.protocol })
    }

    /// Returns all ports of a Service, in its order.
    pub fn all(service: &Service) -> Vec<PortId> {
        service.spec.ports.iter().filter_map(PortId::of).collect()
    }

    /// Writes ports as `80/TCP, 53/UDP`.
    pub fn list(ports: &[PortId]) -> String {
        ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.protocol)
    }
}

impl FromStr for PortId {
    type Err = ();

    fn from_str(text: &str) -> Result<PortId, ()> {
        let (number, protocol) = text.split_once('/').ok_or(())?;
        let known = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
        let protocol = known.into_iter().find(|known| known.as_str() == protocol).ok_or(())?;
        Ok(PortId { number: number.parse().map_err(|_| ())?, protocol })
    }
}

impl Listener {
    /// Returns the port of the Service that the listener is for.
    pub fn id(&self) -> PortId {
        PortId { number: self.port, protocol: self.protocol }
    }
}

impl Spec {
    /// Returns the listeners that may be opened.
    pub fn served(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(|listener| !self.unserved.contains(&listener.id()))
    }

    /// Returns the ports that may be opened.
    pub fn served_ports(&self) -> Vec<PortId> {
        self.served().map(Listener::id).collect()
    }

    /// Puts listeners that were served before in the place of those that cannot be: a value that is
    /// not accepted changes nothing at a port that is open.
    pub fn keep_served(&mut self, before: &Spec) {
        for old in before.served() {
            let id = old.id();
            if self.unserved.contains(&id)
                && let Some(listener) = self.listeners.iter_mut().find(|listener| listener.id() == id)
            {
                *listener = old.clone();
                self.unserved.retain(|port| *port != id);
            }
        }
    }
}
