//! Lines of log files, `2026-01-02T03:04:05.6Z stdout F text`, and which of them a client wants to see how. Pure.

use jiff::{SignedDuration, Timestamp};

use crate::api::query::Query;

/// A line that is longer is not taken for one.
pub(super) const MAX: usize = 256 << 10;

/// What a client wants of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Wait for more.
    pub(crate) follow: bool,
    /// The last so many lines.
    pub(crate) tail: Option<usize>,
    since: Option<Timestamp>,
    /// Each line with its time.
    timestamps: bool,
    /// At most so many bytes.
    limit: Option<u64>,
    /// `stdout` or `stderr` alone.
    stream: Option<&'static str>,
}

impl Options {
    /// Reads the query of a URL.
    pub(crate) fn parse(query: &Query, now: Timestamp) -> Result<Options, String> {
        let number = |name: &str| match query.get(name).filter(|text| !text.is_empty()) {
            None => Ok(None),
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| format!("{name} is no number: {text:?}")),
        };
        let since = match (number("sinceSeconds")?, query.get("sinceTime").filter(|text| !text.is_empty())) {
            (Some(seconds), _) => {
                let before = i64::try_from(seconds).ok().map(SignedDuration::from_secs);
                before.and_then(|before| now.checked_sub(before).ok())
            }
            (None, Some(text)) => {
                Some(text.parse().map_err(|error| format!("sinceTime is no time: {text:?}: {error}"))?)
            }
            (None, None) => None,
        };
        Ok(Options {
            follow: query.flag("follow"),
            tail: number("tailLines")?.map(|lines| usize::try_from(lines).unwrap_or(usize::MAX)),
            since,
            timestamps: query.flag("timestamps"),
            limit: number("limitBytes")?,
            stream: match query.get("stream") {
                Some("Stdout") => Some("stdout"),
                Some("Stderr") => Some("stderr"),
                _ => None,
            },
        })
    }
}

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    time: &'a str,
    stream: &'a str,
    /// The next line goes on where this one stops.
    partial: bool,
    text: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut words = line.splitn(4, |byte| *byte == b' ');
        let mut word = || std::str::from_utf8(words.next()?).ok();
        let (time, stream, tags) = (word()?, word()?, word()?);
        let partial = tags.split(':').next() == Some("P");
        Some(Line { time, stream, partial, text: words.next().unwrap_or_default() })
    }
}

/// Prints lines as a client wants them.
#[derive(Debug)]
pub(super) struct Printer<'a> {
    options: &'a Options,
    left: Option<u64>,
    /// The line before went on.
    inside: bool,
}

impl<'a> Printer<'a> {
    pub(super) fn new(options: &'a Options) -> Printer<'a> {
        Printer { options, left: options.limit, inside: false }
    }

    /// Adds a line to what is to be sent. False: no more is wanted.
    pub(super) fn print(&mut self, line: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(line) = Line::parse(line) else { return true };
        if self.options.stream.is_some_and(|wanted| wanted != line.stream) || !self.is_new_enough(&line) {
            return true;
        }
        if self.options.timestamps && !self.inside {
            self.put(line.time.as_bytes(), out);
            self.put(b" ", out);
        }
        self.inside = line.partial;
        self.put(line.text, out);
        if !line.partial {
            self.put(b"\n", out);
        }
        self.left != Some(0)
    }

    fn is_new_enough(&self, line: &Line<'_>) -> bool {
        let Some(since) = self.options.since else { return true };
        line.time.parse::<Timestamp>().map_or(true, |time| time >= since)
    }

    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(left) = &mut self.left else { return out.extend_from_slice(bytes) };
        let count = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
        out.extend_from_slice(&bytes[..count]);
        *left -= count as u64;
    }
}

#[cfg(test)]
mod tests;
