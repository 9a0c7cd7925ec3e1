//! The search path of a Pod's resolver, walked by the server: one query instead of one for each entry of the path.
//!
//! A resolver with `ndots:5` asks for `www.example.com.default.svc.cluster.local` first. Who knows that the client's Pod is in
//! namespace `default` sees that this is `www.example.com` with the first entry of the path, tries the other entries at
//! once and answers with an alias to the one that exists.

use crate::answer::{Alias, Answer, Records};
use crate::name::Name;
use crate::question::Question;
use crate::zone::Zone;

/// What walking a search path came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Searched<'z> {
    /// The answer, with the alias that leads to it if it is not the first name's.
    Answer(Answer<'z>),
    /// None of the zone's names so far on the path exists. These are left to be asked elsewhere, in this order: the first
    /// that is answered without an error is the answer, below an alias from the question. If none is, [`Zone::answer`]
    /// has it.
    Elsewhere(Vec<Name>),
    /// The question is not the first on the path: it is answered as it stands.
    NotFirst,
}

impl Zone {
    /// Answers a question that may be the first on the search path of a Pod in a namespace. `rest` is what stands on the
    /// path after the cluster's entries: what the Pod's Node has. See [`Zone::namespace_of`] for the namespace.
    pub fn search(&self, question: &Question, namespace: &str, rest: &[Name]) -> Searched<'_> {
        let Some((base, zone)) = self.base(question, namespace) else { return Searched::NotFirst };
        let first = self.answer(question);
        if !matches!(first, Answer::NxDomain(_)) {
            return Searched::Answer(first);
        }
        let svc = Name::from_labels([&b"svc"[..]].into_iter().chain(zone.labels()));
        let root = Name::root();
        let path = svc.iter().chain([zone]).chain(rest).chain([&root]);
        let names: Vec<Name> = path.filter_map(|entry| base.join(entry).ok()).collect();
        for (place, name) in names.iter().enumerate() {
            match self.answer(&Question::new(name, question.rtype)) {
                Answer::NxDomain(_) => {}
                Answer::NotOurs => return Searched::Elsewhere(names[place..].to_vec()),
                answer => return Searched::Answer(answer.below(name)),
            }
        }
        Searched::Elsewhere(Vec::new())
    }

    /// What was to be found, and the zone of the path: `www.example.com` for `www.example.com.default.svc.cluster.local`.
    fn base(&self, question: &Question, namespace: &str) -> Option<(Name, &Name)> {
        let (apex, before) = self.apex_of(question).filter(|(apex, before)| !apex.reverse && *before > 2)?;
        let is_first = question.label(before - 1) == b"svc"
            && question.label(before - 2).eq_ignore_ascii_case(namespace.as_bytes());
        let base = Name::from_labels((0..before - 2).map(|number| question.label(number))).ok();
        base.filter(|_| is_first).map(|base| (base, &apex.name))
    }
}

impl<'z> Answer<'z> {
    /// The same answer, reached by an alias to a name.
    fn below(self, name: &Name) -> Answer<'z> {
        let with = |mut aliases: Vec<Name>| {
            aliases.insert(0, name.clone());
            aliases
        };
        match self {
            Answer::Records(records) => Answer::Records(Records { aliases: with(records.aliases), ..records }),
            Answer::Alias(alias) => Answer::Alias(Alias { aliases: with(alias.aliases), ..alias }),
            answer => answer,
        }
    }
}

#[cfg(test)]
mod tests;
