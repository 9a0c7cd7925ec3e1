//! Which fields: a set of paths into an object, kept as a tree, with the algebra that field ownership needs.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::value::Value;

use super::types::{Atom, Type};
use crate::golang;

/// A set of paths. Owning a field is not owning what is inside it, and the other way round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Set<'a> {
    /// Sorted by step; each is a member or has members inside.
    nodes: Vec<Node<'a>>,
}

/// One step and what is in the set below it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node<'a> {
    /// The step from the parent.
    pub(super) step: Step<'a>,
    /// Whether the path that ends here is in the set.
    pub(super) member: bool,
    /// Longer paths.
    pub(super) inner: Set<'a>,
}

/// One step of a path. Ordered as the text form lists them.
#[derive(Debug, Clone)]
pub(super) enum Step<'a> {
    /// A field of an object or a key of a map.
    Field(Cow<'a, str>),
    /// An element of a keyed list, by its key fields, sorted by name.
    Key(Vec<(Cow<'a, str>, Cow<'a, Value>)>),
    /// An element of a list of unique values.
    Item(Cow<'a, Value>),
    /// An element of a list by position.
    Index(i64),
}

impl<'a> Set<'a> {
    /// A set of these nodes, in any order; those without members are left out. Steps must differ.
    pub(super) fn of(mut nodes: Vec<Node<'a>>) -> Set<'a> {
        nodes.retain(|node| !node.is_empty());
        nodes.sort_by(|a, b| a.step.cmp(&b.step));
        Set { nodes }
    }

    /// A set of paths made of field names.
    pub(super) fn of_fields(paths: &[&[&'static str]]) -> Set<'static> {
        let mut set = Set::default();
        for path in paths {
            set.union(Set::of_path(path));
        }
        set
    }

    fn of_path(path: &[&'static str]) -> Set<'static> {
        let Some((first, rest)) = path.split_first() else { return Set::default() };
        let step = Step::Field(Cow::Borrowed(first));
        Set { nodes: vec![Node { step, member: rest.is_empty(), inner: Set::of_path(rest) }] }
    }

    /// The nodes, sorted by step.
    pub(super) fn nodes(&self) -> &[Node<'a>] {
        &self.nodes
    }

    /// Whether there is no path in it.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What is at and below a step.
    pub(super) fn get(&self, step: &Step<'_>) -> Option<&Node<'a>> {
        self.nodes.binary_search_by(|node| node.step.cmp(step)).ok().map(|at| &self.nodes[at])
    }

    /// Adds all paths of another set.
    pub(super) fn union(&mut self, other: Set<'a>) {
        if self.is_empty() {
            *self = other;
            return;
        }
        let mut mine = std::mem::take(&mut self.nodes).into_iter().peekable();
        for theirs in other.nodes {
            while let Some(node) = mine.next_if(|node| node.step < theirs.step) {
                self.nodes.push(node);
            }
            match mine.next_if(|node| node.step == theirs.step) {
                Some(mut node) => {
                    node.member |= theirs.member;
                    node.inner.union(theirs.inner);
                    self.nodes.push(node);
                }
                None => self.nodes.push(theirs),
            }
        }
        self.nodes.extend(mine);
    }

    /// Takes away the paths of another set; what is inside those stays.
    pub(super) fn subtract(&mut self, other: &Set<'_>) {
        self.retain(other, |node, theirs| {
            node.member &= !theirs.member;
            node.inner.subtract(&theirs.inner);
        });
    }

    /// Takes away the paths of another set and all that is inside them.
    pub(super) fn subtract_trees(&mut self, other: &Set<'_>) {
        self.retain(other, |node, theirs| {
            if theirs.member {
                node.member = false;
                node.inner = Set::default();
            } else {
                node.inner.subtract_trees(&theirs.inner);
            }
        });
    }

    /// Changes each node that the other set has too, and drops those that end empty.
    fn retain(&mut self, other: &Set<'_>, change: impl Fn(&mut Node<'a>, &Node<'_>)) {
        if other.is_empty() {
            return;
        }
        self.nodes.retain_mut(|node| {
            if let Some(theirs) = other.get(&node.step) {
                change(node, theirs);
            }
            !node.is_empty()
        });
    }

    /// The paths that are in both.
    pub(super) fn intersection(&self, other: &Set<'_>) -> Set<'a> {
        let both = |node: &Node<'a>| {
            let theirs = other.get(&node.step)?;
            let inner = node.inner.intersection(&theirs.inner);
            let both = Node { step: node.step.clone(), member: node.member && theirs.member, inner };
            (!both.is_empty()).then_some(both)
        };
        Set { nodes: self.nodes.iter().filter_map(both).collect() }
    }

    /// The paths that are in any of these.
    pub(super) fn union_of(mut sets: Vec<Set<'a>>) -> Set<'a> {
        // Two by two, or many small sets would be merged into a growing one again and again.
        while sets.len() > 1 {
            let half = sets.split_off(sets.len().div_ceil(2));
            for (set, other) in sets.iter_mut().zip(half) {
                set.union(other);
            }
        }
        sets.pop().unwrap_or_default()
    }

    /// Adds each struct field that has members inside. (Owners of a field are rarely listed as owners of the structs around it.)
    pub(super) fn with_structs(mut self, of: Type) -> Set<'a> {
        for node in &mut self.nodes {
            let below = match (&node.step, of.atom()) {
                (Step::Field(name), Atom::Fields(of)) => of.field(name).map(|field| {
                    node.member |= !node.inner.is_empty();
                    Type::of_field(field)
                }),
                (Step::Field(_), Atom::Entries(of)) | (Step::Key(_), Atom::Keyed { of, .. }) => Some(of),
                _ => None,
            };
            if let Some(below) = below {
                node.inner = std::mem::take(&mut node.inner).with_structs(below);
            }
        }
        self
    }

    /// Every path as text, those of one level before those inside.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.paths_under("", &mut out);
        out
    }

    fn paths_under(&self, prefix: &str, out: &mut Vec<String>) {
        out.extend(self.nodes.iter().filter(|node| node.member).map(|node| format!("{prefix}{}", node.step)));
        for node in &self.nodes {
            if !node.inner.is_empty() {
                node.inner.paths_under(&format!("{prefix}{}", node.step), out);
            }
        }
    }
}

impl Node<'_> {
    fn is_empty(&self) -> bool {
        !self.member && self.inner.is_empty()
    }
}

impl Ord for Step<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Step::Field(a), Step::Field(b)) => a.cmp(b),
            (Step::Key(a), Step::Key(b)) => cmp_keys(a, b),
            (Step::Item(a), Step::Item(b)) => cmp_values(a, b),
            (Step::Index(a), Step::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for Step<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Step<'_> {}

impl PartialEq for Step<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Step<'_> {
    fn rank(&self) -> u8 {
        match self {
            Step::Field(_) => 0,
            Step::Key(_) => 1,
            Step::Item(_) => 2,
            Step::Index(_) => 3,
        }
    }
}

/// As messages name it: `.name`, `[port=80,protocol="TCP"]`, `[="value"]`, `[0]`.
impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Key(keys) => {
                let keys: Vec<_> = keys.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(f, "[{}]", keys.join(","))
            }
            Step::Item(value) => write!(f, "[={}]", shown(value)),
            Step::Index(at) => write!(f, "[{at}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => golang::quote(text),
        other => other.to_string(),
    }
}

fn cmp_keys(a: &[(Cow<'_, str>, Cow<'_, Value>)], b: &[(Cow<'_, str>, Cow<'_, Value>)]) -> Ordering {
    let one_by_one = a.iter().zip(b).map(|(a, b)| a.0.cmp(&b.0).then_with(|| cmp_values(&a.1, &b.1)));
    one_by_one.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
}

/// Numbers before text before booleans before the rest; a total order over all JSON.
fn cmp_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => x.as_f64().unwrap_or_default().total_cmp(&y.as_f64().unwrap_or_default()),
        },
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (a, b) => value_rank(a).cmp(&value_rank(b)).then_with(|| match a {
            Value::Array(_) | Value::Object(_) => a.to_string().cmp(&b.to_string()),
            _ => Ordering::Equal,
        }),
    }
}

fn value_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
