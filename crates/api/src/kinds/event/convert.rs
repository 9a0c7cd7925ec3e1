//! Event between the two groups: the same facts under other names.

use crate::value::{Map, Value};

use crate::Look;
use crate::decode::decode;
use crate::schema::{self, Struct};

/// Names in the core group, and in `events.k8s.io`. All other fields have the same name in both.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// From `events.k8s.io` to the core group.
pub fn store(event: &Value) -> Value {
    renamed(event, "v1", &schema::core::EVENT, |name| NAMES.iter().find(|(_, events)| *events == name).map(|n| n.0))
}

/// From the core group to `events.k8s.io`.
pub fn load(event: &Value) -> Value {
    renamed(event, "events.k8s.io/v1", &schema::events::EVENT, |name| {
        NAMES.iter().find(|(core, _)| *core == name).map(|n| n.1)
    })
}

fn renamed(
    event: &Value,
    api_version: &str,
    to: &'static Struct,
    name: impl Fn(&str) -> Option<&'static str>,
) -> Value {
    let fields = event.as_object().into_iter().flatten();
    let renamed: Map = fields.map(|(key, value)| (name(key).unwrap_or(key).to_owned(), value.clone())).collect();
    let mut event = Value::Object(renamed);
    event.set("kind", "Event");
    event.set("apiVersion", api_version);
    // Brings the fields into the order of the type, which also decides what is written when it is empty.
    decode(to, event.clone()).map_or(event, |decoded| decoded.value)
}
