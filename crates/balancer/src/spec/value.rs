//! How the text of an annotation is read. `None`: it cannot be.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use fairlead_api::ip;
use ipnet::IpNet;

/// The most entries a list may have.
const MAX_ENTRIES: usize = 64;
/// AWS' limits to a tag.
const MAX_TAGS: usize = 50;
const MAX_TAG_KEY: usize = 128;
const MAX_TAG_VALUE: usize = 256;
/// No name, ARN or path is longer.
const MAX_TEXT: usize = 1024;

/// `true` or `false`, and nothing else.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// A decimal number within a range.
pub(super) fn number(text: &str, range: RangeInclusive<u32>) -> Option<u32> {
    // The standard library would take a sign.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && range.contains(number))
}

/// So many seconds.
pub(super) fn seconds(text: &str, range: RangeInclusive<u32>) -> Option<Duration> {
    number(text, range).map(|seconds| Duration::from_secs(seconds.into()))
}

/// One of some words.
pub(super) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning)
}

/// A text without anything that breaks lines, logs or paths of HTTP.
pub(super) fn token(text: &str) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= MAX_TEXT && text.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| text.to_owned())
}

/// Entries between commas; spaces around them and empty ones do not count.
pub(super) fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// At least one entry, and not too many.
pub(super) fn list(text: &str) -> Option<Vec<String>> {
    let list: Option<Vec<_>> = entries(text).take(MAX_ENTRIES + 1).map(token).collect();
    list.filter(|list| (1..=MAX_ENTRIES).contains(&list.len()))
}

/// Ranges of addresses between commas.
pub(super) fn ranges(text: &str) -> Option<Vec<IpNet>> {
    list(text)?.iter().map(|entry| ip::cidr::parse(entry).map(|range| range.trunc())).collect()
}

/// `key=value` between commas. A key alone has an empty value.
pub(super) fn tags(text: &str) -> Option<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    for entry in entries(text).take(MAX_TAGS + 1) {
        let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
        let (key, value) = (key.trim(), value.trim());
        let fits = !key.is_empty() && key.chars().count() <= MAX_TAG_KEY && value.chars().count() <= MAX_TAG_VALUE;
        if !fits || entry.contains(char::is_control) || tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return None;
        }
    }
    Some(tags).filter(|tags| (1..=MAX_TAGS).contains(&tags.len()))
}

/// The name of a bucket, by the rules of S3.
pub(super) fn bucket(text: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let ends = |end: Option<&u8>| end.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    let fits = (3..=63).contains(&bytes.len()) && bytes.iter().all(|byte| allowed(*byte));
    (fits && ends(bytes.first()) && ends(bytes.last()) && !text.contains("..")).then(|| text.to_owned())
}

/// What names of files in a bucket begin with. It may become a path: nothing of it leads elsewhere.
pub(super) fn prefix(text: &str) -> Option<String> {
    let allowed = |char: char| char.is_ascii_alphanumeric() || "!-_.*'()".contains(char);
    let part = |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(allowed);
    // AWS puts this name below the prefix and forbids it inside.
    let fits = text.len() <= 512 && text.split('/').all(part) && !text.contains("AWSLogs");
    fits.then(|| text.to_owned())
}

/// A path of HTTP.
pub(super) fn path(text: &str) -> Option<String> {
    token(text).filter(|path| path.starts_with('/') && !path.contains('#'))
}
