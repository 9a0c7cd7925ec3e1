//! Evictions.

use super::{Shape, Struct, field, meta};
use Shape::Struct as Object;

/// `Eviction`.
pub static EVICTION: Struct = Struct {
    name: "Eviction",
    package: "io.k8s.api.policy.v1",
    fields: &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "deleteOptions", Object(&meta::DELETE_OPTIONS)).pointer(),
    ],
    atomic: false,
};
