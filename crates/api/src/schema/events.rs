//! Event as `events.k8s.io` writes it.

use super::{Field, Shape, Struct, TEXT, core, field, meta};
use Shape::Struct as Object;

const fn message(name: &'static str, fields: &'static [Field]) -> Struct {
    Struct { name, package: "io.k8s.api.events.v1", fields, atomic: false }
}

/// `Event`.
pub static EVENT: Struct = message(
    "Event",
    &[
        field(1, "metadata", Object(&meta::OBJECT_META)).always(),
        field(2, "eventTime", Shape::MicroTime).always().required(),
        field(3, "series", Object(&EVENT_SERIES)).pointer(),
        field(4, "reportingController", TEXT),
        field(5, "reportingInstance", TEXT),
        field(6, "action", TEXT),
        field(7, "reason", TEXT),
        field(8, "regarding", Object(&core::OBJECT_REFERENCE)),
        field(9, "related", Object(&core::OBJECT_REFERENCE)).pointer(),
        field(10, "note", TEXT),
        field(11, "type", TEXT),
        field(12, "deprecatedSource", Object(&core::EVENT_SOURCE)),
        field(13, "deprecatedFirstTimestamp", Shape::Time).always(),
        field(14, "deprecatedLastTimestamp", Shape::Time).always(),
        field(15, "deprecatedCount", Shape::Int32),
    ],
);

/// `EventSeries`.
pub static EVENT_SERIES: Struct = message(
    "EventSeries",
    &[
        field(1, "count", Shape::Int32).always().required(),
        field(2, "lastObservedTime", Shape::MicroTime).always().required(),
    ],
);
