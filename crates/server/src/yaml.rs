//! YAML bodies, read as kubectl and the reference server read them: into JSON, with repeated keys reported.

use std::collections::HashSet;

use fairlead_api::golang;
use fairlead_api::value::Value;

/// Maximum number of repeated keys that are named.
const MAX_DUPLICATES: usize = 100;
/// Maximum length in bytes of a repeated key in a message.
const MAX_KEY: usize = 256;

/// A parsed YAML document.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) value: Value,
    /// Repeated keys with their lines, in the words of the Warning header.
    pub(crate) duplicates: Vec<String>,
}

/// What aliases may add to a document, in parts of it: manifests repeat a few lines with them; a small body that stands for
/// a huge one is an attack.
const MAX_REPLAYED: usize = 50_000;

/// Parses the first document of a YAML body; an empty one is null.
pub(crate) fn parse(body: &[u8]) -> Result<Parsed, String> {
    let text = std::str::from_utf8(body).map_err(|_| "invalid leading UTF-8 octet".to_owned())?;
    if text.trim().is_empty() {
        return Ok(Parsed { value: Value::Null, duplicates: Vec::new() });
    }
    match read(text, serde_saphyr::DuplicateKeyPolicy::Error) {
        Ok(value) => Ok(Parsed { value, duplicates: Vec::new() }),
        Err(error) => match read(text, serde_saphyr::DuplicateKeyPolicy::LastWins) {
            Ok(value) => Ok(Parsed { value, duplicates: duplicates(text) }),
            Err(_) => Err(error),
        },
    }
}

fn read(text: &str, duplicate_keys: serde_saphyr::DuplicateKeyPolicy) -> Result<Value, String> {
    let alias_limits = serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED };
    let options = serde_saphyr::options! { duplicate_keys: duplicate_keys, alias_limits: alias_limits };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(0, |at| at.line());
        format!("line {line}: did not find expected node content")
    })
}

/// Names each repeated key of a block mapping with its line. Only reached for bodies that have one.
fn duplicates(text: &str) -> Vec<String> {
    let mut open: Vec<(usize, HashSet<&str>)> = Vec::new();
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if found.len() >= MAX_DUPLICATES {
            break;
        }
        let body = line.trim_start();
        if body.is_empty() || body.starts_with('#') {
            continue;
        }
        let mut indent = line.len() - body.len();
        let mut rest = body;
        while let Some(item) = rest.strip_prefix("- ") {
            open.retain(|(depth, _)| *depth <= indent);
            indent += rest.len() - item.trim_start().len();
            rest = item.trim_start();
            open.retain(|(depth, _)| *depth < indent);
        }
        let Some((key, _)) = rest.split_once(':') else { continue };
        open.retain(|(depth, _)| *depth <= indent);
        if open.last().is_none_or(|(depth, _)| *depth < indent) {
            open.push((indent, HashSet::new()));
        }
        let Some((_, keys)) = open.last_mut() else { continue };
        if !keys.insert(key) {
            let key = golang::shorten(key, MAX_KEY);
            found.push(format!("line {}: key \"{key}\" already set in map", number + 1));
        }
    }
    found
}
