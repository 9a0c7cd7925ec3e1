//! What does a Corefile say? Text in, [`Settings`] out, or every mistake in it with its file, line and word.
//!
//! First the text becomes a tree of lines ([`tree`]: server blocks, snippets, imports, variables), then each line of a block
//! becomes the typed setting of a plugin. Nothing here reads a file or the environment: [`Outside`] is passed in.

use std::fmt;
use std::sync::Arc;

use crate::settings::{Plugins, Server, Settings};
#[cfg(test)]
pub(crate) use log::COMMON;
use tree::{Block, Line, Word};

mod address;
mod cache;
mod forward;
mod hosts;
mod kubernetes;
mod log;
mod plain;
mod rewrite;
mod template;
#[cfg(test)]
mod tests;
pub mod tree;
mod value;

/// What a Corefile may ask for that is not in it.
pub trait Outside {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// The files a path or pattern stands for, with their text, as seen from the file that names it. No file at all is fine
    /// for a pattern only.
    fn files(&self, pattern: &str, from: &str) -> Result<Vec<(String, String)>, String>;
}

/// Something in a Corefile that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file it is in.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// What is wrong, beginning with the plugin.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Reads a Corefile. `file` is its name, for mistakes and for imports beside it.
pub fn parse(file: &str, text: &str, outside: &dyn Outside) -> Result<Settings, Vec<Mistake>> {
    let mut found = Findings::default();
    let blocks = tree::parse(file, text, outside, &mut found.mistakes);
    let servers: Vec<Server> = blocks.iter().filter_map(|block| server(block, &mut found)).collect();
    if servers.is_empty() && found.mistakes.is_empty() {
        found.mistakes.push(Mistake { file: file.into(), line: 1, what: "no server block".to_owned() });
    }
    address::clashes(&servers, &blocks, &mut found);
    if found.mistakes.is_empty() { Ok(Settings { servers, ..Settings::default() }) } else { Err(found.mistakes) }
}

/// Mistakes, as they are found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    mistakes: Vec<Mistake>,
}

impl Findings {
    /// Notes a mistake at a word of a plugin's line.
    fn add(&mut self, plugin: &str, at: &Word, what: impl fmt::Display) {
        let what = format!("{plugin}: {what}");
        self.mistakes.push(Mistake { file: at.file.clone(), line: at.line, what });
    }

    /// The line has another number of arguments than the plugin, or option, takes.
    fn arguments(&mut self, plugin: &str, line: &Line) {
        self.add(plugin, line.name(), format_args!("wrong number of arguments of {:?}", line.name().text));
    }

    /// The option is none of the plugin's.
    fn unknown(&mut self, plugin: &str, line: &Line) {
        self.add(plugin, line.name(), format_args!("unknown option {:?}", line.name().text));
    }

    /// A word is not what it should be.
    fn invalid(&mut self, plugin: &str, word: &Word, want: &str) {
        self.add(plugin, word, format_args!("{:?} is no {want}", word.text));
    }

    /// The option is known, and not done here.
    fn unsupported(&mut self, plugin: &str, word: &Word) {
        self.add(plugin, word, format_args!("{:?} is not supported", word.text));
    }

    /// The plugin takes no block.
    fn no_body(&mut self, plugin: &str, line: &Line) {
        for option in line.body.iter().flatten() {
            self.unknown(plugin, option);
        }
    }

    /// The option takes no argument.
    fn alone(&mut self, plugin: &str, option: &Line) -> bool {
        if !option.arguments().is_empty() {
            self.arguments(plugin, option);
        }
        option.arguments().is_empty()
    }
}

fn server(block: &Block, found: &mut Findings) -> Option<Server> {
    let keys: Vec<_> = block.keys.iter().flat_map(|key| address::key(key, found)).collect();
    let mut plugins = Plugins::default();
    let zones: Vec<_> = keys.iter().map(|key| key.zone.clone()).collect();
    for line in &block.lines {
        plugin(line, &zones, &mut plugins, found);
    }
    (!keys.is_empty()).then_some(Server { keys, plugins })
}

/// Reads the line of one plugin. The zones of the block are those of plugins that name none.
fn plugin(line: &Line, zones: &[fairlead_zone::Name], into: &mut Plugins, found: &mut Findings) {
    let name = line.name().text.as_str();
    match name {
        "kubernetes" => once(&mut into.kubernetes, kubernetes::read(line, zones, found), line, found),
        "forward" => into.forward.extend(forward::read(line, found)),
        "cache" => once(&mut into.cache, cache::read(line, zones, found), line, found),
        "hosts" => once(&mut into.hosts, hosts::read(line, zones, found), line, found),
        "rewrite" => into.rewrite.extend(rewrite::read(line, found)),
        "template" => into.template.extend(template::read(line, zones, found)),
        "log" => into.log.extend(log::read(line, found)),
        "errors" => once(&mut into.errors, Some(log::errors(line, found)), line, found),
        "health" => once(&mut into.health, plain::health(line, found), line, found),
        "ready" => once(&mut into.ready, plain::ready(line, found), line, found),
        "prometheus" => once(&mut into.prometheus, plain::prometheus(line, found), line, found),
        "reload" => once(&mut into.reload, plain::reload(line, found), line, found),
        "bind" => into.bind.extend(plain::bind(line, found)),
        "autopath" => once(&mut into.autopath, plain::autopath(line, zones, found), line, found),
        "multisocket" => once(&mut into.sockets, plain::multisocket(line, found), line, found),
        "loop" => into.looping = plain::switch(line, found),
        "loadbalance" => into.loadbalance = plain::loadbalance(line, found),
        // They change what is logged or kept beside an answer, of which there is nothing here.
        "debug" | "metadata" => drop(plain::switch(line, found)),
        _ => found.add(name, line.name(), "no such plugin here"),
    }
}

/// Keeps a setting a block may have once.
fn once<T>(place: &mut Option<T>, new: Option<T>, line: &Line, found: &mut Findings) {
    if place.is_some() {
        return found.add(&line.name().text, line.name(), "may be used once in a server block");
    }
    *place = new;
}
