//! What the status of a Service says of its ports when some of them are not served.

use fairlead_api::view::{Ingress, IngressPort, Service, ServicePort};

use super::Kept;
use crate::spec::Refusal;

/// What the status says of a port whose protocol is not served.
const NOT_SERVED: &str = "fairlead.dev/ProtocolNotServed";

/// All ports of a Service, if some of them are refused, with what is wrong with those.
pub(super) fn errors(service: &Service, refused: &[Refusal]) -> Vec<IngressPort> {
    let bad = |place: usize| refused.iter().any(|one| one.port == Some(place));
    if refused.iter().all(|one| one.port.is_none()) {
        return Vec::new();
    }
    let ports = service.spec.ports.iter().enumerate();
    let port = |(place, port): (usize, &ServicePort)| IngressPort {
        port: port.port,
        protocol: port.protocol,
        error: bad(place).then(|| NOT_SERVED.to_owned()),
    };
    ports.map(port).collect()
}

/// A Service that is refused stays where it is; the status says which ports are not served there.
pub(super) fn told(service: &Service, ports: Vec<IngressPort>) -> Kept {
    let has = &service.status.load_balancer.ingress;
    if has.iter().all(|one| one.ports == ports) {
        return Kept::Same;
    }
    Kept::At(has.iter().map(|one| Ingress { ports: ports.clone(), ..one.clone() }).collect())
}
