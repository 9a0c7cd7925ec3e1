//! ServiceCIDR and IPAddress.

use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::{List, Struct as Object};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.networking.v1", fields, atomic: false }
}

/// `IPAddress`.
pub static IP_ADDRESS: Struct = message(
    "IPAddress",
    &[field(1, "metadata", Object(&meta::OBJECT_META)), field(2, "spec", Object(&IP_ADDRESS_SPEC)).required()],
);

/// `IPAddressSpec`.
pub static IP_ADDRESS_SPEC: Struct =
    message("IPAddressSpec", &[field(1, "parentRef", Object(&PARENT_REFERENCE)).pointer().required()]);

/// `ParentReference`.
pub static PARENT_REFERENCE: Struct = message(
    "ParentReference",
    &[
        field(1, "group", TEXT),
        field(2, "resource", TEXT).required(),
        field(3, "namespace", TEXT),
        field(4, "name", TEXT).required(),
    ],
);

/// `ServiceCIDR`.
pub static SERVICE_CIDR: Struct = message(
    "ServiceCIDR",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&SERVICE_CIDR_SPEC)),
        field(3, "status", Object(&SERVICE_CIDR_STATUS)),
    ],
);

/// `ServiceCIDRSpec`.
pub static SERVICE_CIDR_SPEC: Struct = message("ServiceCIDRSpec", &[field(1, "cidrs", List(&TEXT))]);

/// `ServiceCIDRStatus`.
pub static SERVICE_CIDR_STATUS: Struct = message(
    "ServiceCIDRStatus",
    &[field(1, "conditions", List(&Object(&meta::CONDITION))).keys(&["type"]).merge("type")],
);
