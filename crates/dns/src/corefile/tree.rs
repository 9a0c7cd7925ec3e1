//! A Corefile as a tree: server blocks of lines, each with the lines of its braces. Snippets and imports are put in place,
//! variables are filled in, and every word knows where it stood.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Mistake, Outside};
use lexer::Token;

mod lexer;

/// A word of a Corefile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Without quotes, with variables filled in.
    pub text: String,
    /// The file it stands in.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

/// A line: at least one word, and perhaps lines in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The words. There is at least one.
    pub words: Vec<Word>,
    /// The lines in braces behind it.
    pub body: Option<Vec<Line>>,
}

impl Line {
    /// Its first word.
    pub fn name(&self) -> &Word {
        self.words.first().expect("a line is made of at least one word")
    }

    /// Its other words.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// A server block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What it serves: `example.org:53`.
    pub keys: Vec<Word>,
    /// Its plugins.
    pub lines: Vec<Line>,
}

/// Braces in braces are read this deep.
const DEPTH: usize = 16;
/// Imports of one Corefile, snippets and files together. Real ones have a few.
const IMPORTS: usize = 1000;
/// Words of one Corefile, imports included.
const WORDS: usize = 200_000;

/// Reads a Corefile, and notes what is wrong with it.
pub fn parse(file: &str, text: &str, outside: &dyn Outside, mistakes: &mut Vec<Mistake>) -> Vec<Block> {
    let mut parser =
        Parser { outside, mistakes, snippets: HashMap::new(), imports: IMPORTS, words: WORDS, full: false };
    let mut blocks = Vec::new();
    let tokens = parser.tokens(file, text);
    parser.blocks(&mut Stream::new(&tokens), &mut blocks, DEPTH);
    blocks
}

struct Parser<'a> {
    outside: &'a dyn Outside,
    mistakes: &'a mut Vec<Mistake>,
    snippets: HashMap<String, Vec<Token>>,
    /// How many imports are still allowed.
    imports: usize,
    /// How many words are still allowed.
    words: usize,
    /// A bound was met, and said.
    full: bool,
}

/// Tokens, and how far they are read.
struct Stream<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl<'a> Stream<'a> {
    fn new(tokens: &'a [Token]) -> Stream<'a> {
        Stream { tokens, at: 0 }
    }

    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&'a Token> {
        let token = self.tokens.get(self.at);
        self.at += usize::from(token.is_some());
        token
    }

    /// The next one, if it is on the same line.
    fn same_line(&mut self) -> Option<&'a Token> {
        if self.peek()?.first { None } else { self.next() }
    }
}

