//! What the status of a Service says of its ports when some of them are not served.

use fairlead_api::view::{Ingress, IngressPort, Service, ServicePort};

use super::Kept;
use crate::spec::{PortId, Refusal, names};

/// Error in the status of a port whose protocol is not served.
const PROTOCOL: &str = "fairlead.dev/ProtocolNotServed";
/// Error in the status of a port that asks for TLS and has no certificate.
const CERTIFICATE: &str = "fairlead.dev/CertificateMissing";
/// Error in the status of a port that was added after the annotations of the Service last made
/// sense.
const REFUSED: &str = "fairlead.dev/NotServed";

/// Returns all ports of a Service, if some of them are not served, with what is wrong with those.
pub(super) fn errors(service: &Service, refused: &[Refusal], served: &[PortId]) -> Vec<IngressPort> {
    let error = |port: &ServicePort| {
        let id = PortId::of(port).filter(|id| !served.contains(id))?;
        let named = refused.iter().find(|one| one.ports.contains(&id));
        Some(match named {
            Some(refusal) if refusal.what == names::SSL_CERT => CERTIFICATE,
            Some(_) => PROTOCOL,
            None => REFUSED,
        })
    };
    let port = |port: &ServicePort| IngressPort {
        port: port.port,
        protocol: port.protocol,
        error: error(port).map(str::to_owned),
    };
    let all: Vec<IngressPort> = service.spec.ports.iter().map(port).collect();
    if refused.is_empty() || all.iter().all(|port| port.error.is_none()) { Vec::new() } else { all }
}

/// A Service that is refused stays where it is; the status says which ports are not served there.
pub(super) fn told(service: &Service, ports: Vec<IngressPort>) -> Kept {
    let has = &service.status.load_balancer.ingress;
    if has.iter().all(|one| one.ports == ports) {
        return Kept::Same;
    }
    Kept::At(has.iter().map(|one| Ingress { ports: ports.clone(), ..one.clone() }).collect())
}
