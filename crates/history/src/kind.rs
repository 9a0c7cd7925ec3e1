//! Which kinds have a past, and under which number each stands in the files.

use fairlead_api::{Kind, kinds};

/// A kind whose changes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Followed {
    /// Services.
    Service,
    /// EndpointSlices.
    EndpointSlice,
    /// Endpoints that people or foreign programs wrote.
    Endpoints,
    /// Pods: what matters to a Service.
    Pod,
    /// Nodes: what matters to a Service.
    Node,
    /// The ranges of cluster IPs.
    ServiceCidr,
    /// Events about any of them.
    Event,
}

impl Followed {
    /// All of them. What matters most comes first, where not everything has room.
    pub const ALL: [Followed; 7] = [
        Followed::Service,
        Followed::EndpointSlice,
        Followed::Endpoints,
        Followed::Pod,
        Followed::Node,
        Followed::ServiceCidr,
        Followed::Event,
    ];

    /// The kind of the API.
    pub fn kind(self) -> &'static Kind {
        match self {
            Followed::Service => &kinds::SERVICE,
            Followed::EndpointSlice => &kinds::ENDPOINT_SLICE,
            Followed::Endpoints => &kinds::ENDPOINTS,
            Followed::Pod => &kinds::POD,
            Followed::Node => &kinds::NODE,
            Followed::ServiceCidr => &kinds::SERVICE_CIDR,
            Followed::Event => &kinds::EVENT,
        }
    }

    /// Its number in files; it never changes.
    pub(crate) fn code(self) -> u8 {
        match self {
            Followed::Service => 1,
            Followed::EndpointSlice => 2,
            Followed::Endpoints => 3,
            Followed::Pod => 4,
            Followed::Node => 5,
            Followed::ServiceCidr => 6,
            Followed::Event => 7,
        }
    }

    pub(crate) fn of_code(code: u8) -> Option<Followed> {
        Followed::ALL.into_iter().find(|kind| kind.code() == code)
    }
}
