//! What was there at a time: the object, and for a Service its endpoints, which of them got connections, and its Pods.

use std::sync::Arc;

use fairlead_api::Look;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::oldest;
use crate::frame::Frames;
use crate::lines::{Endpoint, Port, endpoints_of};
use crate::record::{Change, Gap, Record};
use crate::replay::{Id, Said, World};
use crate::subject::{of_slice, selects};
use crate::{Error, Followed, Shared, Subject};

#[cfg(test)]
mod tests;

/// What was there.
#[derive(Debug, Clone)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// Whose.
    pub subject: Subject,
    /// Its resourceVersion then; 0 if it was not there.
    pub revision: u64,
    /// The object, as far as it is kept; `None`: it was not there.
    pub object: Option<Arc<Value>>,
    /// The endpoints of a Service.
    pub endpoints: Vec<Place>,
    /// The Pods a Service selected.
    pub pods: Vec<Value>,
    /// The moment lies where changes may be missing.
    pub gap: Option<Gap>,
}

/// An endpoint, and whether it got connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub address: String,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Its conditions.
    pub ready: bool,
    /// Whether it answered, though it may have been about to end.
    pub serving: bool,
    /// Whether it was about to end.
    pub terminating: bool,
    /// Whether proxies sent connections there.
    pub in_rotation: bool,
    /// Why, or why not.
    pub why: &'static str,
    /// The Node it was on.
    pub node: String,
    /// `Pod web-1`.
    pub target: String,
}

/// What was there at a time.
pub(crate) fn moment(shared: &Shared, subject: &Subject, at: Timestamp) -> Result<Moment, Error> {
    let files = shared.files();
    let from = files.first().map(|file| file.begins.max(oldest(shared)));
    let early = || Error::TooEarly { asked: at, from };
    let index = files.iter().rposition(|file| file.begins <= at && Some(at) >= from).ok_or_else(early)?;
    let file = &files[index];
    let bytes = super::bytes(file)?.ok_or_else(early)?;
    let mut world = World::of(Some(&[&subject.namespace]));
    // What could not be written to this file the next one tells.
    let mut gap = match files.get(index + 1) {
        Some(next) if at >= file.ends => super::bytes(next)?.and_then(|bytes| gap_around(&bytes, at)),
        _ => None,
    };
    let ours = |record: &&[u8]| {
        Record::namespace_of_change(record).is_none_or(|namespace| namespace == subject.namespace.as_bytes())
    };
    for record in Frames::new(&bytes).filter(ours).filter_map(Record::decode) {
        if let Record::Gap(hole) = &record
            && is_in(at, hole)
        {
            gap = Some(hole.clone());
        }
        // What was seen late happened before what stands before it.
        let later = |change: &Change| change.at > at;
        if matches!(&record, Record::Change(change) if later(change))
            || matches!(&record, Record::Copies(time, _) if *time > at)
        {
            continue;
        }
        let _: Option<Said> = world.take(record);
    }
    Ok(seen(&world, subject, at, gap))
}

/// The gap in a file that a moment lies in.
fn gap_around(bytes: &[u8], at: Timestamp) -> Option<Gap> {
    Frames::new(bytes).filter_map(Record::gap).find(|gap| is_in(at, gap))
}

fn is_in(at: Timestamp, gap: &Gap) -> bool {
    gap.from <= at && at < gap.to
}

fn seen(world: &World, subject: &Subject, at: Timestamp, gap: Option<Gap>) -> Moment {
    let id =
        Id { kind: subject.kind, namespace: subject.namespace.as_str().into(), name: subject.name.as_str().into() };
    let (revision, object) = world.get(&id).map_or((0, None), |(revision, object)| (revision, Some(object)));
    let (mut endpoints, mut pods) = (Vec::new(), Vec::new());
    if subject.kind == Followed::Service {
        endpoints = places(of_service(world, &subject.name));
        pods = object.as_deref().map(|service| selected(world, service)).unwrap_or_default();
    }
    Moment { at, subject: subject.clone(), revision, object, endpoints, pods, gap }
}

fn of_service(world: &World, name: &str) -> Vec<Endpoint> {
    let slices = world.of_kind(Followed::EndpointSlice);
    let ours = slices.iter().filter(|(_, slice)| of_slice(slice) == name);
    let mut found: Vec<Endpoint> = ours.flat_map(|(_, slice)| endpoints_of(Followed::EndpointSlice, slice)).collect();
    found.sort_by(|one, other| (&one.address, &one.ports).cmp(&(&other.address, &other.ports)));
    found.dedup();
    found
}

/// As proxies choose: those that are ready; if there are none, those that still serve while they end.
fn places(endpoints: Vec<Endpoint>) -> Vec<Place> {
    let any_ready = endpoints.iter().any(|one| one.ready);
    let place = |one: Endpoint| {
        let last_resort = !any_ready && one.serving && one.terminating;
        let why = match (one.ready, one.terminating, one.serving) {
            (true, ..) => "ready",
            (_, true, true) if last_resort => "terminating, but no other was ready",
            (_, true, true) => "terminating",
            (_, true, false) => "terminating, no longer serving",
            (false, false, _) => "not ready",
        };
        Place {
            in_rotation: one.ready || last_resort,
            why,
            address: one.address,
            ports: one.ports,
            ready: one.ready,
            serving: one.serving,
            terminating: one.terminating,
            node: one.node,
            target: one.target,
        }
    };
    endpoints.into_iter().map(place).collect()
}

fn selected(world: &World, service: &Value) -> Vec<Value> {
    let pods = world.of_kind(Followed::Pod);
    let ours = pods.iter().filter(|(_, pod)| selects(service, pod));
    ours.map(|(id, pod)| summary(&id.name, pod)).collect()
}

fn summary(name: &str, pod: &Value) -> Value {
    let status = pod.at("status");
    let ready = status.list("conditions").iter().find(|one| one.text("type") == "Ready");
    json!({
        "name": name,
        "ready": ready.is_some_and(|ready| ready.text("status") == "True"),
        "phase": status.text("phase"),
        "address": status.text("podIP"),
        "node": pod.at("spec").text("nodeName"),
        "terminating": pod.at("metadata").text_opt("deletionTimestamp").is_some(),
        "why": ready.map(|ready| ready.text("reason")).unwrap_or_default(),
    })
}
