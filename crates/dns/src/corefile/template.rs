//! `template`: records made from the question.

use fairlead_zone::Name;

use super::Findings;
use super::tree::Line;
use super::value::{fallthrough, only, zones};
use crate::settings::{Fallthrough, Pattern, Template};
use crate::template::Text;
use crate::words;

const PLUGIN: &str = "template";

/// `template CLASS TYPE [ZONE...] { ... }`.
pub(super) fn read(line: &Line, of_block: &[Name], found: &mut Findings) -> Option<Template> {
    let [class, rtype, names @ ..] = line.arguments() else {
        found.arguments(PLUGIN, line);
        return None;
    };
    let number = |number: Option<u16>, word, want, found: &mut Findings| {
        if number.is_none() {
            found.invalid(PLUGIN, word, want);
        }
        number.filter(|number| *number != words::ANY)
    };
    let mut template = Template {
        zones: zones(PLUGIN, names, of_block, found),
        class: number(words::class_number(&class.text), class, "class", found),
        rtype: number(words::type_number(&rtype.text), rtype, "type of records", found),
        matches: Vec::new(),
        answer: Vec::new(),
        additional: Vec::new(),
        authority: Vec::new(),
        rcode: words::NOERROR,
        fallthrough: Fallthrough::Never,
    };
    for option in line.body.iter().flatten() {
        read_option(option, &mut template, found);
    }
    Some(template)
}

fn read_option(option: &Line, into: &mut Template, found: &mut Findings) {
    match option.name().text.as_str() {
        "match" => {
            if option.arguments().is_empty() {
                found.arguments(PLUGIN, option);
            }
            for word in option.arguments() {
                match Pattern::new(&word.text) {
                    Ok(pattern) => into.matches.push(pattern),
                    Err(why) => found.add(PLUGIN, word, format_args!("{:?}: {why}", word.text)),
                }
            }
        }
        "answer" => into.answer.extend(records(option, found)),
        "additional" => into.additional.extend(records(option, found)),
        "authority" => into.authority.extend(records(option, found)),
        "rcode" => {
            let Some(word) = only(PLUGIN, option, found) else { return };
            match words::code_number(&word.text) {
                Some(code) => into.rcode = code,
                None => found.invalid(PLUGIN, word, "code of a reply"),
            }
        }
        "fallthrough" => into.fallthrough = fallthrough(PLUGIN, option, found),
        // It tells people who look why; without it the answer is the same.
        "ederror" => {}
        "var" | "expr" | "upstream" => found.unsupported(PLUGIN, option.name()),
        _ => found.unknown(PLUGIN, option),
    }
}

fn records(option: &Line, found: &mut Findings) -> Vec<Text> {
    if option.arguments().is_empty() {
        found.arguments(PLUGIN, option);
    }
    let mut texts = Vec::new();
    for word in option.arguments() {
        match Text::parse(&word.text) {
            Ok(text) => texts.push(text),
            Err(why) => found.add(PLUGIN, word, why),
        }
    }
    texts
}
