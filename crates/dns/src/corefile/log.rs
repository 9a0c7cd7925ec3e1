//! `log` and `errors`: what is told of questions and of what goes wrong.

use std::time::Duration;

use fairlead_zone::Name;

use super::Findings;
use super::tree::Line;
use super::value::{duration, name};
use crate::settings::{Class, Consolidate, Errors, Log, Pattern};

/// The usual format.
pub(crate) const COMMON: &str = "{remote}:{port} - {>id} \"{type} {class} {name} {proto} {size} {>do} {>bufsize}\" {rcode} {>rflags} {rsize} {duration}";
/// With the operation.
const COMBINED: &str = "{remote}:{port} - {>id} \"{type} {class} {name} {proto} {size} {>do} {>bufsize}\" {rcode} {>rflags} {rsize} {duration} {>opcode}";

/// `log [NAMES...] [FORMAT] { class CLASSES... }`.
pub(super) fn read(line: &Line, found: &mut Findings) -> Option<Log> {
    let (words, format) = match line.arguments().split_last() {
        Some((last, names)) if last.text.contains('{') => (names, last.text.as_str()),
        _ => (line.arguments(), "{common}"),
    };
    let format = format.replace("{common}", COMMON).replace("{combined}", COMBINED);
    let mut names: Vec<Name> = words.iter().filter_map(|word| name("log", word, found)).collect();
    if names.is_empty() {
        names.push(Name::root());
    }
    let mut classes = Vec::new();
    for option in line.body.iter().flatten() {
        if option.name().text != "class" {
            found.unknown("log", option);
            continue;
        }
        if option.arguments().is_empty() {
            found.arguments("log", option);
        }
        for word in option.arguments() {
            match class(&word.text) {
                Some(class) => classes.push(class),
                None => found.invalid("log", word, "class of replies"),
            }
        }
    }
    if classes.is_empty() {
        classes.push(Class::All);
    }
    Some(Log { names, format, classes })
}

fn class(text: &str) -> Option<Class> {
    Some(match text {
        "all" => Class::All,
        "success" => Class::Success,
        "denial" => Class::Denial,
        "error" => Class::Error,
        _ => return None,
    })
}

/// `errors { consolidate DURATION REGEXP [LEVEL] [show_first] }`.
pub(super) fn errors(line: &Line, found: &mut Findings) -> Errors {
    if !line.arguments().is_empty() {
        found.arguments("errors", line);
    }
    let mut errors = Errors::default();
    for option in line.body.iter().flatten() {
        match option.name().text.as_str() {
            // There are no stacks to show.
            "stacktrace" => drop(found.alone("errors", option)),
            "consolidate" => errors.consolidate.extend(consolidate(option, found)),
            _ => found.unknown("errors", option),
        }
    }
    errors
}

fn consolidate(option: &Line, found: &mut Findings) -> Option<Consolidate> {
    let [period, pattern, rest @ ..] = option.arguments() else {
        found.arguments("errors", option);
        return None;
    };
    let (mut level, mut show_first) = ("error", false);
    for word in rest {
        match word.text.as_str() {
            "error" | "warning" | "info" | "debug" => level = &word.text,
            "show_first" => show_first = true,
            _ => found.invalid("errors", word, "level"),
        }
    }
    let period = duration("errors", period, found)?.max(Duration::from_millis(100));
    match Pattern::new(&pattern.text) {
        Ok(pattern) => Some(Consolidate { period, pattern, level: level.to_owned(), show_first }),
        Err(why) => {
            found.add("errors", option.name(), format_args!("{:?}: {why}", pattern.text));
            None
        }
    }
}
