//! Why something is not in the plan, or not as asked. Logs, Events, `explain` and `trace` print these same facts.

use std::fmt;
use std::net::IpAddr;

use fairlead_api::view::Family;
use thiserror::Error;

use crate::key::PortKey;

/// Something about a Service that was left out, or fell back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// What it is about.
    pub about: About,
    /// What and why.
    pub reason: Reason,
}

impl Note {
    /// Whether packets for that port may meet what it says.
    pub(crate) fn is_about(&self, port: &PortKey) -> bool {
        matches!(&self.about, About::Port(other) if other == port)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.about, self.reason)
    }
}

/// What a note is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// The Service.
    Service,
    /// One of its ports in one family.
    Port(PortKey),
    /// One of its EndpointSlices, by name.
    Slice(String),
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            About::Service => f.write_str("Service"),
            About::Port(port) => write!(f, "port {port}"),
            About::Slice(name) => write!(f, "EndpointSlice {name}"),
        }
    }
}

/// Traffic by which policy of a Service it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Traffic {
    /// To cluster IPs: `internalTrafficPolicy`.
    Internal,
    /// To all other addresses: `externalTrafficPolicy`.
    External,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Traffic::Internal => "internal",
            Traffic::External => "external",
        })
    }
}

/// Why something is not in the plan, or not as asked, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Error)]
pub enum Reason {
    /// Only another name.
    #[error("it is of type ExternalName: there is nothing to proxy")]
    ExternalName,
    /// No cluster IP by wish.
    #[error("it is headless (clusterIP None): there is nothing to proxy")]
    Headless,
    /// Not allocated yet.
    #[error("it has no cluster IP")]
    NoClusterIp,
    /// A label gives it to another proxy.
    #[error("its label service.kubernetes.io/service-proxy-name gives it to {proxy:?}")]
    OtherProxy {
        /// The value of the label.
        proxy: String,
    },
    /// A label marks it.
    #[error("it has the label service.kubernetes.io/headless")]
    HeadlessLabel,
    /// Addresses of a family in which the Service has no cluster IP are not served.
    #[error("{address} is not served: the Service has no {family} cluster IP")]
    NoClusterIpOfFamily {
        /// The address.
        address: IpAddr,
        /// Its family.
        family: Family,
    },
    /// What should be an address is none.
    #[error("{text:?} in {field} is not an IP address")]
    InvalidAddress {
        /// Where it stands.
        field: &'static str,
        /// What stands there.
        text: String,
    },
    /// What should be a range is none.
    #[error("{text:?} in loadBalancerSourceRanges is not a range of addresses")]
    InvalidRange {
        /// What stands there.
        text: String,
    },
    /// What should be a port is none.
    #[error("port {number} is not a port number")]
    InvalidPort {
        /// What stands there.
        number: i32,
    },
    /// The load balancer wants to see the traffic itself.
    #[error("traffic to {address} is left to the load balancer (ipMode {mode})")]
    LeftToLoadBalancer {
        /// The address.
        address: IpAddr,
        /// What it says.
        mode: String,
    },
    /// No healthCheckNodePort where one is due.
    #[error("externalTrafficPolicy is Local, but there is no healthCheckNodePort")]
    NoHealthCheckPort,
    /// A slice with names instead of addresses.
    #[error("its addresses are names (addressType FQDN)")]
    Names,
    /// A port of a slice without a number.
    #[error("port {name:?} has no valid number")]
    InvalidSlicePort {
        /// Its name.
        name: String,
    },
    /// An endpoint without addresses.
    #[error("an endpoint has no address")]
    NoAddress,
    /// An endpoint's address cannot be one.
    #[error("{text:?} cannot be an endpoint of this slice")]
    InvalidEndpoint {
        /// What stands there.
        text: String,
    },
    /// The annotation with weights cannot be read; those parts count as absent.
    #[error("{text:?} in the annotation fairlead.dev/weight is not a weight from 0 to 100")]
    InvalidWeight {
        /// What stands there.
        text: String,
    },
    /// Nobody could serve it: it is refused.
    #[error("it has no usable endpoint: {known} known, {draining} of them with weight 0")]
    NoEndpoints {
        /// How many are there, ready or not.
        known: usize,
        /// How many of these are only there to finish what they have.
        draining: usize,
    },
    /// Policy Local, and the endpoints are elsewhere: traffic is dropped.
    #[error("{traffic} traffic policy is Local and no usable endpoint is on this Node")]
    NoLocalEndpoints {
        /// Which traffic.
        traffic: Traffic,
    },
    /// Nothing is ready, so what still answers is used.
    #[error("no endpoint is ready: {count} that are on their way out but still serve are used")]
    UsesTerminating {
        /// How many.
        count: usize,
    },
    /// Likewise, for policy Local.
    #[error("no endpoint on this Node is ready: {count} that are on their way out but still serve are used")]
    UsesLocalTerminating {
        /// How many.
        count: usize,
    },
    /// Hints are only followed when every endpoint has one.
    #[error("hints for {what} are ignored: {without} of {ready} ready endpoints have none")]
    HintsIncomplete {
        /// `Nodes` or `zones`.
        what: &'static str,
        /// How many ready endpoints have none.
        without: usize,
        /// How many are ready.
        ready: usize,
    },
    /// No hint names us.
    #[error("hints for {what} are ignored: none names {ours:?}")]
    NotHinted {
        /// `Nodes` or `zones`.
        what: &'static str,
        /// This Node or its zone.
        ours: String,
    },
    /// Hints for zones, but the Node has none.
    #[error("hints for zones are ignored: this Node has no label topology.kubernetes.io/zone")]
    NoZone,
    /// Hints are followed.
    #[error("hints for {what} are followed: {kept} of {ready} ready endpoints are for {ours:?}")]
    Hinted {
        /// `Nodes` or `zones`.
        what: &'static str,
        /// This Node or its zone.
        ours: String,
        /// How many are used.
        kept: usize,
        /// How many are ready.
        ready: usize,
    },
    /// A topology key was followed.
    #[error("topologyKeys: {kept} of {usable} endpoints match {key:?}")]
    TopologyKey {
        /// The key.
        key: String,
        /// How many are used.
        kept: usize,
        /// How many could be.
        usable: usize,
    },
    /// No topology key has an endpoint: traffic is refused.
    #[error("topologyKeys: none of {usable} endpoints matches any of {keys:?}")]
    NoTopologyMatch {
        /// The keys.
        keys: Vec<String>,
        /// How many could be used otherwise.
        usable: usize,
    },
    /// Keys are given, but the gate is off.
    #[error("topologyKeys are ignored: the gate ServiceTopology is off")]
    TopologyKeysOff,
}
