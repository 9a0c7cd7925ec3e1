//! Which records does a template make of a question? A text with places, and what is filled in there.

use fairlead_zone::message::{Head, Rcode, Record};
use regex::Captures;

use crate::ask::{Ask, Reply};
use crate::settings::Template;
use crate::{records, words};

#[cfg(test)]
mod tests;

/// The text of a record, with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Plain(String),
    Place(Place),
}

/// What is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Name,
    Zone,
    Class,
    Type,
    Remote,
    Match(usize),
    Group(String),
    /// A number in another base.
    Number(Box<Place>, u32),
}

/// What is known of a question.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    pub(crate) name: &'a str,
    pub(crate) zone: &'a str,
    pub(crate) class: &'a str,
    pub(crate) rtype: &'a str,
    pub(crate) remote: &'a str,
    pub(crate) groups: Option<&'a Captures<'a>>,
}

impl Text {
    /// Reads `{{ .Name }} 60 IN A 10.0.0.{{ index .Match 1 }}`.
    pub(crate) fn parse(text: &str) -> Result<Text, String> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, behind)) = rest.split_once("{{") {
            let (place, after) = behind.split_once("}}").ok_or("no \"}}\" ends this place")?;
            parts.push(Part::Plain(before.to_owned()));
            parts.push(Part::Place(parse_place(place)?));
            rest = after;
        }
        parts.push(Part::Plain(rest.to_owned()));
        Ok(Text { parts })
    }

    /// With everything filled in; `None` if a number is none.
    pub(crate) fn fill(&self, known: &Known<'_>) -> Option<String> {
        let part = |part: &Part| match part {
            Part::Plain(text) => Some(text.clone()),
            Part::Place(place) => value(place, known),
        };
        self.parts.iter().map(part).collect()
    }
}

fn parse_place(text: &str) -> Result<Place, String> {
    let words: Vec<&str> = text.trim_matches(|c: char| c.is_whitespace() || c == '-').split_whitespace().collect();
    match words.as_slice() {
        [".Name"] | [".Question.Name"] => Ok(Place::Name),
        [".Zone"] => Ok(Place::Zone),
        [".Class"] => Ok(Place::Class),
        [".Type"] => Ok(Place::Type),
        [".Remote"] => Ok(Place::Remote),
        ["index", ".Match", number] => number.parse().map(Place::Match).map_err(|_| unknown(text)),
        ["index", ".Group", name] => Ok(Place::Group(name.trim_matches('"').to_owned())),
        ["parseInt", value, base, bits] => {
            let inner = parse_place(value)?;
            let base = base.parse().ok().filter(|base| (2..=36).contains(base)).ok_or_else(|| unknown(text))?;
            let whole = bits.parse::<u32>().is_ok() && !matches!(inner, Place::Number(..));
            if whole { Ok(Place::Number(Box::new(inner), base)) } else { Err(unknown(text)) }
        }
        [one] => one.strip_prefix(".Group.").map(|name| Place::Group(name.to_owned())).ok_or_else(|| unknown(text)),
        _ => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> String {
    format!("{:?} is not supported in a record", text.trim())
}

fn value(place: &Place, known: &Known<'_>) -> Option<String> {
    let group = |group: Option<regex::Match<'_>>| Some(group.map_or("", |group| group.as_str()).to_owned());
    match place {
        Place::Name => Some(known.name.to_owned()),
        Place::Zone => Some(known.zone.to_owned()),
        Place::Class => Some(known.class.to_owned()),
        Place::Type => Some(known.rtype.to_owned()),
        Place::Remote => Some(known.remote.to_owned()),
        // Without a pattern the whole name has matched.
        Place::Match(0) if known.groups.is_none() => Some(known.name.to_owned()),
        Place::Match(number) => group(known.groups.and_then(|groups| groups.get(*number))),
        Place::Group(name) => group(known.groups.and_then(|groups| groups.name(name))),
        Place::Number(inner, base) => {
            let text = value(inner, known)?;
            u64::from_str_radix(&text, *base).ok().map(|number| number.to_string())
        }
    }
}

/// What a template makes of a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Made {
    /// This is the answer.
    Reply(Reply),
    /// Others may know.
    Pass,
}

/// Asks one template.
pub(crate) fn answer(template: &Template, ask: &Ask) -> Made {
    let zone = template.zones.iter().filter(|zone| ask.name.is_under(zone)).max_by_key(|zone| zone.label_count());
    let Some(zone) = zone else { return Made::Pass };
    if template.class.is_some_and(|class| class != ask.class) || template.rtype.is_some_and(|rtype| rtype != ask.rtype)
    {
        return Made::Pass;
    }
    let name = ask.name.to_lower().to_string();
    let groups = template.matches.iter().find_map(|pattern| pattern.regex().captures(&name));
    if groups.is_none() && !template.matches.is_empty() {
        let through = template.fallthrough.through(&ask.name);
        return if through { Made::Pass } else { failed() };
    }
    let known = Known {
        name: &name,
        zone: &zone.to_string(),
        class: &words::class_name(ask.class),
        rtype: &words::type_name(ask.rtype),
        remote: &ask.client.to_string(),
        groups: groups.as_ref(),
    };
    made(template, &known).map_or_else(failed, Made::Reply)
}

fn failed() -> Made {
    Made::Reply(Reply { plugin: "template", ..Reply::failed(Rcode::SERV_FAIL) })
}

/// The answer; `None` if a record does not come out as one.
fn made(template: &Template, known: &Known<'_>) -> Option<Reply> {
    let records = |texts: &[Text]| -> Option<Vec<Record>> {
        texts.iter().map(|text| text.fill(known).as_deref().and_then(records::parse)).collect()
    };
    let head = Head { rcode: Rcode(template.rcode.into()), authoritative: true, ..Head::default() };
    Some(Reply {
        head,
        answer: records(&template.answer)?,
        authority: records(&template.authority)?,
        additional: records(&template.additional)?,
        plugin: "template",
    })
}
