//! The plainest server around a zone.

use std::sync::Arc;

use fairlead_api::selector::LabelSelector;
use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Namespace, Pod, Service, View};
use fairlead_zone::message::{self, Builder, Head, MAX_MESSAGE, Outcome, Query, Rcode, Reading, Record};
use fairlead_zone::{Answer, Change, Name, Options, PodRecords, Question, Zone, reverse_zones};
use serde_json::Value;

use crate::upstream::{Reply, Upstream};

pub(crate) struct Server<'u> {
    zone: Zone,
    upstream: Option<&'u Upstream>,
    /// Zones whose missing names are looked for elsewhere.
    fallthrough: Vec<Name>,
    max_ttl: u32,
}

impl<'u> Server<'u> {
    pub(crate) fn new(state: &Value, profile: &Value, upstream: &'u Upstream) -> Server<'u> {
        let mut zone = Zone::new(options(profile));
        zone.apply(state["items"].as_array().unwrap().iter().map(change));
        let fallthrough = profile["fallthrough"].as_array().map_or_else(Vec::new, |zones| match zones.as_slice() {
            [] => vec![Name::root()],
            zones => zones.iter().map(|zone| zone.as_str().unwrap().parse().unwrap()).collect(),
        });
        let upstream = profile["upstream"].as_bool().unwrap().then_some(upstream);
        let max_ttl = profile["cache"].as_u64().filter(|cache| *cache > 0).unwrap_or(u64::from(u32::MAX));
        Server { zone, upstream, fallthrough, max_ttl: u32::try_from(max_ttl).unwrap() }
    }

    /// Answers a message, or does not.
    pub(crate) fn answer(&self, bytes: &[u8], tcp: bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let query = match message::read(bytes) {
            Reading::Ignored => return None,
            Reading::Rejected(rejection) => {
                rejection.write(&mut out);
                return Some(out);
            }
            Reading::Query(query) => query,
        };
        let limit = if tcp { MAX_MESSAGE } else { query.limit() };
        match message::reply(&self.zone, &query, u32::from(query.id()), limit, &mut out) {
            Outcome::NameError(_) if self.falls_through(&query) => self.forward(&query, limit, &mut out),
            Outcome::Answered | Outcome::NameError(_) => {}
            Outcome::NotOurs => self.forward(&query, limit, &mut out),
            Outcome::Alias(alias) => {
                let mut answer = alias.records(&query.name());
                answer.extend(self.lookup(alias.target(), query.question.rtype));
                let head = Head { authoritative: true, ..Head::default() };
                self.write(&query, head, &answer, &[], limit, &mut out);
            }
        }
        Some(out)
    }

    fn falls_through(&self, query: &Query<'_>) -> bool {
        self.fallthrough.iter().any(|zone| query.name().is_under(zone))
    }

    /// What an alias' target has, here or elsewhere.
    fn lookup(&self, name: &Name, rtype: u16) -> Vec<Record> {
        match self.zone.answer(&Question::new(name, rtype)) {
            Answer::Records(records) => records.sections(name, rtype).0,
            Answer::NotOurs => self.upstream.map_or_else(Vec::new, |upstream| upstream.ask(name, rtype).answer),
            _ => Vec::new(),
        }
    }

    fn forward(&self, query: &Query<'_>, limit: usize, out: &mut Vec<u8>) {
        let Some(upstream) = self.upstream else {
            let head = Head { rcode: Rcode::SERV_FAIL, ..Head::default() };
            return self.write(query, head, &[], &[], limit, out);
        };
        let Reply { rcode, answer, authority } = upstream.ask(&query.name(), query.question.rtype);
        let head = Head { rcode, recursion_available: true, ..Head::default() };
        self.write(query, head, &answer, &authority, limit, out);
    }

    fn write(
        &self,
        query: &Query<'_>,
        head: Head,
        answer: &[Record],
        authority: &[Record],
        limit: usize,
        out: &mut Vec<u8>,
    ) {
        let capped = |record: &Record| Record { ttl: record.ttl.min(self.max_ttl), ..record.clone() };
        let mut builder = Builder::new(query, head, limit, out);
        answer.iter().for_each(|record| builder.answer(&capped(record)));
        authority.iter().for_each(|record| builder.authority(&capped(record)));
        builder.finish();
    }
}

fn options(profile: &Value) -> Options {
    let texts = |field: &str| -> Vec<String> {
        let list = profile[field].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let selector = |field: &str| profile[field].as_str().map(|text| LabelSelector::parse(text).unwrap());
    let switch = |field: &str| profile[field].as_bool().unwrap();
    let mut zones = vec![profile["zone"].as_str().unwrap().parse().unwrap()];
    for reverse in texts("reverse") {
        match reverse.parse() {
            Ok(range) => zones.extend(reverse_zones(&range)),
            Err(_) => zones.push(reverse.parse().unwrap()),
        }
    }
    Options {
        zones,
        pods: match profile["pods"].as_str().unwrap() {
            "disabled" => PodRecords::Disabled,
            "insecure" => PodRecords::Insecure,
            "verified" => PodRecords::Verified,
            other => panic!("{other}"),
        },
        ttl: u32::try_from(profile["ttl"].as_u64().unwrap()).unwrap(),
        max_ttl: profile["cache"].as_u64().filter(|cache| *cache > 0).map(|cache| u32::try_from(cache).unwrap()),
        namespaces: texts("namespaces"),
        namespace_labels: selector("namespace_labels"),
        labels: selector("labels"),
        endpoint_pod_names: switch("endpoint_pod_names"),
        noendpoints: switch("noendpoints"),
        ignore_empty_service: switch("ignore_empty_service"),
        zonal: switch("zonal"),
        local_addresses: texts("local_ips").iter().map(|ip| ip.parse().unwrap()).collect(),
    }
}

fn change(object: &Value) -> Change {
    fn view<T: View>(object: &Value) -> (Key, Option<Arc<T>>) {
        let view: T = serde_json::from_value(object.clone()).unwrap();
        let meta = view.meta();
        (Key::new(meta.namespace.as_str(), meta.name.as_str()), Some(Arc::new(view)))
    }
    match object["kind"].as_str().unwrap() {
        "Namespace" => view::<Namespace>(object).into_change(Change::Namespace),
        "Service" => view::<Service>(object).into_change(Change::Service),
        "EndpointSlice" => view::<EndpointSlice>(object).into_change(Change::EndpointSlice),
        "Pod" => view::<Pod>(object).into_change(Change::Pod),
        other => panic!("{other}"),
    }
}

trait IntoChange<T> {
    fn into_change(self, make: fn(Key, Option<Arc<T>>) -> Change) -> Change;
}

impl<T> IntoChange<T> for (Key, Option<Arc<T>>) {
    fn into_change(self, make: fn(Key, Option<Arc<T>>) -> Change) -> Change {
        make(self.0, self.1)
    }
}
