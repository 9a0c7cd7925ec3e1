//! `autopath`: the search path of the client's resolver, walked here.

use std::sync::Arc;

use fairlead_zone::message::{Rcode, Record};
use fairlead_zone::{Name, Question, Searched};

use super::Chain;
use crate::ask::{Ask, Reply};
use crate::router::Router;
use crate::settings::Search;
use crate::words;

impl Chain {
    /// Answers a question; one that is the first of a search path with the first name of the path that exists.
    pub(super) async fn search(self: &Arc<Self>, router: &Router, ask: &Ask) -> Reply {
        let names = self.further(ask);
        if names.is_empty() {
            return self.find(router, ask).await;
        }
        let first = self.find(router, ask).await;
        if first.head.rcode != Rcode::NX_DOMAIN {
            return first;
        }
        for name in names {
            let mut reply = router.find_through(self, &ask.with_name(name.clone())).await;
            if reply.head.rcode == Rcode::NO_ERROR && !reply.answer.is_empty() {
                let ttl = reply.answer.iter().map(|record| record.ttl).min().unwrap_or_default();
                reply.answer.insert(0, Record::new(ask.name.clone(), words::CNAME, ttl, name.wire()));
                reply.plugin = "autopath";
                router.metrics().walked(&self.server);
                return reply;
            }
        }
        first
    }

    /// The names of the path after the first, if the question is the first.
    fn further(&self, ask: &Ask) -> Vec<Name> {
        let Some(autopath) = &self.plugins.autopath else { return Vec::new() };
        let covered = autopath.zones.iter().any(|zone| ask.name.is_under(zone));
        if !covered || !matches!(ask.rtype, words::A | words::AAAA) {
            return Vec::new();
        }
        match (&autopath.search, &self.names) {
            (Search::File(_), _) => self.of_file(&ask.name),
            (Search::Kubernetes, Some(names)) if names.synced() => {
                let Some(namespace) = names.namespace(ask.client) else { return Vec::new() };
                let question = Question::new(&ask.name, ask.rtype);
                match names.zone().search(&question, &namespace, &self.search) {
                    Searched::Elsewhere(names) => names,
                    Searched::Answer(_) | Searched::NotFirst => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    fn of_file(&self, name: &Name) -> Vec<Name> {
        let Some((first, rest)) = self.search.split_first() else { return Vec::new() };
        let Some(before) = name.prefix_before(first).filter(|before| !before.is_empty()) else { return Vec::new() };
        let Ok(base) = Name::from_wire(&[before, &[0]].concat()) else { return Vec::new() };
        let root = Name::root();
        rest.iter().chain([&root]).filter_map(|entry| base.join(entry).ok()).collect()
    }
}
