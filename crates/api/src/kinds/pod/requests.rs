//! How much of a resource a Pod requests of its Node (component-helpers/resource/helpers.go,
//! PodRequests).

use crate::look::Look;
use crate::quantity::Quantity;

/// The amount that a container requests, by when the container runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// An init container: runs to its end, beside the sidecars listed before it.
    Init(i128),
    /// A sidecar: an init container that runs on beside all containers after it.
    Sidecar(i128),
    /// A main container.
    Main(i128),
}

/// Returns the amount that the containers of a Pod request at the most demanding moment. Init
/// containers and sidecars come first, in their order.
pub fn total(containers: impl IntoIterator<Item = Demand>) -> i128 {
    let mut mains = 0;
    let mut sidecars = 0;
    let mut initializing = 0;
    for container in containers {
        match container {
            Demand::Init(amount) => initializing = initializing.max(sidecars + amount),
            Demand::Sidecar(amount) => sidecars += amount,
            Demand::Main(amount) => mains += amount,
        }
    }
    initializing.max(sidecars + mains)
}

/// Returns the amount of a resource such as `cpu` or `memory` that a Pod requests, in thousandths.
pub fn of<V: Look>(pod: &V, resource: &str) -> i128 {
    sum(pod, "requests", resource)
}

/// Returns the amount of a resource that the containers of a Pod are limited to, in thousandths; 0
/// if none of them has a limit.
pub fn limit<V: Look>(pod: &V, resource: &str) -> i128 {
    sum(pod, "limits", resource)
}

fn sum<V: Look>(pod: &V, list: &str, resource: &str) -> i128 {
    let spec = pod.at("spec");
    let amount = |of: &V| of.text_opt(resource).and_then(|text| Quantity::parse(text).ok()).map(|known| known.milli());
    let of_container = |container: &V| amount(container.at("resources").at(list)).unwrap_or_default();
    let init = spec.list("initContainers").iter().map(|container| match container.text("restartPolicy") {
        "Always" => Demand::Sidecar(of_container(container)),
        _ => Demand::Init(of_container(container)),
    });
    let mains = spec.list("containers").iter().map(|container| Demand::Main(of_container(container)));
    // What the Pod says as a whole counts in place of what its containers say.
    let whole = amount(spec.at("resources").at(list));
    whole.unwrap_or_else(|| total(init.chain(mains))) + amount(spec.at("overhead")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
