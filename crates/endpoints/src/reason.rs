//! Why something is not an endpoint. Events, `explain` and logs print these same facts.

use fairlead_api::view::Family;
use thiserror::Error;

/// Why a Pod or an address is not an endpoint, or a Service has none, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Reason {
    /// A Service that is only another name has no endpoints; those it once had stay as they are.
    #[error("the Service is of type ExternalName")]
    ExternalName,
    /// The endpoints of a Service without selector are made by hand.
    #[error("the Service has no selector")]
    NoSelector,
    /// No Pod has the labels the Service asks for.
    #[error("no Pod has the labels {}", selector.join(","))]
    NoPods {
        /// `key=value`, sorted.
        selector: Vec<String>,
    },
    /// Pods are selected, but each is left out for a reason of its own.
    #[error("none of the {pods} Pods selected can be an endpoint")]
    AllLeftOut {
        /// How many are selected.
        pods: usize,
    },
    /// The Pod has ended for good.
    #[error("the Pod is in phase {phase}")]
    Terminal {
        /// `Succeeded` or `Failed`.
        phase: String,
    },
    /// The Pod is not in the legacy Endpoints because it is on its way out.
    #[error("the Pod is being deleted since {since}")]
    Terminating {
        /// The deletion timestamp.
        since: String,
    },
    /// The Pod has no address yet.
    #[error("the Pod has no IP address")]
    NoAddress,
    /// The Pod has addresses, but of the other family.
    #[error("the Pod has no {family} address")]
    NoAddressOfFamily {
        /// The family looked for.
        family: Family,
    },
    /// The Pod names a Node that does not exist.
    #[error("the Node {node:?} of the Pod does not exist")]
    NodeMissing {
        /// Its name.
        node: String,
    },
    /// The Pod has no container port of the name a target port gives: traffic to that port does not reach it.
    #[error("the Pod has no {protocol} container port named {target:?}, to which port {port:?} leads")]
    PortMissing {
        /// The name of the Service's port.
        port: String,
        /// The name its target port gives.
        target: String,
        /// Its protocol.
        protocol: &'static str,
    },
    /// Not all addresses found a place in the legacy Endpoints.
    #[error("{left_out} addresses are above the {max} that Endpoints may have")]
    OverCapacity {
        /// How many may be there.
        max: usize,
        /// How many are not there.
        left_out: usize,
    },
    /// There are no Endpoints to mirror.
    #[error("there are no Endpoints of that name")]
    NoEndpoints,
    /// The Endpoints ask not to be mirrored.
    #[error("the Endpoints have the label endpointslice.kubernetes.io/skip-mirror=true")]
    SkipMirror,
    /// The Endpoints are a lock.
    #[error("the Endpoints are a lock for leader election")]
    LeaderElection,
    /// The Endpoints belong to no Service.
    #[error("there is no Service of that name")]
    NoService,
    /// The endpoints of a Service with selector are made from Pods, not from Endpoints.
    #[error("the Service has a selector")]
    HasSelector,
    /// What should be an address is none.
    #[error("{address:?} is not an IP address")]
    InvalidAddress {
        /// The text.
        address: String,
    },
    /// Above what is mirrored of one subset.
    #[error("only {max} addresses of a subset are mirrored")]
    TooManyAddresses {
        /// How many are.
        max: usize,
    },
}
