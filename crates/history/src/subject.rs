//! Whose past is asked for, and what belongs to it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use fairlead_api::Look;
use serde_json::{Map, Value};

use crate::Followed;
use crate::replay::{Id, Seen, World};

#[cfg(test)]
mod tests;

/// The label that says which Service an EndpointSlice is of.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Where Events about what is in no namespace are, as every client of Kubernetes has it.
const EVENTS_OF_NODES: &str = "default";

/// Whose past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The kind.
    pub kind: Followed,
    /// Empty for Nodes and ranges.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// `svc/default/web`, `pod/default/web-1`, `node/n1`.
impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Subject, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let wrong = || format!("{text:?} names nothing: want svc/NAMESPACE/NAME, pod/NAMESPACE/NAME or node/NAME");
        let (word, rest) = parts.split_first().ok_or_else(wrong)?;
        let kind = Followed::ALL.into_iter().find(|kind| *kind != Followed::Event && called(*kind, word));
        let kind = kind.ok_or_else(|| format!("{word:?} is no kind whose past is kept"))?;
        let (namespace, name) = match (kind.kind().namespaced, rest) {
            (true, [namespace, name]) => (*namespace, *name),
            (false, [name]) => ("", *name),
            _ => return Err(wrong()),
        };
        if name.is_empty() || (kind.kind().namespaced && namespace.is_empty()) {
            return Err(wrong());
        }
        Ok(Subject { kind, namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

fn called(kind: Followed, word: &str) -> bool {
    let kind = kind.kind();
    let lower = word.to_ascii_lowercase();
    lower == kind.resource || lower == kind.kind.to_ascii_lowercase() || kind.short_names.contains(&&*lower)
}

/// `svc/default/web`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.kind {
            Followed::Service => "svc".to_owned(),
            kind => kind.kind().kind.to_ascii_lowercase(),
        };
        match self.namespace.as_str() {
            "" => write!(f, "{word}/{}", self.name),
            namespace => write!(f, "{word}/{namespace}/{}", self.name),
        }
    }
}

impl Subject {
    /// Where something stands that belongs to it. Events have a namespace, those about a Node too.
    pub(crate) fn namespaces(&self) -> Vec<&str> {
        match self.kind.kind().namespaced {
            true => vec![&self.namespace],
            false => vec![&self.namespace, EVENTS_OF_NODES],
        }
    }
}

/// Tells what belongs to a subject, while a file is read. Who once belonged to a Service, its later Events do too.
#[derive(Debug)]
pub(crate) struct Members<'s> {
    subject: &'s Subject,
    known: BTreeSet<(Followed, Box<str>)>,
}

impl<'s> Members<'s> {
    pub(crate) fn new(subject: &'s Subject) -> Members<'s> {
        Members { subject, known: BTreeSet::new() }
    }

    /// Whether a change belongs to the subject. The world is as it is after the change.
    pub(crate) fn include(&mut self, world: &World, seen: &Seen) -> bool {
        let change = &seen.change;
        if change.kind == Followed::Event {
            return seen.after.as_deref().is_some_and(|event| self.concerned(world, event.at("involvedObject")));
        }
        if change.kind == self.subject.kind && change.name == self.subject.name {
            return true;
        }
        if self.subject.kind != Followed::Service {
            return false;
        }
        let versions = [seen.before.as_deref(), seen.after.as_deref()];
        let belongs =
            versions.into_iter().flatten().any(|object| self.of_service(world, change.kind, &change.name, object));
        if belongs {
            self.known.insert((change.kind, change.name.as_str().into()));
        }
        belongs
    }

    /// Whether an object is of the Service that is asked for.
    fn of_service(&self, world: &World, kind: Followed, name: &str, object: &Value) -> bool {
        match kind {
            Followed::EndpointSlice => of_slice(object) == self.subject.name,
            Followed::Endpoints => name == self.subject.name,
            Followed::Pod => self.service(world).is_some_and(|service| selects(&service, object)),
            _ => false,
        }
    }

    /// Whether an Event is about the subject or one of its own.
    fn concerned(&self, world: &World, about: &Value) -> bool {
        let kind = Followed::ALL.into_iter().find(|kind| kind.kind().kind == about.text("kind"));
        let (Some(kind), name) = (kind, about.text("name")) else { return false };
        if kind == self.subject.kind && name == self.subject.name {
            return true;
        }
        if self.subject.kind != Followed::Service {
            return false;
        }
        let id = Id { kind, namespace: self.subject.namespace.as_str().into(), name: name.into() };
        self.known.contains(&(kind, name.into()))
            || world.get(&id).is_some_and(|(_, object)| self.of_service(world, kind, name, &object))
    }

    fn service(&self, world: &World) -> Option<std::sync::Arc<Value>> {
        let Subject { kind, namespace, name } = self.subject;
        world
            .get(&Id { kind: *kind, namespace: namespace.as_str().into(), name: name.as_str().into() })
            .map(|(_, it)| it)
    }
}

/// The Service an EndpointSlice is of.
pub(crate) fn of_slice(slice: &Value) -> &str {
    slice.at("metadata").at("labels").text(SERVICE_NAME)
}

/// Whether a Service selects a Pod.
pub(crate) fn selects(service: &Value, pod: &Value) -> bool {
    let selector = service.at("spec").map("selector").filter(|selector| !selector.is_empty());
    let none = Map::new();
    let labels = pod.at("metadata").map("labels").unwrap_or(&none);
    selector.is_some_and(|selector| selector.iter().all(|(key, value)| labels.get(key) == Some(value)))
}
