//! `rewrite`: questions asked as others.

use super::Findings;
use super::tree::{Line, Word};
use crate::settings::{AnswerRule, Matcher, Pattern, Rewrite, Rule};
use crate::words;

const PLUGIN: &str = "rewrite";

/// `rewrite [continue|stop] FIELD ...`, or the same with the rule in braces, one part a line.
pub(super) fn read(line: &Line, found: &mut Findings) -> Option<Rewrite> {
    let body = line.body.iter().flatten().flat_map(|line| &line.words);
    let words: Vec<&Word> = line.arguments().iter().chain(body).collect();
    let (proceed, words) = match words.split_first() {
        Some((first, rest)) if first.text == "continue" => (true, rest),
        Some((first, rest)) if first.text == "stop" => (false, rest),
        _ => (false, words.as_slice()),
    };
    let Some((field, arguments)) = words.split_first() else {
        found.arguments(PLUGIN, line);
        return None;
    };
    let rule = match field.text.as_str() {
        "name" => name(field, arguments, found),
        "type" => kind(field, arguments, found),
        "ttl" => ttl(field, arguments, found),
        "class" | "edns0" | "cname" | "rcode" => {
            found.unsupported(PLUGIN, field);
            None
        }
        _ => {
            found.add(PLUGIN, field, format_args!("unknown option {:?}", field.text));
            None
        }
    };
    Some(Rewrite { proceed, rule: rule? })
}

fn too_few(field: &Word, found: &mut Findings) {
    found.add(PLUGIN, field, format_args!("wrong number of arguments of {:?}", field.text));
}

/// `name [exact|prefix|suffix|substring|regex] FROM TO [answer ...]`.
fn name(field: &Word, arguments: &[&Word], found: &mut Findings) -> Option<Rule> {
    let (how, from, to, rest) = match arguments {
        [from, to] => (None, from, to, &[][..]),
        [how, from, to, rest @ ..] => (Some(*how), from, to, rest),
        _ => {
            too_few(field, found);
            return None;
        }
    };
    let from = matcher(how, from, found)?;
    let to = match from {
        Matcher::Prefix(_) | Matcher::Substring(_) => to.text.to_lowercase(),
        _ => full(&to.text),
    };
    // Who asks for one name is answered with that name.
    let mut answers = if matches!(from, Matcher::Exact(_)) { vec![AnswerRule::Auto] } else { Vec::new() };
    answers.extend(answer_rules(field, rest, found)?);
    Some(Rule::Name { from, to, answers })
}

/// `answer (auto | (name|value FROM TO))`, again and again; `answer` may be missing but for the first.
fn answer_rules(field: &Word, words: &[&Word], found: &mut Findings) -> Option<Vec<AnswerRule>> {
    let (mut rules, mut rest, mut begun) = (Vec::new(), words, false);
    while let Some((first, mut after)) = rest.split_first() {
        let mut first = first;
        if first.text == "answer" {
            begun = true;
            let Some((next, more)) = after.split_first() else {
                too_few(field, found);
                return None;
            };
            (first, after) = (next, more);
        }
        rest = match (first.text.as_str(), after) {
            (_, _) if !begun => {
                found.add(PLUGIN, first, format_args!("unknown option {:?}", first.text));
                return None;
            }
            ("auto", _) => {
                rules.push(AnswerRule::Auto);
                after
            }
            // `answer name auto` is in the documentation of CoreDNS, too.
            ("name" | "value", [auto, more @ ..]) if auto.text == "auto" => {
                rules.push(AnswerRule::Auto);
                more
            }
            (what @ ("name" | "value"), [from, to, more @ ..]) => {
                let (pattern, to) = (pattern(from, found)?, full(&to.text));
                let rule = if what == "name" { AnswerRule::Name } else { AnswerRule::Value };
                rules.push(rule(pattern, to));
                more
            }
            _ => {
                found.add(PLUGIN, first, format_args!("{:?} is no rule for answers", first.text));
                return None;
            }
        };
    }
    Some(rules)
}

/// `type FROM TO`.
fn kind(field: &Word, arguments: &[&Word], found: &mut Findings) -> Option<Rule> {
    let [from, to] = arguments else {
        too_few(field, found);
        return None;
    };
    let mut number = |word: &Word| {
        let number = words::type_number(&word.text);
        if number.is_none() {
            found.invalid(PLUGIN, word, "type of records");
        }
        number
    };
    Some(Rule::Type { from: number(from)?, to: number(to)? })
}

/// `ttl [exact|prefix|suffix|substring|regex] NAME SECONDS|MIN-MAX`.
fn ttl(field: &Word, arguments: &[&Word], found: &mut Findings) -> Option<Rule> {
    let (how, of, seconds) = match arguments {
        [of, seconds] => (None, of, seconds),
        [how, of, seconds] => (Some(*how), of, seconds),
        _ => {
            too_few(field, found);
            return None;
        }
    };
    let of = matcher(how, of, found)?;
    let bound = |text: &str, open: u32| if text.is_empty() { Some(open) } else { text.parse().ok() };
    let range = match seconds.text.split_once('-') {
        Some((min, max)) => bound(min, 0).zip(bound(max, u32::MAX)),
        None => seconds.text.parse().ok().map(|ttl| (ttl, ttl)),
    };
    match range {
        Some((min, max)) if min <= max => Some(Rule::Ttl { of, min, max }),
        _ => {
            found.invalid(PLUGIN, seconds, "number of seconds");
            None
        }
    }
}

fn matcher(how: Option<&Word>, from: &Word, found: &mut Findings) -> Option<Matcher> {
    Some(match how.map_or("exact", |how| how.text.as_str()) {
        "exact" => Matcher::Exact(full(&from.text)),
        "prefix" => Matcher::Prefix(from.text.to_lowercase()),
        "suffix" => Matcher::Suffix(full(&from.text)),
        "substring" => Matcher::Substring(from.text.to_lowercase()),
        "regex" => Matcher::Regex(pattern(from, found)?),
        _ => {
            found.invalid(PLUGIN, how?, "way to match: exact, prefix, suffix, substring or regex");
            return None;
        }
    })
}

fn pattern(word: &Word, found: &mut Findings) -> Option<Pattern> {
    Pattern::new(&word.text).map_err(|why| found.add(PLUGIN, word, format_args!("{:?}: {why}", word.text))).ok()
}

/// In lower case, with a dot at the end.
fn full(text: &str) -> String {
    let text = text.to_lowercase();
    if text.ends_with('.') { text } else { text + "." }
}
