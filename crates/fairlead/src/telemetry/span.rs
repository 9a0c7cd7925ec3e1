//! A span, and its form in OTLP's JSON.

use serde_json::{Value, json};

/// A stretch of time in the life of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) trace: u128,
    pub(super) id: u64,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
    /// Nanoseconds of the epoch.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: Vec<(&'static str, String)>,
}

impl Span {
    fn json(&self) -> Value {
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{:016x}", self.id),
            "name": self.name,
            "kind": 1,
            // 64-bit numbers are texts in protobuf's JSON.
            "startTimeUnixNano": self.start.to_string(),
            "endTimeUnixNano": self.end.to_string(),
            "attributes": attributes(&self.attributes),
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(format!("{parent:016x}"));
        }
        span
    }
}

/// A request with spans, of one process of a cluster.
pub(super) fn request(spans: &[Span], cluster: &str, host: &str) -> Value {
    let process = [
        ("service.name", "fairlead".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("k8s.cluster.name", cluster.to_owned()),
        ("host.name", host.to_owned()),
        ("process.pid", std::process::id().to_string()),
    ];
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&process)},
        "scopeSpans": [{
            "scope": {"name": "fairlead"},
            "spans": spans.iter().map(Span::json).collect::<Vec<Value>>(),
        }],
    }]})
}

fn attributes(pairs: &[(&str, String)]) -> Value {
    pairs.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}
