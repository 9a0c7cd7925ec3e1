//! A config file as it was written: values with the line each stands on, so that every mistake can name its place.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Place {
    /// Counted from 1.
    pub(super) line: u64,
    pub(super) node: Node,
}

/// A value.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    Text(String),
    List(Vec<Place>),
    /// Entries in their order: the key, its line, the value.
    Map(Vec<(String, u64, Place)>),
}

/// How deep values nest at most. A configuration has four levels.
const DEPTH: usize = 16;

impl Place {
    /// Reads YAML, or JSON. A mistake begins with its line.
    pub(super) fn parse(text: &str) -> Result<Place, String> {
        let budget = serde_saphyr::budget! { max_depth: DEPTH };
        let options = serde_saphyr::options! { budget: budget };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let mistake = super::super::mistake(&error);
            match error.location() {
                Some(place) => format!("line {}: {mistake}", place.line()),
                None => mistake,
            }
        })
    }
}

impl Node {
    /// What it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "nothing",
            Node::Bool(_) => "a boolean",
            Node::Integer(_) | Node::Real(_) => "a number",
            Node::Text(_) => "a text",
            Node::List(_) => "a list",
            Node::Map(_) => "a map",
        }
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Place, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Place { line: spanned.referenced.line(), node: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Integer(number))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Node, E> {
        Ok(i64::try_from(number).map_or(Node::Real(number as f64), Node::Integer))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Real(number))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, Place>()? {
            map.push((key.value, key.referenced.line(), value));
        }
        Ok(Node::Map(map))
    }
}
