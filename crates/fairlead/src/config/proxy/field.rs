//! Fields of a configuration: how each kind of value is read from a file or a flag, and shown.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::span::Span;
use super::tree::{Node, Place};
use crate::gates::switch;

/// What was found while a file was read.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Where each field stands, by its path.
    pub(super) lines: BTreeMap<String, u64>,
    /// What is wrong; each begins with its line.
    pub(super) mistakes: Vec<String>,
    /// What is of no use here.
    pub(super) warnings: Vec<String>,
}

impl Findings {
    /// The line of a field, or of the nearest thing around it.
    pub(super) fn line(&self, path: &str) -> Option<u64> {
        let mut path = path;
        loop {
            match self.lines.get(path) {
                Some(line) => return Some(*line),
                None => path = path.rsplit_once(['.', '['])?.0,
            }
        }
    }
}

/// A field, or a group of them.
pub(super) trait Field {
    /// Takes what a file says. Nothing said leaves it as it is.
    fn read(&mut self, place: &Place, path: &str, found: &mut Findings);
}

/// A value a flag can give.
pub(super) trait Given: Sized {
    /// What is wanted, for people.
    const WANT: &'static str;
    fn from_node(node: &Node) -> Option<Self>;
    fn from_text(text: &str) -> Option<Self>;
    fn show(&self) -> String;
}

impl<T: Given> Field for T {
    fn read(&mut self, place: &Place, path: &str, found: &mut Findings) {
        match T::from_node(&place.node) {
            Some(value) => *self = value,
            None if matches!(place.node, Node::Null) => {}
            None => found.mistakes.push(format!(
                "line {}: {path}: want {}, found {}",
                place.line,
                T::WANT,
                place.node.kind()
            )),
        }
    }
}

impl Given for String {
    const WANT: &'static str = "a text";
    fn from_node(node: &Node) -> Option<String> {
        match node {
            Node::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
    fn from_text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
    fn show(&self) -> String {
        self.clone()
    }
}

impl Given for bool {
    const WANT: &'static str = "true or false";
    fn from_node(node: &Node) -> Option<bool> {
        match node {
            Node::Bool(value) => Some(*value),
            _ => None,
        }
    }
    fn from_text(text: &str) -> Option<bool> {
        switch(text)
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Given for i32 {
    const WANT: &'static str = "a whole number of 32 bits";
    fn from_node(node: &Node) -> Option<i32> {
        match node {
            Node::Integer(number) => i32::try_from(*number).ok(),
            _ => None,
        }
    }
    fn from_text(text: &str) -> Option<i32> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Given for f32 {
    const WANT: &'static str = "a number";
    fn from_node(node: &Node) -> Option<f32> {
        match node {
            Node::Integer(number) => Some(*number as f32),
            Node::Real(number) => Some(*number as f32).filter(|number| number.is_finite()),
            _ => None,
        }
    }
    fn from_text(text: &str) -> Option<f32> {
        text.parse().ok().filter(|number: &f32| number.is_finite())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Given for Span {
    const WANT: &'static str = "a duration such as 30s or 1m30s";
    fn from_node(node: &Node) -> Option<Span> {
        match node {
            Node::Text(text) => text.parse().ok(),
            Node::Integer(0) => Some(Span::ZERO),
            _ => None,
        }
    }
    fn from_text(text: &str) -> Option<Span> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Given for Vec<String> {
    const WANT: &'static str = "a list of texts";
    fn from_node(node: &Node) -> Option<Vec<String>> {
        match node {
            Node::List(items) => items.iter().map(|item| String::from_node(&item.node)).collect(),
            _ => None,
        }
    }
    fn from_text(text: &str) -> Option<Vec<String>> {
        Some(text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect())
    }
    fn show(&self) -> String {
        format!("[{}]", self.join(","))
    }
}

impl Given for BTreeMap<String, bool> {
    const WANT: &'static str = "names with true or false";
    fn from_node(node: &Node) -> Option<BTreeMap<String, bool>> {
        match node {
            Node::Map(entries) => {
                entries.iter().map(|(key, _, value)| Some((key.clone(), bool::from_node(&value.node)?))).collect()
            }
            _ => None,
        }
    }
    fn from_text(text: &str) -> Option<BTreeMap<String, bool>> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let read = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            Some((name.trim().to_owned(), switch(value.trim())?))
        };
        pairs.map(read).collect()
    }
    fn show(&self) -> String {
        let pairs: Vec<String> = self.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(",")
    }
}

impl<T: Given> Given for Option<T> {
    const WANT: &'static str = T::WANT;
    fn from_node(node: &Node) -> Option<Option<T>> {
        T::from_node(node).map(Some)
    }
    fn from_text(text: &str) -> Option<Option<T>> {
        T::from_text(text).map(Some)
    }
    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }
}

/// What is kept but not looked at.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub(super) struct Whatever(pub(super) Value);

impl Whatever {
    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl Field for Whatever {
    fn read(&mut self, place: &Place, _: &str, _: &mut Findings) {
        self.0 = json(&place.node);
    }
}

fn json(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => (*value).into(),
        Node::Integer(number) => (*number).into(),
        Node::Real(number) => (*number).into(),
        Node::Text(text) => text.as_str().into(),
        Node::List(items) => items.iter().map(|item| json(&item.node)).collect(),
        Node::Map(entries) => entries.iter().map(|(key, _, value)| (key.clone(), json(&value.node))).collect(),
    }
}

/// A field that was there once. It is read and said to be of no use.
#[derive(Debug, Clone, Default)]
pub(super) struct Gone;

impl Field for Gone {
    fn read(&mut self, place: &Place, path: &str, found: &mut Findings) {
        if !matches!(place.node, Node::Null) {
            found.warnings.push(format!("line {}: {path} means nothing any more", place.line));
        }
    }
}
