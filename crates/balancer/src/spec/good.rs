//! What did a Service ask for when that last made sense? Its annotations of then are kept in one of its own
//! ([`names::LAST_GOOD`]), so that a bad value changes nothing for whoever begins to serve it later: another Node, or this one after
//! a restart. Pure.

use fairlead_api::load_balancer::{self, Annotations};
use fairlead_api::view::Service;

use super::read::asks_for_tls;
use super::{PortId, Refusal, Spec, names, relevant};

/// Entry of [`names::LAST_GOOD`] with the ports that the Service had: `80/TCP,53/UDP`.
const PORTS: &str = "fairlead.dev/ports";

/// Returns the text of [`names::LAST_GOOD`] for a Service whose annotations make sense now; `None`:
/// there is none, as it has no annotations that matter.
pub fn good(service: &Service) -> Option<String> {
    last_good(service).filter(|_| !relevant(service).is_empty())
}

/// Returns the text of [`names::LAST_GOOD`] that is written once the annotations of a Service make
/// no sense any more: also for one that had no annotations, so that its ports are told from those
/// it got later.
pub fn last_good(service: &Service) -> Option<String> {
    let mut kept = relevant(service);
    let ports: Vec<String> = PortId::all(service).iter().map(ToString::to_string).collect();
    kept.insert(PORTS.to_owned(), ports.join(","));
    load_balancer::write(&kept)
}

/// Returns the ports of a Service that do not ask for TLS, as far as its annotations can be read.
/// These may go on where the kernel serves them and it is not known what the Service asked for when
/// that last made sense.
pub fn without_tls(service: &Service) -> Vec<PortId> {
    let mut ports = PortId::all(service);
    ports.retain(|port| !asks_for_tls(service, *port));
    ports
}

/// Returns what a Service asked for when it last made sense, as `read` reads it: by the annotations
/// of then, with the ports of then, and without ports that cannot be served.
pub fn recall(service: &Service, read: impl Fn(&Service) -> Result<Spec, Vec<Refusal>>) -> Option<Spec> {
    let kept = service.metadata.annotations.get(names::LAST_GOOD);
    let mut then = service.clone();
    let mut known = false;
    // Without a word on it nobody knows what was served: anything might be in the clear that must not be.
    if !relevant(service).is_empty() || kept.is_some() {
        let mut kept: Annotations = load_balancer::read(kept?)?;
        if let Some(ports) = kept.remove(PORTS) {
            let ports: Vec<PortId> = ports.split(',').filter_map(|port| port.parse().ok()).collect();
            then.spec.ports.retain(|port| PortId::of(port).is_some_and(|port| ports.contains(&port)));
            known = true;
        }
        relevant(service).keys().for_each(|name| drop(then.metadata.annotations.remove(name)));
        then.metadata.annotations.extend(kept);
    }
    let mut spec = match read(&then) {
        Ok(spec) => spec,
        Err(refused) => {
            if refused.iter().any(|one| one.ports.is_empty()) {
                return None;
            }
            let is_refused = |port: &PortId| refused.iter().any(|one| one.ports.contains(port));
            then.spec.ports.retain(|port| PortId::of(port).is_some_and(|port| !is_refused(&port)));
            read(&then).ok()?
        }
    };
    // An older text does not say which ports there were: one that asks for TLS now may be newer
    // than the text.
    if !known {
        let in_the_clear = spec.served().filter(|one| one.tls.is_none()).map(|one| one.id());
        let closed: Vec<PortId> = in_the_clear.filter(|id| asks_for_tls(service, *id)).collect();
        spec.unserved.extend(closed);
    }
    let is_served = spec.served().next().is_some();
    is_served.then_some(spec)
}
