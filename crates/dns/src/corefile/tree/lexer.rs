//! The words of a Corefile: separated by white space, in quotes or not, up to a comment.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use super::Word;

/// A word, and how it stood there.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) word: Word,
    /// Whether it is the first of its line.
    pub(super) first: bool,
    quoted: bool,
}

impl Token {
    /// Whether it is this word, without quotes.
    pub(super) fn is(&self, text: &str) -> bool {
        !self.quoted && self.word.text == text
    }

    /// Whether it opens a block.
    pub(super) fn opens(&self) -> bool {
        self.is("{")
    }

    /// Whether it closes one.
    pub(super) fn closes(&self) -> bool {
        self.is("}")
    }
}

/// The words of a text, one after the other.
pub(super) fn tokens<'a>(file: &Arc<str>, text: &'a str) -> impl Iterator<Item = Token> + use<'a> {
    let (file, mut line, mut first) = (file.clone(), 1, true);
    let mut rest = text.trim_start_matches('\u{feff}').chars().peekable();
    std::iter::from_fn(move || {
        skip(&mut rest, &mut line, &mut first);
        let start = line;
        let quoted = rest.next_if_eq(&'"').is_some();
        let text = if quoted { quotation(&mut rest, &mut line) } else { plain(&mut rest)? };
        let word = Word { text, file: file.clone(), line: start };
        Some(Token { word, first: std::mem::take(&mut first), quoted })
    })
}

/// Goes past white space and comments, which run to the end of their line.
fn skip(rest: &mut Peekable<Chars<'_>>, line: &mut u32, first: &mut bool) {
    let mut comment = false;
    while let Some(next) = rest.next_if(|next| next.is_whitespace() || *next == '#' || comment) {
        comment |= next == '#';
        if next == '\n' {
            (*line, *first, comment) = (line.saturating_add(1), true, false);
        }
    }
}

/// Up to the closing quote. Only a quote can be escaped; before anything else a backslash is itself.
fn quotation(rest: &mut Peekable<Chars<'_>>, line: &mut u32) -> String {
    let mut text = String::new();
    while let Some(next) = rest.next() {
        match next {
            '"' => break,
            '\\' if rest.next_if_eq(&'"').is_some() => text.push('"'),
            // A backslash escapes nothing else, itself included: both stay, and the second does not escape a quote.
            '\\' if rest.next_if_eq(&'\\').is_some() => text.push_str("\\\\"),
            _ => {
                *line = line.saturating_add(u32::from(next == '\n'));
                text.push(next);
            }
        }
    }
    text
}

/// Up to white space, or a comment.
fn plain(rest: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut text = String::new();
    while let Some(next) = rest.next_if(|next| !next.is_whitespace() && *next != '#') {
        text.push(next);
    }
    (!text.is_empty()).then_some(text)
}
