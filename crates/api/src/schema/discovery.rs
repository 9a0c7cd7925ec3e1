//! EndpointSlice.

use super::{Field, Shape, Struct, TEXT, core, field, meta};
use Shape::{List, Map, Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.discovery.v1", fields, atomic: false }
}

/// `Endpoint`.
pub static ENDPOINT: Struct = message(
    "Endpoint",
    &[
        field(1, "addresses", List(&TEXT)).always().required().set(),
        field(2, "conditions", Object(&ENDPOINT_CONDITIONS)),
        field(3, "hostname", TEXT).pointer(),
        field(4, "targetRef", Object(&core::OBJECT_REFERENCE)).pointer(),
        field(5, "deprecatedTopology", Map(&TEXT)),
        field(6, "nodeName", TEXT).pointer(),
        field(7, "zone", TEXT).pointer(),
        field(8, "hints", Object(&ENDPOINT_HINTS)).pointer(),
    ],
);

/// `EndpointConditions`.
pub static ENDPOINT_CONDITIONS: Struct = message(
    "EndpointConditions",
    &[
        field(1, "ready", Shape::Bool).pointer(),
        field(2, "serving", Shape::Bool).pointer(),
        field(3, "terminating", Shape::Bool).pointer(),
    ],
);

/// `EndpointHints`.
pub static ENDPOINT_HINTS: Struct = message(
    "EndpointHints",
    &[field(1, "forZones", List(&Object(&FOR_ZONE))), field(2, "forNodes", List(&Object(&FOR_NODE)))],
);

/// `EndpointPort`.
pub static ENDPOINT_PORT: Struct = message(
    "EndpointPort",
    &[
        field(1, "name", TEXT).pointer(),
        field(2, "protocol", Text("v1.Protocol")).pointer().values(&["SCTP", "TCP", "UDP"]),
        field(3, "port", Shape::Int32).pointer(),
        field(4, "appProtocol", TEXT).pointer(),
    ],
)
.atomic();

/// `EndpointSlice`.
pub static ENDPOINT_SLICE: Struct = message(
    "EndpointSlice",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(4, "addressType", Text("v1.AddressType")).always().required().values(&["FQDN", "IPv4", "IPv6"]),
        field(2, "endpoints", List(&Object(&ENDPOINT))).always(),
        field(3, "ports", List(&Object(&ENDPOINT_PORT))).always(),
    ],
);

/// `ForNode`.
pub static FOR_NODE: Struct = message("ForNode", &[field(1, "name", TEXT).always().required()]);

/// `ForZone`.
pub static FOR_ZONE: Struct = message("ForZone", &[field(1, "name", TEXT).always().required()]);

/// `EndpointSlice` of `v1beta1`.
pub static ENDPOINT_SLICE_V1BETA1: Struct = message_v1beta1(
    "EndpointSlice",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(4, "addressType", Text("v1beta1.AddressType")).always().required(),
        field(2, "endpoints", List(&Object(&ENDPOINT_V1BETA1))).always().required().atomic(),
        field(3, "ports", List(&Object(&ENDPOINT_PORT))).always().atomic(),
    ],
);

/// `Endpoint` of `v1beta1`.
pub static ENDPOINT_V1BETA1: Struct = message_v1beta1(
    "Endpoint",
    &[
        field(1, "addresses", List(&TEXT)).always().required().set(),
        field(2, "conditions", Object(&ENDPOINT_CONDITIONS)),
        field(3, "hostname", TEXT).pointer(),
        field(4, "targetRef", Object(&core::OBJECT_REFERENCE)).pointer(),
        field(5, "topology", Map(&TEXT)),
        field(6, "nodeName", TEXT).pointer(),
        field(7, "hints", Object(&ENDPOINT_HINTS)).pointer(),
    ],
);

const fn message_v1beta1(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.discovery.v1beta1", fields, atomic: false }
}
