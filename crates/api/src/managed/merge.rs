//! Laying a configuration over a live object, and taking fields out of an object, both as the type says.

use crate::value::{Map, Value};

use super::set::{Set, Step};
use super::types::{Atom, Type, element, steps};

/// The live value with everything the configuration names set to the configuration's values. Nothing is removed.
pub(super) fn merge(of: Type, live: &Value, config: &Value) -> Value {
    let atom = of.atom();
    match (atom, live, config) {
        (Atom::Fields(_) | Atom::Entries(_), Value::Object(live), Value::Object(config)) => {
            Value::Object(merge_maps(atom, live, config))
        }
        (Atom::Items | Atom::Keyed { .. }, Value::Array(live), Value::Array(config)) => {
            Value::Array(merge_lists(atom, live, config))
        }
        // Naming a struct, map or list without content says nothing about what it holds.
        (Atom::Fields(_) | Atom::Entries(_), Value::Object(map), Value::Null) if !map.is_empty() => live.clone(),
        (Atom::Items | Atom::Keyed { .. }, Value::Array(list), Value::Null) if !list.is_empty() => live.clone(),
        _ => config.clone(),
    }
}

/// Takes the paths of a set out of a value. What ends without content becomes null.
pub(super) fn remove(of: Type, value: &mut Value, set: &Set<'_>) {
    let atom = of.atom();
    let empty = match (atom, &mut *value) {
        (Atom::Fields(_) | Atom::Entries(_), Value::Object(map)) => remove_entries(atom, map, set),
        (Atom::Items | Atom::Keyed { .. }, Value::Array(list)) => remove_elements(atom, list, set),
        (_, other) => other.is_array() || other.is_object(),
    };
    if empty {
        *value = Value::Null;
    }
}

fn child(atom: Atom, name: &str) -> Option<Type> {
    match atom {
        Atom::Fields(of) => of.field(name).map(Type::of_field),
        Atom::Entries(of) => Some(of),
        _ => None,
    }
}

fn merge_maps(atom: Atom, live: &Map, config: &Map) -> Map {
    let mut out = live.clone();
    for (name, new) in config {
        let merged = match (out.get(name), child(atom, name)) {
            (Some(old), Some(of)) => merge(of, old, new),
            _ => new.clone(),
        };
        out.insert(name.clone(), merged);
    }
    out
}

/// Elements that both lists have come in the configuration's order; those only the live list has stay where they are
/// among them.
fn merge_lists(atom: Atom, live: &[Value], config: &[Value]) -> Vec<Value> {
    let of = element(atom);
    let live = steps(atom, live).unwrap_or_default();
    let config = steps(atom, config).unwrap_or_default();
    let in_config = positions(&live, &config);
    let in_live = positions(&config, &live);
    let take = |at: usize| match in_live[at] {
        Place::Once(old) => merge(of, live[old].1, config[at].1),
        _ => config[at].1.clone(),
    };
    let mut shared = (0..config.len()).filter(|at| in_live[*at] != Place::Nowhere).peekable();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let (mut l, mut c) = (0, 0);
    while l < live.len() || c < config.len() {
        if l < live.len() {
            match in_config[l] {
                Place::Nowhere => {
                    out.push(live[l].1.clone());
                    l += 1;
                    continue;
                }
                // Another shared element comes first: this one is taken when the configuration gets to it.
                Place::Once(at) | Place::Twice(at)
                    if c < config.len() && at != c && shared.peek().is_some_and(|next| *next != at) =>
                {
                    l += 1;
                    continue;
                }
                Place::Once(at) | Place::Twice(at) => l += usize::from(at <= c),
            }
        }
        if c < config.len() {
            out.push(take(c));
            shared.next_if_eq(&c);
            c += 1;
        }
    }
    out
}

/// Where an element stands in another list; elements that are there twice are never merged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    Once(usize),
    Twice(usize),
}

fn positions(of: &[(Step<'_>, &Value)], among: &[(Step<'_>, &Value)]) -> Vec<Place> {
    let mut order: Vec<usize> = (0..among.len()).collect();
    order.sort_by(|a, b| among[*a].0.cmp(&among[*b].0));
    let place = |step: &Step<'_>| {
        let first = order.partition_point(|at| among[*at].0 < *step);
        let mut same = order[first..].iter().take_while(|at| among[**at].0 == *step);
        match (same.next(), same.next()) {
            (Some(at), None) => Place::Once(*at),
            (Some(at), Some(_)) => Place::Twice(*at),
            _ => Place::Nowhere,
        }
    };
    of.iter().map(|(step, _)| place(step)).collect()
}

fn remove_entries(atom: Atom, map: &mut Map, set: &Set<'_>) -> bool {
    map.retain(|name, value| {
        let Some(node) = set.get(&Step::Field(name.as_str().into())) else { return true };
        if !node.member
            && let Some(of) = child(atom, name)
        {
            remove(of, value, &node.inner);
        }
        !node.member
    });
    map.is_empty()
}

fn remove_elements(atom: Atom, list: &mut Vec<Value>, set: &Set<'_>) -> bool {
    let of = element(atom);
    let mut kept = Vec::with_capacity(list.len());
    for (step, item) in steps(atom, list).unwrap_or_default() {
        match set.get(&step) {
            Some(node) if node.member => {}
            Some(node) => {
                let mut item = item.clone();
                remove(of, &mut item, &node.inner);
                kept.push(item);
            }
            None => kept.push(item.clone()),
        }
    }
    *list = kept;
    list.is_empty()
}
