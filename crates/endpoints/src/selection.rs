//! Which Services select a Pod, without looking at all of them: every Service is kept under one pair of its selector,
//! and a Pod looks under each of its own labels.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fairlead_api::view::Service;

/// An index of Services by what they select.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    namespaces: HashMap<String, Namespace>,
}

type Labels = BTreeMap<String, String>;

/// The Services of a namespace that have a selector.
#[derive(Debug, Clone, Default)]
struct Namespace {
    selectors: HashMap<String, Labels>,
    /// Label key, then value, then names of Services kept under that pair.
    by_pair: HashMap<String, HashMap<String, BTreeSet<String>>>,
}

impl Selection {
    /// Takes a Service in, or what it is now. One without selector selects nothing. Returns whether it selects otherwise than
    /// before.
    pub fn apply(&mut self, service: &Service) -> bool {
        let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
        let known = self.namespaces.get(namespace).and_then(|inside| inside.selectors.get(name));
        if known.map_or(service.spec.selector.is_empty(), |known| *known == service.spec.selector) {
            return false;
        }
        self.remove(namespace, name);
        if !service.spec.selector.is_empty() {
            self.namespaces.entry(namespace.clone()).or_default().insert(name, &service.spec.selector);
        }
        true
    }

    /// Forgets a Service.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        let Some(inside) = self.namespaces.get_mut(namespace) else {
            return;
        };
        inside.remove(name);
        if inside.selectors.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// Names of the Services that select a Pod with these labels, sorted.
    pub fn services_of(&self, namespace: &str, labels: &Labels) -> BTreeSet<&str> {
        let Some(inside) = self.namespaces.get(namespace) else {
            return BTreeSet::new();
        };
        labels
            .iter()
            .filter_map(|(key, value)| inside.by_pair.get(key)?.get(value))
            .flatten()
            .filter(|name| inside.selectors.get(*name).is_some_and(|selector| matches(selector, labels)))
            .map(String::as_str)
            .collect()
    }
}

impl Namespace {
    fn insert(&mut self, name: &str, selector: &Labels) {
        // The pair with the fewest Services tells most: `app=web` rather than `tier=front`, which many share.
        let pair = selector.iter().min_by_key(|(key, value)| self.crowd(key, value));
        if let Some((key, value)) = pair {
            let names = self.by_pair.entry(key.clone()).or_default().entry(value.clone()).or_default();
            names.insert(name.to_owned());
        }
        self.selectors.insert(name.to_owned(), selector.clone());
    }

    fn remove(&mut self, name: &str) {
        for (key, value) in self.selectors.remove(name).unwrap_or_default() {
            let Some(values) = self.by_pair.get_mut(&key) else { continue };
            let Some(names) = values.get_mut(&value) else { continue };
            names.remove(name);
            if names.is_empty() {
                values.remove(&value);
            }
            if values.is_empty() {
                self.by_pair.remove(&key);
            }
        }
    }

    fn crowd(&self, key: &str, value: &str) -> usize {
        self.by_pair.get(key).and_then(|values| values.get(value)).map_or(0, BTreeSet::len)
    }
}

fn matches(selector: &Labels, labels: &Labels) -> bool {
    selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests;
