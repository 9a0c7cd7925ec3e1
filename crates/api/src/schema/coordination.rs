//! Lease.

use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::{Struct as Object, Text};

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.coordination.v1", fields, atomic: false }
}

/// `Lease`.
pub static LEASE: Struct =
    message("Lease", &[field(1, "metadata", Object(&meta::OBJECT_META)), field(2, "spec", Object(&LEASE_SPEC))]);

/// `LeaseSpec`.
pub static LEASE_SPEC: Struct = message(
    "LeaseSpec",
    &[
        field(1, "holderIdentity", TEXT).pointer(),
        field(2, "leaseDurationSeconds", Shape::Int32).pointer(),
        field(3, "acquireTime", Shape::MicroTime).pointer(),
        field(4, "renewTime", Shape::MicroTime).pointer(),
        field(5, "leaseTransitions", Shape::Int32).pointer(),
        field(6, "strategy", Text("v1.CoordinatedLeaseStrategy")).pointer(),
        field(7, "preferredHolder", TEXT).pointer(),
    ],
);
