//! Gathers what changes, and puts it in an order in which nobody is without a server.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fairlead_plan::Family;

use super::model::Op;
use super::port;
use crate::nft::{self, Element};

/// What changes, until it is in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) tables: Vec<nft::Op>,
    deleted: BTreeMap<(Family, &'static str), Vec<Element>>,
    added: BTreeMap<(Family, &'static str), Vec<Element>>,
    pub(crate) made: Vec<Op>,
    pub(crate) gone: Vec<Op>,
    pub(crate) addresses: Vec<(IpAddr, bool)>,
}

impl Batch {
    pub(crate) fn add(&mut self, family: Family, set: &'static str, element: Element) {
        self.added.entry((family, set)).or_default().push(element);
    }

    pub(crate) fn put(&mut self, family: Family, set: &'static str, element: Element, comes: bool) {
        let elements = if comes { &mut self.added } else { &mut self.deleted };
        elements.entry((family, set)).or_default().push(element);
    }

    /// Puts elements in the place of others.
    pub(crate) fn change(&mut self, family: Family, old: &port::Elements, new: &port::Elements) {
        let gone = old.iter().filter(|element| !new.contains(element));
        gone.for_each(|(set, element)| self.put(family, set, element.clone(), false));
        let comes = new.iter().filter(|element| !old.contains(element));
        comes.for_each(|(set, element)| self.put(family, set, element.clone(), true));
    }

    /// The steps. Servers are there before packets get to them and go after; while an address is on the link, the tables say
    /// who may come in.
    pub(crate) fn into_ops(mut self) -> Vec<Op> {
        let deleted = self.deleted.into_iter();
        self.tables.extend(deleted.map(|((family, set), elements)| nft::Op::DeleteElements(family, set, elements)));
        let added = self.added.into_iter();
        self.tables.extend(added.map(|((family, set), elements)| nft::Op::AddElements(family, set, elements)));
        let mut ops = self.made;
        let gone = self.addresses.iter().filter(|(_, comes)| !comes);
        ops.extend(gone.map(|(ip, _)| Op::DeleteAddress(*ip)));
        if !self.tables.is_empty() {
            ops.push(Op::Filter(self.tables));
        }
        let comes = self.addresses.iter().filter(|(_, comes)| *comes);
        ops.extend(comes.map(|(ip, _)| Op::AddAddress(*ip)));
        ops.extend(self.gone);
        ops
    }
}