impl Parser<'_> {
    fn tokens(&mut self, file: &str, text: &str) -> Vec<Token> {
        let tokens: Vec<Token> = lexer::tokens(&file.into(), text).take(self.words + 1).collect();
        if tokens.len() > self.words {
            let last = tokens.last().map(|token| token.word.clone());
            self.bound(last.as_ref(), "the Corefile is too long");
            return Vec::new();
        }
        self.words -= tokens.len();
        tokens
    }

    fn blocks(&mut self, stream: &mut Stream<'_>, into: &mut Vec<Block>, depth: usize) {
        while let Some(token) = stream.peek() {
            if token.is("import") && token.first {
                self.import(stream, depth, |parser, tokens, depth| {
                    parser.blocks(&mut Stream::new(tokens), into, depth);
                });
            } else if token.opens() || token.closes() {
                self.wrong(&token.word, format!("{:?} without a server block", token.word.text));
                stream.next();
            } else {
                self.block(stream, into, depth);
            }
        }
    }

    fn block(&mut self, stream: &mut Stream<'_>, into: &mut Vec<Block>, depth: usize) {
        let keys = self.keys(stream);
        let Some(first) = keys.first() else { return };
        let braced = stream.peek().is_some_and(Token::opens);
        if braced {
            stream.next();
        }
        let snippet = first.text.strip_prefix('(').and_then(|name| name.strip_suffix(')'));
        if let (Some(name), 1, true) = (snippet, keys.len(), braced) {
            return self.snippet(name, first, stream);
        }
        let mut lines = Vec::new();
        self.lines(stream, &mut lines, braced.then_some(first), depth);
        into.push(Block { keys, lines });
    }

    /// The words before the brace of a block; a comma at the end of a line says that more follow.
    fn keys(&mut self, stream: &mut Stream<'_>) -> Vec<Word> {
        let (mut keys, mut more) = (Vec::new(), true);
        while let Some(token) = stream.peek() {
            if token.opens() || (token.first && !more) {
                break;
            }
            stream.next();
            let mut word = self.filled(&token.word);
            more = word.text.ends_with(',');
            word.text.truncate(word.text.trim_end_matches(',').len());
            if !word.text.is_empty() {
                keys.push(word);
            }
        }
        keys
    }

    /// Keeps the tokens of a snippet up to its closing brace.
    fn snippet(&mut self, name: &str, at: &Word, stream: &mut Stream<'_>) {
        let (mut tokens, mut open) = (Vec::new(), 1_usize);
        for token in std::iter::from_fn(|| stream.next()) {
            open = open + usize::from(token.opens()) - usize::from(token.closes());
            if open == 0 {
                break;
            }
            tokens.push(token.clone());
        }
        if open > 0 {
            self.wrong(at, "no \"}\" ends this snippet".to_owned());
        }
        if self.snippets.insert(name.to_owned(), tokens).is_some() {
            self.wrong(at, format!("there is a snippet {name:?} already"));
        }
    }

    /// Lines up to a closing brace, or the end if there is no brace to close.
    fn lines(&mut self, stream: &mut Stream<'_>, into: &mut Vec<Line>, opened: Option<&Word>, depth: usize) {
        while let Some(token) = stream.peek() {
            if token.closes() {
                if opened.is_none() {
                    self.wrong(&token.word, "\"}\" without \"{\"".to_owned());
                }
                stream.next();
                if opened.is_some() {
                    return;
                }
            } else if token.is("import") {
                self.import(stream, depth, |parser, tokens, depth| {
                    parser.lines(&mut Stream::new(tokens), into, None, depth);
                });
            } else {
                self.line(stream, into, depth);
            }
        }
        if let Some(opened) = opened {
            self.wrong(opened, "no \"}\" ends this block".to_owned());
        }
    }

    fn line(&mut self, stream: &mut Stream<'_>, into: &mut Vec<Line>, depth: usize) {
        let Some(first) = stream.next() else { return };
        if first.opens() {
            // A brace on a line of its own belongs to the line before.
            let open = into.pop_if(|line| line.body.is_none());
            let Some(mut line) = open else { return self.wrong(&first.word, "\"{\" behind nothing".to_owned()) };
            line.body = self.body(stream, &first.word, depth);
            return into.push(line);
        }
        let mut line = Line { words: vec![self.filled(&first.word)], body: None };
        while let Some(token) = stream.peek().filter(|token| !token.first && !token.closes()) {
            stream.next();
            if token.opens() {
                line.body = self.body(stream, &token.word, depth);
                break;
            }
            line.words.push(self.filled(&token.word));
        }
        into.push(line);
    }

    fn body(&mut self, stream: &mut Stream<'_>, opened: &Word, depth: usize) -> Option<Vec<Line>> {
        let mut lines = Vec::new();
        match depth.checked_sub(1) {
            Some(depth) => self.lines(stream, &mut lines, Some(opened), depth),
            None => self.bound(Some(opened), "too many braces in braces"),
        }
        Some(lines)
    }

    /// Hands the tokens of a snippet, or of files, to `take`.
    fn import(&mut self, stream: &mut Stream<'_>, depth: usize, mut take: impl FnMut(&mut Self, &[Token], usize)) {
        let Some(import) = stream.next() else { return };
        let what = stream.same_line().map(|token| self.filled(&token.word));
        let Some(what) = what.filter(|what| !what.text.is_empty()) else {
            return self.wrong(&import.word, "import: wrong number of arguments of \"import\"".to_owned());
        };
        while stream.same_line().is_some() {}
        let (Some(depth), Some(imports)) = (depth.checked_sub(1), self.imports.checked_sub(1)) else {
            return self.bound(Some(&what), "too many imports");
        };
        self.imports = imports;
        if let Some(tokens) = self.snippets.get(&what.text).cloned() {
            let Some(words) = self.words.checked_sub(tokens.len()) else {
                return self.bound(Some(&what), "the Corefile is too long");
            };
            self.words = words;
            return take(self, &tokens, depth);
        }
        match self.outside.files(&what.text, &what.file) {
            Ok(files) => files.iter().for_each(|(file, text)| {
                let tokens = self.tokens(file, text);
                take(self, &tokens, depth);
            }),
            Err(why) => self.wrong(&what, format!("import: {:?}: {why}", what.text)),
        }
    }

    /// With variables filled in: `{$NAME}` and `{%NAME%}`.
    fn filled(&self, word: &Word) -> Word {
        let text = fill(&word.text, "{$", "}", self.outside);
        let text = fill(&text, "{%", "%}", self.outside);
        Word { text, file: word.file.clone(), line: word.line }
    }

    fn wrong(&mut self, at: &Word, what: String) {
        self.mistakes.push(Mistake { file: at.file.clone(), line: at.line, what });
    }

    /// A bound is met: said once, and nothing more is imported.
    fn bound(&mut self, at: Option<&Word>, what: &str) {
        self.imports = 0;
        if let (Some(at), false) = (at, std::mem::replace(&mut self.full, true)) {
            self.wrong(at, what.to_owned());
        }
    }
}

fn fill(text: &str, open: &str, close: &str, outside: &dyn Outside) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once(open) {
        let Some((name, after)) = behind.split_once(close) else { break };
        out.push_str(before);
        out.push_str(&outside.variable(name).unwrap_or_default());
        rest = after;
    }
    out + rest
}
