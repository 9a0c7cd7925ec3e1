//! What a page of the manual asks the reader to do: its blocks, in order, with what the comments before them say.
//!
//! CONTRIBUTING.md tells writers the rules; this is where they are read.

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The line of the page, from 1.
    pub(crate) line: usize,
    /// A program that not every machine has, and without which this is left out.
    pub(crate) with: Option<String>,
    pub(crate) what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// What the page takes for granted: commands that only must not fail.
    Lab { machine: String, commands: Vec<String> },
    /// A transcript.
    Session { machine: String, commands: Vec<Command> },
    /// A file the reader writes.
    File { machine: String, name: String, text: String },
    /// Objects that the API must take.
    Manifest { machine: String, text: String },
    /// What cannot be done here.
    NotRun { reason: String },
    /// What is against the rules.
    Wrong(String),
}

/// A command and what the page says it prints.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) output: Vec<String>,
}

/// The machine on which commands run unless a comment names another.
pub(crate) const FIRST: &str = "one";

/// The steps of a page.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let lines: Vec<&str> = page.lines().collect();
    let (mut steps, mut notes, mut at) = (Vec::new(), Notes::default(), 0);
    while at < lines.len() {
        let line = at + 1;
        if let Some(language) = lines[at].strip_prefix("```") {
            let end = find(&lines, at + 1, |line| line == "```");
            let block = Block { line, language, lines: &lines[at + 1..end] };
            let with = notes.with.take();
            steps.push(Step { line, with, what: block.read(std::mem::take(&mut notes)) });
            at = end;
        } else if lines[at].starts_with("<!--") {
            let end = find(&lines, at, |line| line.ends_with("-->"));
            let text = lines[at..=end.min(lines.len() - 1)].join("\n");
            if let Some(what) = notes.hear(text.trim_start_matches("<!--").trim_end_matches("-->").trim()) {
                steps.push(Step { line, with: None, what });
            }
            at = end;
        } else if !lines[at].trim().is_empty() {
            notes = Notes::default();
        }
        at += 1;
    }
    steps
}

fn find(lines: &[&str], from: usize, ends: impl Fn(&str) -> bool) -> usize {
    (from..lines.len()).find(|at| ends(lines[*at].trim_end())).unwrap_or(lines.len())
}

/// What comments say about the block behind them.
#[derive(Default)]
struct Notes {
    not_run: Option<String>,
    file: Option<String>,
    on: Option<String>,
    with: Option<String>,
}

impl Notes {
    /// Takes a comment in; one that is a step of its own comes back.
    fn hear(&mut self, comment: &str) -> Option<What> {
        let (key, value) = comment.split_once(':')?;
        let value = value.trim().to_owned();
        match key {
            "not-run" if value.is_empty() => return Some(What::Wrong("not-run says no reason".to_owned())),
            "not-run" => self.not_run = Some(value),
            "file" => self.file = Some(value),
            "on" => self.on = Some(value),
            "with" => self.with = Some(value),
            "lab" => {
                let commands = value.lines().map(|line| line.trim().to_owned()).collect();
                return Some(What::Lab { machine: std::mem::take(self).machine(), commands });
            }
            _ => {}
        }
        None
    }

    fn machine(&self) -> String {
        self.on.clone().unwrap_or_else(|| FIRST.to_owned())
    }
}

struct Block<'a> {
    line: usize,
    language: &'a str,
    lines: &'a [&'a str],
}

impl Block<'_> {
    fn read(&self, notes: Notes) -> What {
        let machine = notes.machine();
        if let Some(reason) = notes.not_run {
            return What::NotRun { reason };
        }
        if let Some(name) = notes.file {
            return What::File { machine, name, text: self.text() };
        }
        match self.language {
            "console" => self.session(machine),
            "yaml" if self.is_manifest() => What::Manifest { machine, text: self.text() },
            "text" if !self.lines.iter().any(|line| line.starts_with("$ ")) => {
                What::Session { machine, commands: Vec::new() }
            }
            other => What::Wrong(format!(
                "a block of {other:?}: commands are `console`, manifests `yaml`, pictures `text`; anything else needs a \
                 comment `<!-- file: NAME -->` or `<!-- not-run: REASON -->` before it"
            )),
        }
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn is_manifest(&self) -> bool {
        ["apiVersion:", "kind:"].iter().all(|key| self.lines.iter().any(|line| line.starts_with(key)))
    }

    fn session(&self, machine: String) -> What {
        let (mut commands, mut at) = (Vec::<Command>::new(), 0);
        while at < self.lines.len() {
            if let Some(first) = self.lines[at].strip_prefix("$ ") {
                let end = self.command_end(at, first);
                let more = self.lines[at + 1..=end].iter().map(|line| format!("\n{line}"));
                let text = first.to_owned() + &more.collect::<String>();
                commands.push(Command { line: self.line + 1 + at, text, output: Vec::new() });
                at = end;
            } else if let Some(last) = commands.last_mut() {
                last.output.push(self.lines[at].trim_end().to_owned());
            } else {
                return What::Wrong("a console block begins with `$ `".to_owned());
            }
            at += 1;
        }
        What::Session { machine, commands }
    }

    /// The last line of a command: it goes on behind a backslash, and to the end of what it is to read.
    fn command_end(&self, at: usize, first: &str) -> usize {
        if let Some((_, marker)) = first.split_once("<<") {
            let marker: String = marker.trim_matches('\'').chars().take_while(|c| c.is_ascii_alphabetic()).collect();
            return find(self.lines, at + 1, |line| line == marker).min(self.lines.len() - 1);
        }
        let mut end = at;
        while self.lines[end].ends_with('\\') && end + 1 < self.lines.len() {
            end += 1;
        }
        end
    }
}

#[cfg(test)]
mod tests;
