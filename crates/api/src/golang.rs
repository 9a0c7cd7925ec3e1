//! How the reference server prints values in its messages. Clients and people compare those messages, so ours read the same.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::io;

use crate::value::Value;

/// Returns the beginning of a text of more than `max` bytes, with three dots behind it.
pub fn shorten(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned([&text[..text.floor_char_boundary(max)], "..."].concat())
}

/// Returns [`quote`] of the first `max` bytes; three dots behind the quote say that the text is
/// longer.
pub fn quote_short(text: &str, max: usize) -> String {
    if text.len() <= max {
        return quote(text);
    }
    let mut quoted = quote(&text[..text.floor_char_boundary(max)]);
    quoted.push_str("...");
    quoted
}

/// Returns the first `max` bytes of the text of a value, with three dots behind them if there are
/// more. The rest is not formatted.
pub fn display_short(value: &impl fmt::Display, max: usize) -> String {
    let mut out = Limited { text: String::new(), left: max };
    if write!(out, "{value}").is_err() {
        out.text.push_str("...");
    }
    out.text
}

/// Returns the first `max` bytes of a value as compact JSON, with three dots behind them if there
/// are more. The rest is not formatted.
pub fn json_short(value: &Value, max: usize) -> String {
    let mut out = LimitedBytes { bytes: Vec::new(), left: max };
    let whole = serde_json::to_writer(&mut out, value).is_ok();
    let mut text = String::from_utf8_lossy(&out.bytes).into_owned();
    if !whole {
        text.push_str("...");
    }
    text
}

/// Bytes up to a limit, as [`Limited`].
struct LimitedBytes {
    bytes: Vec<u8>,
    left: usize,
}

impl io::Write for LimitedBytes {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let taken = part.len().min(self.left);
        self.bytes.extend_from_slice(&part[..taken]);
        self.left -= taken;
        // `write_all` makes an error of a write of nothing.
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text that takes so many bytes and then ends the formatting.
struct Limited {
    text: String,
    left: usize,
}

impl fmt::Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if part.len() > self.left {
            self.text.push_str(&part[..part.floor_char_boundary(self.left)]);
            self.left = 0;
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        self.left -= part.len();
        Ok(())
    }
}

/// A string in double quotes with Go's escapes (`strconv.Quote`).
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if (c as u32) < 0x100 && c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            '\u{2028}' | '\u{2029}' | '\u{feff}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether a character is shown as it is (`unicode.IsPrint`): letters, marks, numbers, punctuation, symbols and the space.
pub fn is_print(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format(c))
}

/// Characters that only steer how text is shown, and private ones.
fn is_format(c: char) -> bool {
    matches!(u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x180e | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f
        | 0xe000..=0xf8ff | 0xfeff | 0xfff9..=0xfffb | 0xf0000..)
}

/// A value as Go's `%v` prints it: `map[a:1 b:x]`, `[1 2]`, keys sorted.
pub fn plain(value: &Value) -> String {
    Plain(value).to_string()
}

/// A value that is displayed as Go's `%v`.
#[derive(Debug)]
pub struct Plain<'a>(pub &'a Value);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Number(n) => write!(f, "{n}"),
            Value::String(s) => f.write_str(s),
            Value::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        f.write_str(" ")?;
                    }
                    Plain(item).fmt(f)?;
                }
                f.write_str("]")
            }
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by(|a, b| a.0.cmp(b.0));
                f.write_str("map[")?;
                for (at, (key, value)) in entries.into_iter().enumerate() {
                    if at > 0 {
                        f.write_str(" ")?;
                    }
                    write!(f, "{}:", key.as_str())?;
                    Plain(value).fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}
