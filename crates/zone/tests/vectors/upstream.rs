//! The scripted resolver the vectors were recorded with.

use std::collections::HashMap;

use fairlead_zone::message::{Rcode, Record};
use fairlead_zone::{Name, rtype};
use serde_json::Value;

use crate::text;

/// The data of records by type.
type Node = HashMap<u16, Vec<Box<[u8]>>>;

pub(crate) struct Upstream {
    records: HashMap<Name, Node>,
    rcodes: HashMap<Name, Rcode>,
    soa: Record,
}

#[derive(Default)]
pub(crate) struct Reply {
    pub(crate) rcode: Rcode,
    pub(crate) answer: Vec<Record>,
    pub(crate) authority: Vec<Record>,
}

impl Upstream {
    pub(crate) fn new(data: &Value) -> Upstream {
        let mut records: HashMap<Name, Node> = HashMap::new();
        for (name, types) in data["records"].as_object().unwrap() {
            for (rtype, list) in types.as_object().unwrap() {
                let list = list.as_array().unwrap().iter().map(|text| text::to_rdata(rtype, text.as_str().unwrap()));
                records.entry(name.parse().unwrap()).or_default().insert(text::to_type(rtype), list.collect());
            }
        }
        let rcodes = data["rcodes"].as_object().into_iter().flatten();
        let rcodes = rcodes.map(|(name, rcode)| (name.parse().unwrap(), text::to_rcode(rcode.as_str().unwrap())));
        let soa = text::to_rdata("SOA", data["soa"]["rdata"].as_str().unwrap());
        let owner = data["soa"]["name"].as_str().unwrap().parse().unwrap();
        Upstream { records, rcodes: rcodes.collect(), soa: Record::new(owner, rtype::SOA, 60, &soa) }
    }

    pub(crate) fn ask(&self, name: &Name, rtype: u16) -> Reply {
        if let Some(rcode) = self.rcodes.get(name) {
            return Reply { rcode: *rcode, ..Reply::default() };
        }
        let mut reply = Reply::default();
        let mut name = name.clone();
        let mut node = self.records.get(&name);
        if node.is_none() && (name.is_root() || !self.records.keys().any(|other| other.is_under(&name))) {
            reply.rcode = Rcode::NX_DOMAIN;
        }
        while let Some(target) = node.filter(|_| rtype != rtype::CNAME).and_then(|node| node.get(&rtype::CNAME)) {
            reply.answer.push(Record::new(name, rtype::CNAME, 300, &target[0]));
            name = Name::from_wire(&target[0]).unwrap();
            node = self.records.get(&name);
            if node.is_none() {
                reply.rcode = Rcode::NX_DOMAIN;
            }
        }
        let list = node.and_then(|node| node.get(&rtype)).into_iter().flatten();
        reply.answer.extend(list.map(|rdata| Record::new(name.clone(), rtype, 300, rdata)));
        if reply.rcode != Rcode::NO_ERROR || !reply.answer.iter().any(|record| record.rtype == rtype) {
            reply.authority.push(self.soa.clone());
        }
        reply
    }
}
