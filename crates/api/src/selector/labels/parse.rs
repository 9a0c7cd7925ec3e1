//! From the text of a label selector to its requirements, with the reference server's words for what is wrong.

use super::{Operator, Requirement, Wanted};
use crate::{golang, names};

/// Maximum number of requirements of a selector. Each is checked for each object of a list, and
/// 100,000 objects are common.
const MAX_REQUIREMENTS: usize = 256;

/// The requirements a text states.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { tokens: lex(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.look() {
            Token::Word(_) | Token::Not => {}
            Token::End => return Ok(requirements),
            other => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text())),
        }
        if requirements.len() >= MAX_REQUIREMENTS {
            return Err(format!("a selector may have at most {MAX_REQUIREMENTS} requirements"));
        }
        let requirement = parser.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
        requirements.push(requirement);
        match parser.take() {
            Token::End => return Ok(requirements),
            Token::Comma => {}
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
        if !matches!(parser.look(), Token::Word(_) | Token::Not) {
            return Err(format!("found '{}', expected: identifier after ','", parser.look().text()));
        }
    }
}

/// A piece of the text. `in` and `notin` are words: what they mean depends on where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Open,
    Close,
    Comma,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::Word(word) => word,
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::Greater => ">",
            Token::Less => "<",
            Token::End => "",
        }
    }
}

fn lex(text: &str) -> Vec<Token<'_>> {
    // A NUL byte ends the text for the reference server.
    let mut rest = text.split('\0').next().unwrap_or_default();
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let symbol = [
            Token::DoubleEquals,
            Token::NotEquals,
            Token::Equals,
            Token::Not,
            Token::Open,
            Token::Close,
            Token::Comma,
            Token::Greater,
            Token::Less,
        ]
        .into_iter()
        .find(|symbol| rest.starts_with(symbol.text()));
        let token = match symbol {
            Some(symbol) => symbol,
            None if rest.is_empty() => Token::End,
            None => Token::Word(&rest[..rest.find(ends_word).unwrap_or(rest.len())]),
        };
        tokens.push(token);
        if token == Token::End {
            return tokens;
        }
        rest = &rest[token.text().len()..];
    }
}

fn ends_word(c: char) -> bool {
    "=!(),>< \t\r\n".contains(c)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn look(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.look();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.look() == Token::Not;
        if negated {
            self.take();
        }
        let key = self.key()?;
        if negated {
            return Ok(Requirement { key, wanted: Wanted::DoesNotExist });
        }
        if matches!(self.look(), Token::End | Token::Comma) {
            return Ok(Requirement { key, wanted: Wanted::Exists });
        }
        let operator = self.operator()?;
        let mut values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        values.sort();
        values.dedup();
        Requirement::new(key, operator, values)
    }

    fn key(&mut self) -> Result<String, String> {
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        let reasons = names::label_key(key);
        if reasons.is_empty() {
            return Ok(key.to_owned());
        }
        // The key has no path of its own; the reference server prints the missing one like this.
        Err(format!("<nil>: Invalid value: {}: {}", golang::quote(key), reasons.join("; ")))
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.take() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Equals | Token::DoubleEquals => Operator::Equals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
        })
    }

    /// The one value of an exact match; nothing is the empty value.
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.look(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value.to_owned()),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// `(a, b)`; nothing between commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Open => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        match self.look() {
            Token::Word(_) | Token::Comma => {}
            Token::Close => {
                self.take();
                return Ok(vec![String::new()]);
            }
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        let mut values = Vec::new();
        loop {
            match self.take() {
                Token::Word(value) => {
                    values.push(value.to_owned());
                    if !matches!(self.look(), Token::Comma | Token::Close) {
                        return Err(format!("found '{}', expected: ',' or ')'", self.look().text()));
                    }
                }
                Token::Comma => {
                    if values.is_empty() || matches!(self.look(), Token::Comma | Token::Close) {
                        values.push(String::new());
                    }
                }
                other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
            if self.look() == Token::Close {
                self.take();
                return Ok(values);
            }
        }
    }
}
