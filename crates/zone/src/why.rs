//! Why a name has no records: the first thing on the way to them that is not there. For people, not for replies.

use std::fmt;
use std::net::IpAddr;

use fairlead_api::source::Key;

use crate::answer::{Answer, reverse_address};
use crate::name::Name;
use crate::options::PodRecords;
use crate::question::Question;
use crate::rtype;
use crate::zone::{Apex, Entry, Form, Zone, service_wire};

/// Why a question has no records for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// No zone that is served holds the name.
    NotOurs,
    /// Zones are not handed out whole.
    NoTransfer,
    /// There is no such namespace, or it is not served.
    NoNamespace(String),
    /// There is no such Service, or it is not served.
    NoService(Key),
    /// A headless Service has only its endpoints' addresses, and none is ready.
    NoReadyEndpoint(Key),
    /// A Service without a ready endpoint is hidden.
    EmptyService(Key),
    /// What an ExternalName Service stands for is no name.
    NotAName(Key),
    /// No ready endpoint of the Service has this name.
    NoEndpoint(Key, String),
    /// The Service has no such port.
    NoPort(Key, String),
    /// What stands before the Service's name is none of the forms that are served.
    NoForm(Key),
    /// Names of Pods are not served.
    NoPodNames,
    /// A Pod's name is its address with dashes, and this is none.
    NotAnAddress(String),
    /// No Pod of the namespace has the address.
    NoPod(IpAddr),
    /// Nothing in the cluster has the address.
    NobodyHas(IpAddr),
    /// The name has none of the forms names of the cluster have.
    NotOfTheCluster(Name),
    /// The name exists and has no records of this type.
    NoRecords(Name),
}

impl Zone {
    /// Why a question has no records; none if it has, or if an alias leads outside.
    pub fn why(&self, question: &Question) -> Option<Why> {
        match self.answer(question) {
            Answer::Records(_) | Answer::Alias(_) => None,
            Answer::NotOurs => Some(Why::NotOurs),
            Answer::Refused => Some(Why::NoTransfer),
            Answer::NoData(_) => Some(Why::NoRecords(question.name())),
            Answer::NxDomain(_) => {
                let (apex, before) = self.apex_of(question)?;
                Some(self.why_missing(question, apex, before))
            }
        }
    }

    fn why_missing(&self, question: &Question, apex: &Apex, before: usize) -> Why {
        if let Some(address) = reverse_address(question).filter(|_| question.rtype == rtype::PTR) {
            return Why::NobodyHas(address);
        }
        let label = |number: usize| text(question.label(number));
        match before.checked_sub(1).map(|last| question.label(last)) {
            Some(kind @ (b"svc" | b"pod")) if before > 1 && !apex.reverse => {
                let namespace = label(before - 2);
                if !self.namespaces.contains(namespace.as_bytes()) {
                    return Why::NoNamespace(namespace);
                }
                match before.checked_sub(3).filter(|_| kind == b"svc") {
                    Some(labels) => self.why_no_service(question, Key::new(namespace, label(labels)), labels),
                    None => self.why_no_pod(question, before - 1),
                }
            }
            _ => Why::NotOfTheCluster(question.name()),
        }
    }

    fn why_no_pod(&self, question: &Question, end: usize) -> Why {
        if self.options.pods == PodRecords::Disabled {
            return Why::NoPodNames;
        }
        // Too many labels before the address come to the same as a label that is none.
        let name = text(question.label(end.saturating_sub(2)));
        match crate::answer::undashed(name.as_bytes()) {
            Some(address) if end < 5 => Why::NoPod(address),
            _ => Why::NotAnAddress(name),
        }
    }

    /// `labels` is the number of labels before the Service's name.
    fn why_no_service(&self, question: &Question, key: Key, labels: usize) -> Why {
        let entry = service_wire(&key.name, &key.namespace).and_then(|wire| self.services.get(&wire));
        let Some(entry) = entry.filter(|entry| entry.form != Form::Unknown) else { return Why::NoService(key) };
        let label = |number: usize| text(question.label(number));
        match (&entry.form, labels) {
            (Form::ClusterIp { .. }, _) if self.hides(entry) => Why::EmptyService(key),
            (Form::ExternalName(_), 0) => Why::NotAName(key),
            (_, 0) => Why::NoReadyEndpoint(key),
            (_, 1) => Why::NoEndpoint(key, label(0)),
            (_, 2) => Why::NoPort(key, format!("{}.{}", label(0), label(1))),
            _ => Why::NoForm(key),
        }
    }

    fn hides(&self, entry: &Entry) -> bool {
        self.options.ignore_empty_service && entry.has_no_endpoints()
    }
}

fn text(label: &[u8]) -> String {
    String::from_utf8_lossy(label).into_owned()
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotOurs => f.write_str("no zone that is served holds the name"),
            Why::NoTransfer => f.write_str("zones are not handed out whole"),
            Why::NoNamespace(name) => write!(f, "there is no namespace {name}, or it is not served"),
            Why::NoService(key) => write!(f, "there is no Service {key}, or it is not served"),
            Why::NoReadyEndpoint(key) => write!(f, "headless Service {key} has no ready endpoint"),
            Why::EmptyService(key) => write!(f, "Service {key} has no ready endpoint, and such Services are hidden"),
            Why::NotAName(key) => write!(f, "Service {key} stands for what is no name"),
            Why::NoEndpoint(key, host) => write!(f, "Service {key} has no ready endpoint of name {host}"),
            Why::NoPort(key, port) => write!(f, "Service {key} has no port {port}"),
            Why::NoForm(key) => write!(f, "what stands before Service {key} is no form of name"),
            Why::NoPodNames => f.write_str("names of Pods are not served"),
            Why::NotAnAddress(label) => write!(f, "{label} is no address with dashes"),
            Why::NoPod(address) => write!(f, "no Pod of the namespace has the address {address}"),
            Why::NobodyHas(address) => write!(f, "no Service and no ready endpoint has the address {address}"),
            Why::NotOfTheCluster(name) => write!(f, "{name} is no form of name that the cluster has"),
            Why::NoRecords(name) => write!(f, "{name} exists and has no records of this type"),
        }
    }
}

#[cfg(test)]
mod tests;
