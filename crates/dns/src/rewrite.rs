//! `rewrite`: a question asked as another one, and its answer told as if it had not been.

use fairlead_zone::Name;
use fairlead_zone::message::Record;

use crate::ask::{Ask, Reply};
use crate::settings::{AnswerRule, Matcher, Pattern, Rewrite, Rule};
use crate::words;

#[cfg(test)]
mod tests;

/// What is to be undone in an answer.
#[derive(Debug)]
pub(crate) enum Undo {
    /// One name stands for another, in names and data.
    Swap(Name, Name),
    /// One end of a name stands for another.
    Suffix(String, String),
    /// Names that match become another.
    Name(Pattern, String),
    /// Names in data that match become another.
    Value(Pattern, String),
    /// Times to live are brought into a range.
    Ttl(u32, u32),
}

/// Applies rules to a question. What they say of the answer comes back; `None` if the new name is none.
pub(crate) fn rewrite(rules: &[Rewrite], ask: &mut Ask) -> Option<Vec<Undo>> {
    let mut undo = Vec::new();
    for Rewrite { proceed, rule } in rules {
        if apply(rule, ask, &mut undo)? && !proceed {
            break;
        }
    }
    // The last rule is the first to be undone.
    undo.reverse();
    Some(undo)
}

/// Applies one rule; whether it matched.
fn apply(rule: &Rule, ask: &mut Ask, undo: &mut Vec<Undo>) -> Option<bool> {
    let text = || ask.name.to_lower().to_string();
    match rule {
        Rule::Type { from, to } => {
            let matched = ask.rtype == *from;
            if matched {
                ask.rtype = *to;
            }
            Some(matched)
        }
        Rule::Ttl { of, min, max } => {
            let matched = of.rewrite(&text(), "").is_some();
            if matched {
                undo.push(Undo::Ttl(*min, *max));
            }
            Some(matched)
        }
        Rule::Name { from, to, answers } => {
            let Some(new) = from.rewrite(&text(), to) else { return Some(false) };
            let new: Name = new.parse().ok()?;
            undo.extend(answers.iter().rev().map(|answer| match (answer, from) {
                (AnswerRule::Auto, Matcher::Suffix(from)) => Undo::Suffix(to.clone(), from.clone()),
                (AnswerRule::Auto, _) => Undo::Swap(new.clone(), ask.name.clone()),
                (AnswerRule::Name(pattern, to), _) => Undo::Name(pattern.clone(), to.clone()),
                (AnswerRule::Value(pattern, to), _) => Undo::Value(pattern.clone(), to.clone()),
            }));
            ask.name = new;
            Some(true)
        }
    }
}

/// Changes an answer as the rules that changed its question say.
pub(crate) fn undo(reply: &mut Reply, undos: &[Undo]) {
    for undo in undos {
        for record in reply.records_mut() {
            if let Undo::Ttl(min, max) = undo {
                record.ttl = record.ttl.clamp(*min, *max);
                continue;
            }
            if !matches!(undo, Undo::Value(..))
                && let Some(name) = changed(&record.name, undo)
            {
                record.name = name;
            }
            if !matches!(undo, Undo::Name(..)) {
                change_data(record, undo);
            }
        }
    }
}

fn changed(name: &Name, undo: &Undo) -> Option<Name> {
    let text = || name.to_lower().to_string();
    match undo {
        Undo::Swap(from, to) => (name == from).then(|| to.clone()),
        Undo::Suffix(from, to) => {
            text().strip_suffix(from.as_str()).and_then(|rest| format!("{rest}{to}").parse().ok())
        }
        Undo::Name(pattern, to) | Undo::Value(pattern, to) => {
            pattern.rewrite(&text(), to).and_then(|new| new.parse().ok())
        }
        Undo::Ttl(..) => None,
    }
}

/// Changes the name in the data of a record, for types that have one.
fn change_data(record: &mut Record, undo: &Undo) {
    let skip = match record.rtype {
        words::CNAME | words::NS | words::PTR | 39 => 0,
        words::MX => 2,
        words::SRV => 6,
        _ => return,
    };
    let Some((head, name)) = record.rdata.split_at_checked(skip) else { return };
    let new = Name::from_wire(name).ok().and_then(|name| changed(&name, undo));
    if let Some(new) = new {
        record.rdata = [head, new.wire()].concat().into();
    }
}
