//! An object as YAML, to the letter as kubectl prints it: keys in natural order, lists not indented, long texts folded at eighty
//! columns, and quotes only where a reader of YAML 1.1 would take a text for something else.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use style::{Style, style};

mod style;
#[cfg(test)]
mod tests;

/// Lines are folded at the first blank behind this column.
const WIDTH: usize = 80;
/// Longer keys stand on a line of their own.
const KEY: usize = 128;
/// Columns a level is indented by.
const STEP: usize = 2;

/// The text of a value.
pub(crate) fn print(value: &Value) -> String {
    let mut page = Page { out: String::new(), column: 0 };
    match value {
        Value::Object(map) if !map.is_empty() => page.map(map, 0, true),
        Value::Array(list) if !list.is_empty() => page.list(list, 0, true),
        other => page.leaf(other, 0),
    }
    if page.column > 0 {
        page.out.push('\n');
    }
    page.out
}

/// What is written, and where we are.
struct Page {
    out: String,
    column: usize,
}

impl Page {
    fn map(&mut self, map: &Map<String, Value>, indent: usize, mut here: bool) {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_by(|(a, _), (b, _)| natural(a, b));
        for (key, value) in entries {
            if !std::mem::take(&mut here) {
                self.line(indent);
            }
            if key.len() > KEY || key.contains(is_break) {
                self.put("? ");
                self.scalar(key, indent + STEP, Breaks::Allowed);
                self.line(indent);
            } else {
                self.scalar(key, indent + STEP, Breaks::Never);
            }
            self.put(":");
            match value {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + STEP, false),
                Value::Array(list) if !list.is_empty() => self.list(list, indent, false),
                other => {
                    self.put(" ");
                    self.leaf(other, indent);
                }
            }
        }
    }

    fn list(&mut self, list: &[Value], indent: usize, mut here: bool) {
        for value in list {
            if !std::mem::take(&mut here) {
                self.line(indent);
            }
            self.put("- ");
            match value {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + STEP, true),
                Value::Array(list) if !list.is_empty() => self.list(list, indent + STEP, true),
                other => self.leaf(other, indent),
            }
        }
    }

    fn leaf(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.put("null"),
            Value::Bool(flag) => self.put(if *flag { "true" } else { "false" }),
            Value::Number(number) => match number.as_f64() {
                Some(real) if number.is_f64() => self.put(&float(real)),
                _ => self.put(&number.to_string()),
            },
            Value::String(text) => self.scalar(text, indent + STEP, Breaks::Allowed),
            Value::Array(_) => self.put("[]"),
            Value::Object(_) => self.put("{}"),
        }
    }

    /// A text in the style that fits it; `indent` is where its further lines begin.
    fn scalar(&mut self, text: &str, indent: usize, breaks: Breaks) {
        match style(text, breaks) {
            Style::Plain => self.words(text, indent, breaks),
            Style::Single => {
                self.put("'");
                self.words(&text.replace('\'', "''"), indent, breaks);
                self.put("'");
            }
            Style::Double => self.escaped(text, indent, breaks),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Words, folded where the line is long enough.
    fn words(&mut self, text: &str, indent: usize, breaks: Breaks) {
        let mut before = None;
        let mut letters = text.chars().peekable();
        while let Some(c) = letters.next() {
            let next = letters.peek();
            let inner = before.is_some_and(|c| c != ' ') && next.is_some_and(|next| *next != ' ');
            if c == ' ' && breaks == Breaks::Allowed && inner && self.column > WIDTH {
                self.line(indent);
            } else {
                self.push(c);
            }
            before = Some(c);
        }
    }

    fn escaped(&mut self, text: &str, indent: usize, breaks: Breaks) {
        self.put("\"");
        let mut before = None;
        let mut letters = text.chars().peekable();
        while let Some(c) = letters.next() {
            let inner = before.is_some_and(|c| c != ' ') && letters.peek().is_some();
            if c == ' ' && breaks == Breaks::Allowed && inner && self.column > WIDTH {
                self.line(indent);
                if letters.peek() == Some(&' ') {
                    self.put("\\");
                }
            } else if !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.put(&escape(c));
            } else {
                self.push(c);
            }
            before = Some(c);
        }
        self.put("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put("2");
        }
        match text.strip_suffix('\n') {
            None => self.put("-"),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.put("+"),
            Some(_) => {}
        }
        self.end();
        for line in text.split_inclusive('\n') {
            let (words, ends) = line.strip_suffix('\n').map_or((line, false), |words| (words, true));
            if !words.is_empty() {
                self.line(indent);
                self.put(words);
            }
            if ends {
                self.end();
            }
        }
    }

    /// Begins a line, unless one has just begun.
    fn line(&mut self, indent: usize) {
        if self.column > 0 {
            self.end();
        }
        self.put(&" ".repeat(indent));
    }

    fn end(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn push(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Allowed,
    /// In a key.
    Never,
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
}

fn escape(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            let code = u32::from(c);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

/// As Go's `%g` writes it.
fn float(real: f64) -> String {
    let text = format!("{real:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{real}")
}

/// The order of keys: letters after everything else, numbers by their value.
fn natural(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = (0..a.len().min(b.len())).find(|&i| a[i] != b[i]) else { return a.len().cmp(&b.len()) };
    match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
        (true, true) => return a[at].cmp(&b[at]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // Inside of a number a zero counts as a digit like the others.
    let inside = a[..at].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
    let start = i64::from(inside && (a[at] == '0' || b[at] == '0'));
    let read = |text: &[char]| {
        let digits: Vec<i64> = text[at..].iter().map_while(|c| c.to_digit(10)).map(i64::from).collect();
        (digits.iter().fold(start, |sum, digit| sum.wrapping_mul(10).wrapping_add(*digit)), digits.len())
    };
    read(&a).cmp(&read(&b)).then(a[at].cmp(&b[at]))
}
