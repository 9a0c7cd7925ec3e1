//! Events as evidence: what somebody said about a Service or a Pod.

use fairlead_api::source::Key;
use fairlead_api::view::{Meta, ObjectReference, View};
use fairlead_api::{Kind, kinds};
use serde::Deserialize;

/// An Event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// Metadata.
    pub metadata: Meta,
    /// What it is about.
    pub involved_object: ObjectReference,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who says so.
    pub source: Source,
    /// The same, of those who write the newer form.
    pub reporting_component: String,
    /// In a word.
    pub reason: String,
    /// In a sentence.
    pub message: String,
    /// When it was last so, RFC 3339.
    pub last_timestamp: Option<String>,
    /// The same, of those who write the newer form.
    pub event_time: Option<String>,
}

/// Who says something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Source {
    /// The name of the program: `fairlead-balancer`, `service-controller`, ...
    pub component: String,
}

impl View for Event {
    const KIND: &'static Kind = &kinds::EVENT;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Event {
    /// The kind and the key of what it is about.
    pub(crate) fn about(&self) -> (String, Key) {
        let ObjectReference { kind, namespace, name, .. } = &self.involved_object;
        (kind.clone(), Key::new(namespace.as_str(), name.as_str()))
    }

    /// The name of the program that says so.
    pub(crate) fn by(&self) -> &str {
        if self.source.component.is_empty() { &self.reporting_component } else { &self.source.component }
    }

    /// When it was last so; RFC 3339 sorts as it is written.
    pub(crate) fn at(&self) -> &str {
        let at =
            self.last_timestamp.as_ref().or(self.event_time.as_ref()).or(self.metadata.creation_timestamp.as_ref());
        at.map_or("", String::as_str)
    }
}
