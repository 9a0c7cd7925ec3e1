//! Scale, which subresource `scale` reads and writes.

use super::{Field, Shape, Struct, TEXT, field, meta};
use Shape::Struct as Object;

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.autoscaling.v1", fields, atomic: false }
}

/// `Scale`.
pub static SCALE: Struct = message(
    "Scale",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)),
        field(2, "spec", Object(&SCALE_SPEC)),
        field(3, "status", Object(&SCALE_STATUS)),
    ],
);

/// `ScaleSpec`.
pub static SCALE_SPEC: Struct = message("ScaleSpec", &[field(1, "replicas", Shape::Int32).default("0")]);

/// `ScaleStatus`.
pub static SCALE_STATUS: Struct =
    message("ScaleStatus", &[field(1, "replicas", Shape::Int32).always().required(), field(2, "selector", TEXT)]);
