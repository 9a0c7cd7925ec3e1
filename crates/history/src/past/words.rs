//! Answers as JSON, as pages and commands get them.

use fairlead_api::Look;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Happened, Item, Moment, Place, Timeline};
use crate::Followed;
use crate::lines::Port;
use crate::record::Gap;

impl Timeline {
    /// As `/fairlead/v1/history` answers.
    pub fn json(&self) -> Value {
        let items: Vec<Value> = self.items.iter().map(Item::json).collect();
        json!({"kept": {"from": self.from.map(time), "revisions": self.changes}, "items": items})
    }
}

impl Item {
    fn json(&self) -> Value {
        json!({
            "at": time(self.at),
            "late": self.late,
            "revision": self.revision.to_string(),
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "change": self.change.word(),
            "by": self.by,
            "lines": self.lines,
        })
    }
}

impl Happened {
    /// As people and pages read it.
    pub fn word(self) -> &'static str {
        match self {
            Happened::Created => "created",
            Happened::Changed => "changed",
            Happened::Deleted => "deleted",
            Happened::Event => "event",
            Happened::Gap => "gap",
        }
    }
}

impl Moment {
    /// As `/fairlead/v1/history/at` answers.
    pub fn json(&self) -> Value {
        let port = |port: &Port| json!({"name": port.name, "port": port.port, "protocol": port.protocol});
        let place = |place: &Place| {
            json!({
                "address": place.address,
                "ports": place.ports.iter().map(port).collect::<Vec<_>>(),
                "ready": place.ready,
                "serving": place.serving,
                "terminating": place.terminating,
                "inRotation": place.in_rotation,
                "why": place.why,
                "node": place.node,
                "target": place.target,
            })
        };
        json!({
            "at": time(self.at),
            "subject": self.subject.to_string(),
            "revision": self.revision.to_string(),
            "object": self.object.as_deref(),
            "endpoints": self.endpoints.iter().map(place).collect::<Vec<_>>(),
            "pods": self.pods,
            "gap": self.gap.as_ref().map(gap),
        })
    }
}

/// An Event stands under the name of what it is about.
pub(super) fn about(item: &mut Item, event: &Value) {
    let about = event.at("involvedObject");
    item.change = Happened::Event;
    item.name = about.text("name").to_owned();
    let known = Followed::ALL.into_iter().find(|kind| kind.kind().kind == about.text("kind"));
    // That of the Event says nothing of a Node.
    if known.is_some_and(|kind| !kind.kind().namespaced) {
        item.namespace.clear();
    }
    item.by = event.text("reportingComponent").to_owned();
    let whom = format!("{} {}", about.text("kind"), about.text("name"));
    item.lines.iter_mut().for_each(|line| *line = format!("{whom}: {line}"));
}

pub(super) fn gap(gap: &Gap) -> String {
    format!("changes between {} and {} may be missing: {}", time(gap.from), time(gap.to), gap.why)
}

fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}
