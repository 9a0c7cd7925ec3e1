//! A document of YAML or JSON with the line of everything in it.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// How deep values nest at most; the API allows no more either.
const DEPTH: usize = 128;
/// Values in one document.
const NODES: usize = 5_000_000;
/// Bytes of text in one document.
const TEXT: usize = 256 << 20;

/// A value and the line it stands on, counted from 1. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<Spot>);

#[derive(Debug)]
struct Spot {
    line: usize,
    node: Node,
}

#[derive(Debug)]
enum Node {
    Leaf(Value),
    List(Vec<Spot>),
    /// The key, its line, the value.
    Map(Vec<(String, usize, Spot)>),
}

/// Why a document cannot be read.
#[derive(Debug)]
pub(super) struct Mistake {
    /// Counted from 1.
    pub(super) line: Option<usize>,
    pub(super) why: String,
}

impl Place {
    /// Reads a document.
    pub(super) fn parse(text: &str) -> Result<Place, Mistake> {
        let budget = serde_saphyr::budget! {
            max_depth: DEPTH, max_nodes: NODES, max_events: 2 * NODES, max_total_scalar_bytes: TEXT
        };
        let options = serde_saphyr::options! { budget: budget };
        let spot: Result<Spot, _> = serde_saphyr::from_str_with_options(text, options);
        spot.map(|spot| Place(Arc::new(spot))).map_err(|error| {
            let message = error.without_snippet().to_string();
            let why = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
            Mistake { line: error.location().map(|place| line(place.line())), why }
        })
    }

    /// The document without its lines.
    pub(super) fn value(&self) -> Value {
        self.0.value()
    }

    /// The line of a field such as `spec.ports[0].port`, or of the last part of its path that is written down.
    pub(super) fn line_of(&self, path: &str) -> usize {
        let (mut spot, mut line) = (&*self.0, self.0.line);
        for step in steps(path) {
            let next = match (&spot.node, &step) {
                (Node::Map(entries), Step::Key(key)) => {
                    entries.iter().find(|(name, ..)| name == key).map(|(_, line, spot)| (*line, spot))
                }
                (Node::List(items), Step::At(at)) => items.get(*at).map(|spot| (spot.line, spot)),
                _ => None,
            };
            let Some((next_line, next)) = next else { break };
            (line, spot) = (next_line, next);
        }
        line
    }
}

enum Step {
    Key(String),
    At(usize),
}

/// `spec.ports[0].port` or `metadata.labels[app.io/name]` in pieces.
fn steps(path: &str) -> Vec<Step> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (key, after) = inner.split_once(']').unwrap_or((inner, ""));
            let key = key.trim_matches('"');
            steps.push(key.parse().map_or_else(|_| Step::Key(key.to_owned()), Step::At));
            rest = after;
        } else {
            let trimmed = rest.trim_start_matches('.');
            let end = trimmed.find(['.', '[']).unwrap_or(trimmed.len());
            if end > 0 {
                steps.push(Step::Key(trimmed[..end].to_owned()));
            }
            rest = &trimmed[end..];
        }
    }
    steps
}

impl Spot {
    fn value(&self) -> Value {
        match &self.node {
            Node::Leaf(value) => value.clone(),
            Node::List(items) => Value::Array(items.iter().map(Spot::value).collect()),
            Node::Map(entries) => {
                let entries = entries.iter().map(|(key, _, spot)| (key.clone(), spot.value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}

fn line(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl<'de> Deserialize<'de> for Spot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Spot, D::Error> {
        let spanned = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Spot { line: line(spanned.referenced.line()), node: spanned.value })
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
        Ok(Node::Leaf(Value::Null))
    }
    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }
    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Leaf(flag.into()))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Node, E> {
        let number = Number::from_f64(number).ok_or_else(|| E::custom("the API knows no such number"))?;
        Ok(Node::Leaf(Value::Number(number)))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Leaf(text.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map: Vec<(String, usize, Spot)> = Vec::new();
        while let Some((key, spot)) = entries.next_entry::<Spanned<String>, Spot>()? {
            if map.iter().any(|(name, ..)| *name == key.value) {
                return Err(de::Error::custom(format!("{:?} is set twice", key.value)));
            }
            map.push((key.value, line(key.referenced.line()), spot));
        }
        Ok(Node::Map(map))
    }
}
