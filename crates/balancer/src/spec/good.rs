//! What did a Service ask for when that last made sense? Its annotations of then are kept in one of its own
//! ([`names::LAST_GOOD`]), so that a bad value changes nothing for whoever begins to serve it later: another Node, or this one after
//! a restart. Pure.

use fairlead_api::load_balancer;
use fairlead_api::view::Service;

use super::{Refusal, Spec, names, relevant};

/// What is to be kept of a Service whose annotations make sense now; `None`: nothing, it has none that matter.
pub fn good(service: &Service) -> Option<String> {
    load_balancer::write(&relevant(service))
}

/// What a Service asks for that last made sense, as `read` reads it: by the annotations of then, and without ports that cannot be served.
pub fn recall(service: &Service, read: impl Fn(&Service) -> Result<Spec, Vec<Refusal>>) -> Option<Spec> {
    let kept = service.metadata.annotations.get(names::LAST_GOOD);
    let mut then = service.clone();
    // Without a word on it nobody knows what was served: anything might be in the clear that must not be.
    if !relevant(service).is_empty() || kept.is_some() {
        let kept = load_balancer::read(kept?)?;
        relevant(service).keys().for_each(|name| drop(then.metadata.annotations.remove(name)));
        then.metadata.annotations.extend(kept);
    }
    let refused = match read(&then) {
        Ok(spec) => return Some(spec),
        Err(refused) => refused,
    };
    let ports: Option<Vec<usize>> = refused.iter().map(|one| one.port).collect();
    let ports = ports.filter(|ports| ports.len() < then.spec.ports.len())?;
    let mut place = 0..;
    then.spec.ports.retain(|_| place.next().is_some_and(|place| !ports.contains(&place)));
    read(&then).ok()
}
