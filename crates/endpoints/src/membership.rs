//! Which Pods each Service selects, kept up as Pods and Services change, so that a change of one Pod costs the same however
//! many Services and Pods there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fairlead_api::view::{Pod, Service};

use crate::Selection;

/// Pods and the Services that select them, by name, in every namespace.
#[derive(Debug, Clone, Default)]
pub struct Membership {
    selection: Selection,
    namespaces: HashMap<String, Namespace>,
}

type Names = BTreeSet<String>;

/// Only Pods that are selected and Services that select are here.
#[derive(Debug, Clone, Default)]
struct Namespace {
    by_service: HashMap<String, Names>,
    by_pod: HashMap<String, Names>,
}

impl Membership {
    /// Takes in a Pod as it is now. Returns the Services this concerns: those that select it, and those that did.
    pub fn apply_pod(&mut self, pod: &Pod) -> BTreeSet<String> {
        let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
        let now = self.selection.services_of(namespace, &pod.metadata.labels);
        let before = self.namespaces.get(namespace).and_then(|inside| inside.by_pod.get(name));
        if before.is_some_and(|before| before.iter().map(String::as_str).eq(now.iter().copied())) {
            return before.cloned().unwrap_or_default();
        }
        let now: Names = now.into_iter().map(str::to_owned).collect();
        let mut concerned = self.remove_pod(namespace, name);
        if !now.is_empty() {
            let inside = self.namespaces.entry(namespace.clone()).or_default();
            now.iter().for_each(|service| inside.join(service, name));
            concerned.extend(now);
        }
        concerned
    }

    /// Forgets a Pod. Returns the Services that selected it.
    pub fn remove_pod(&mut self, namespace: &str, name: &str) -> BTreeSet<String> {
        let services = self.namespaces.get(namespace).and_then(|inside| inside.by_pod.get(name)).cloned();
        let services = services.unwrap_or_default();
        services.iter().for_each(|service| self.part(namespace, service, name));
        services
    }

    /// Takes in a Service as it is now. All Pods of its namespace are looked at only if its selector is another.
    pub fn apply_service<'a>(&mut self, service: &Service, pods: impl IntoIterator<Item = &'a Pod>) {
        let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
        if !self.selection.apply(service) {
            return;
        }
        self.forget(namespace, name);
        let mut selected = pods.into_iter().filter(|pod| service.selects(&pod.metadata.labels)).peekable();
        if selected.peek().is_some() {
            let inside = self.namespaces.entry(namespace.clone()).or_default();
            selected.for_each(|pod| inside.join(name, &pod.metadata.name));
        }
    }

    /// Forgets a Service.
    pub fn remove_service(&mut self, namespace: &str, name: &str) {
        self.selection.remove(namespace, name);
        self.forget(namespace, name);
    }

    /// Names of the Pods a Service selects, sorted.
    pub fn pods_of(&self, namespace: &str, service: &str) -> impl Iterator<Item = &str> {
        let pods = self.namespaces.get(namespace).and_then(|inside| inside.by_service.get(service));
        pods.into_iter().flatten().map(String::as_str)
    }

    /// Names of the Services that select a Pod with these labels, whether it was taken in or not.
    pub fn services_of(&self, namespace: &str, labels: &BTreeMap<String, String>) -> BTreeSet<&str> {
        self.selection.services_of(namespace, labels)
    }

    fn forget(&mut self, namespace: &str, service: &str) {
        let pods = self.namespaces.get(namespace).and_then(|inside| inside.by_service.get(service)).cloned();
        pods.unwrap_or_default().iter().for_each(|pod| self.part(namespace, service, pod));
    }

    fn part(&mut self, namespace: &str, service: &str, pod: &str) {
        let Some(inside) = self.namespaces.get_mut(namespace) else {
            return;
        };
        take(&mut inside.by_service, service, pod);
        take(&mut inside.by_pod, pod, service);
        if inside.by_service.is_empty() {
            self.namespaces.remove(namespace);
        }
    }
}

impl Namespace {
    fn join(&mut self, service: &str, pod: &str) {
        self.by_service.entry(service.to_owned()).or_default().insert(pod.to_owned());
        self.by_pod.entry(pod.to_owned()).or_default().insert(service.to_owned());
    }
}

fn take(map: &mut HashMap<String, Names>, key: &str, name: &str) {
    let Some(names) = map.get_mut(key) else {
        return;
    };
    names.remove(name);
    if names.is_empty() {
        map.remove(key);
    }
}

#[cfg(test)]
mod tests;
