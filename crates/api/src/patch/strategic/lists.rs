//! How lists merge in a strategic merge patch: element by element if the type gives a key, and in which order.

use std::collections::{HashMap, HashSet};

use crate::value::Value;

use super::{DIRECTIVE, Object, Place, Result, broken, merge_objects, plain, rejected, unknown_directive, wrong_type};
use crate::golang;

/// What the type says of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    /// What the elements are.
    pub(super) of: Place,
    /// Whether a patch adds to the list; otherwise it takes its place.
    pub(super) merges: bool,
    /// The field that tells elements apart; empty for plain values.
    pub(super) key: &'static str,
}

/// What the elements of a list are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Elements {
    Objects,
    Values,
}

impl List {
    /// A list in the patch meets a list in the object.
    pub(super) fn merge(self, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>> {
        if !self.merges {
            return Ok(new);
        }
        if old.is_empty() && new.is_empty() {
            return Ok(old);
        }
        let elements = elements(&old, &new)?;
        let (merged, new, order) = match elements {
            Elements::Values => (unique(&old, &new), new, old),
            Elements::Objects => self.merge_elements(old, new)?,
        };
        let (named, others) = self.split(merged, &new, elements)?;
        self.arrange(named, others, &new, &order, elements)
    }

    /// Takes plain values out of a list.
    pub(super) fn delete(self, old: Vec<Value>, gone: Vec<Value>) -> Result<Vec<Value>> {
        if old.is_empty() && gone.is_empty() {
            return Ok(old);
        }
        match elements(&old, &gone)? {
            Elements::Values => {
                let gone: HashSet<&Value> = gone.iter().collect();
                Ok(old.into_iter().filter(|value| !gone.contains(value)).collect())
            }
            Elements::Objects => List { merges: true, ..self }.merge(old, gone),
        }
    }

    /// Merges, and puts the elements of the result into the given order. `None` if there is neither list.
    pub(super) fn merge_ordered(
        self,
        old: Option<Vec<Value>>,
        new: Option<Vec<Value>>,
        order: &[Value],
    ) -> Result<Option<Vec<Value>>> {
        let (before, patch) = (old.clone().unwrap_or_default(), new.clone().unwrap_or_default());
        self.check_order(&patch, order)?;
        let merged = match (old, new) {
            (None, None) => return Ok(None),
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(plain).collect(),
            (Some(old), Some(new)) => self.merge(old, new)?,
        };
        let elements = elements(&before, &patch)?;
        if elements == Elements::Objects && self.key.is_empty() {
            return Err(self.keyless());
        }
        let (named, others) = self.split(merged, order, elements)?;
        self.arrange(named, others, order, &before, elements).map(Some)
    }

    fn keyless(self) -> crate::Failure {
        broken(format!("cannot merge lists without merge key for {}", self.of.kind()))
    }

    /// The patch must list its elements in the order it demands.
    fn check_order(self, patch: &[Value], order: &[Value]) -> Result<()> {
        if patch.is_empty() || order.is_empty() {
            return Ok(());
        }
        let mut left = patch.iter().filter(|item| item.get(DIRECTIVE).is_none()).peekable();
        for place in order {
            if let Some(item) = left.peek()
                && self.identity(item)? == self.identity(place)?
            {
                left.next();
            }
        }
        if left.peek().is_none() {
            return Ok(());
        }
        let shown = |list: &[Value]| golang::plain(&Value::Array(list.to_vec()));
        Err(broken(format!(
            "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
            shown(patch),
            shown(order)
        )))
    }

    /// What tells an element apart: its key, or the value itself.
    fn identity(self, item: &Value) -> Result<&Value> {
        if self.key.is_empty() {
            return Ok(item);
        }
        let Value::Object(map) = item else { return Err(wrong_type("map[string]interface {}", item)) };
        map.get(self.key).ok_or_else(|| self.no_key(map))
    }

    fn no_key(self, map: &Object) -> crate::Failure {
        let shown = golang::plain(&Value::Object(map.clone()));
        broken(format!("map: {shown} does not contain declared merge key: {}", self.key))
    }

    /// The merged elements, the patch without its directives, and the order of the elements the patch does not name.
    fn merge_elements(self, mut old: Vec<Value>, new: Vec<Value>) -> Result<(Vec<Value>, Vec<Value>, Vec<Value>)> {
        if self.key.is_empty() {
            return Err(self.keyless());
        }
        let mut patch = Vec::with_capacity(new.len());
        let mut gone = HashSet::new();
        let mut replaces = false;
        for item in new {
            let Value::Object(map) = &item else { return Err(wrong_type("map[string]interface {}", &item)) };
            match map.get(DIRECTIVE).map(Value::as_str) {
                None => patch.push(item),
                Some(Some("delete")) => {
                    gone.insert(map.get(self.key).ok_or_else(|| self.no_key(map))?.clone());
                }
                Some(Some("replace")) => replaces = true,
                Some(Some("merge")) => {
                    return Err(broken("merging lists cannot yet be specified in the patch".to_owned()));
                }
                Some(_) => return Err(unknown_directive(map)),
            }
        }
        if replaces {
            return Ok((patch.clone(), Vec::new(), patch));
        }
        old.retain(|known| known.get(self.key).is_none_or(|key| !gone.contains(key)));
        let merged = self.lay(old.clone(), &patch)?;
        Ok((merged, patch, old))
    }

    fn lay(self, mut old: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>> {
        let mut known: HashMap<Value, usize> = HashMap::new();
        for (at, item) in old.iter().enumerate() {
            if let Some(key) = item.get(self.key) {
                known.entry(key.clone()).or_insert(at);
            }
        }
        for item in patch {
            let Value::Object(map) = item else { continue };
            let key = map.get(self.key).ok_or_else(|| self.no_key(map))?;
            if let Some(at) = known.get(key) {
                let Value::Object(before) = old[*at].take() else { continue };
                old[*at] = Value::Object(merge_objects(self.of, before, map.clone())?);
            } else {
                known.insert(key.clone(), old.len());
                old.push(item.clone());
            }
        }
        Ok(old)
    }

    /// The elements that another list names, and those it does not.
    fn split(self, merged: Vec<Value>, by: &[Value], elements: Elements) -> Result<(Vec<Value>, Vec<Value>)> {
        if elements == Elements::Objects {
            merged.iter().try_for_each(|item| self.identity(item).map(drop))?;
        }
        let named = self.places(by, elements);
        Ok(merged.into_iter().partition(|item| named.contains_key(&self.name(item, elements))))
    }

    /// The named elements in the order of the patch; the others, in the order they had, before the first named element that
    /// they stood before.
    fn arrange(
        self,
        mut named: Vec<Value>,
        mut others: Vec<Value>,
        order: &[Value],
        before: &[Value],
        elements: Elements,
    ) -> Result<Vec<Value>> {
        if elements == Elements::Objects {
            named
                .iter()
                .chain(&others)
                .chain(order)
                .chain(before)
                .try_for_each(|item| self.identity(item).map(drop))?;
        }
        let (wanted, had) = (self.places(order, elements), self.places(before, elements));
        let at = |item: &Value, places: &Places<'_>| places.get(&self.name(item, elements)).copied();
        named.sort_by_cached_key(|item| at(item, &wanted));
        others.sort_by_cached_key(|item| at(item, &had));
        let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
        let mut out = Vec::with_capacity(named.len() + others.len());
        loop {
            let other_first = match (others.peek(), named.peek()) {
                (None, None) => return Ok(out),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(other), Some(name)) => {
                    matches!((at(other, &had), at(name, &had)), (Some(a), Some(b)) if a < b)
                }
            };
            out.extend(if other_first { others.next() } else { named.next() });
        }
    }

    /// Where the elements of a list stand, by what tells them apart.
    fn places(self, list: &[Value], elements: Elements) -> Places<'_> {
        let mut places = Places::new();
        for (at, item) in list.iter().enumerate() {
            places.entry(self.name(item, elements)).or_insert(at);
        }
        places
    }

    fn name(self, item: &Value, elements: Elements) -> Option<&Value> {
        match elements {
            Elements::Values => Some(item),
            Elements::Objects => item.get(self.key),
        }
    }
}

type Places<'v> = HashMap<Option<&'v Value>, usize>;

/// All elements of both lists must be of one type, and not lists.
fn elements(old: &[Value], new: &[Value]) -> Result<Elements> {
    let mut all = old.iter().chain(new);
    let Some(first) = all.next() else {
        return Err(broken("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(rejected());
    }
    let same = |item: &Value| match (first, item) {
        (Value::Number(a), Value::Number(b)) => a.is_f64() == b.is_f64(),
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    if !all.all(same) {
        let shown = [old, new].map(|list| golang::plain(&Value::Array(list.to_vec())));
        return Err(broken(format!("list element types are not identical: [{}]", shown.join(" "))));
    }
    Ok(if first.is_object() { Elements::Objects } else { Elements::Values })
}

fn unique(old: &[Value], new: &[Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    old.iter().chain(new).filter(|value| seen.insert(*value)).cloned().collect()
}
