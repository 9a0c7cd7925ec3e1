//! Patterns for names: regular expressions, and the simpler ways of `rewrite`.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

/// A regular expression. Equal if its text is.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Arc<Regex>,
}

/// The longest text of a pattern.
const LENGTH: usize = 10_000;
/// Memory a compiled pattern may take.
const SIZE: usize = 1 << 20;

impl Pattern {
    /// Reads a pattern; why it is none.
    pub fn new(text: &str) -> Result<Pattern, String> {
        if text.len() > LENGTH {
            return Err(format!("longer than {LENGTH} characters"));
        }
        let built = RegexBuilder::new(text).size_limit(SIZE).dfa_size_limit(SIZE).build();
        // The first lines of a message draw the pattern; the last says what is wrong.
        let why = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().to_owned();
        built.map(|regex| Pattern { regex: Arc::new(regex) }).map_err(why)
    }

    /// The expression.
    pub fn regex(&self) -> &Regex {
        &self.regex
    }

    /// `to` with `{1}` and so on filled in, if a text matches.
    pub fn rewrite(&self, text: &str, to: &str) -> Option<String> {
        let groups = self.regex.captures(text)?;
        let mut out = to.to_owned();
        for (number, group) in groups.iter().enumerate() {
            let place = format!("{{{number}}}");
            if out.contains(&place) {
                out = out.replace(&place, group.map_or("", |group| group.as_str()));
            }
        }
        Some(out)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

/// Which names a rewrite is for. Names are in lower case and end with a dot.
#[derive(Debug, Clone, PartialEq)]
pub enum Matcher {
    /// This name.
    Exact(String),
    /// Names that begin so.
    Prefix(String),
    /// Names that end so.
    Suffix(String),
    /// Names that have this in them.
    Substring(String),
    /// Names that match.
    Regex(Pattern),
}

impl Matcher {
    /// The name with what matches replaced by `to`; `None` if nothing does.
    pub fn rewrite(&self, name: &str, to: &str) -> Option<String> {
        match self {
            Matcher::Exact(from) => (name == from).then(|| to.to_owned()),
            Matcher::Prefix(from) => name.strip_prefix(from.as_str()).map(|rest| format!("{to}{rest}")),
            Matcher::Suffix(from) => name.strip_suffix(from.as_str()).map(|rest| format!("{rest}{to}")),
            Matcher::Substring(from) => name.contains(from.as_str()).then(|| name.replace(from.as_str(), to)),
            Matcher::Regex(pattern) => pattern.rewrite(name, to),
        }
    }
}
