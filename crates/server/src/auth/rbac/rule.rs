//! One rule of a role: what it allows, and whether it covers another rule.

use fairlead_api::value::{Value, json};
use fairlead_api::{Look, golang};

use super::{Attributes, Target};

/// A `PolicyRule` of a Role or ClusterRole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// What may be done; `*` is everything.
    pub verbs: Vec<String>,
    /// API groups, `""` for the core group.
    pub groups: Vec<String>,
    /// Resources: `pods`, `pods/status`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// Only objects of these names; empty means all.
    pub names: Vec<String>,
    /// Paths outside of the API groups; a trailing `*` stands for the rest.
    pub urls: Vec<String>,
}

impl Rule {
    /// Reads a rule out of a role.
    pub fn read(rule: &Value) -> Rule {
        let texts = |name| rule.texts(name).into_iter().map(str::to_owned).collect();
        Rule {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// Reads the `rules` of a role.
    pub fn read_all(role: &Value) -> Vec<Rule> {
        role.list("rules").iter().map(Rule::read).collect()
    }

    /// The rule as it stands in a role.
    pub fn json(&self) -> Value {
        let mut rule = json!({"verbs": self.verbs});
        let lists = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        for (field, list) in lists {
            if !list.is_empty() {
                rule[field] = json!(list);
            }
        }
        rule
    }

    /// Whether the rule allows a request.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.target {
            Target::Path(path) => self.urls.iter().any(|url| url_matches(url, path)),
            Target::Resource { group, resource, subresource, name, .. } => {
                has(&self.groups, group)
                    && self.resources.iter().any(|r| resource_matches(r, resource, subresource))
                    && (self.names.is_empty() || self.names.iter().any(|n| n == name))
            }
        }
    }

    /// Returns the number of rules that [`Rule::atoms`] makes.
    pub(super) fn atom_count(&self) -> usize {
        let objects = [self.groups.len(), self.resources.len(), self.names.len().max(1)];
        let things = objects.into_iter().fold(1, usize::saturating_mul).saturating_add(self.urls.len());
        things.saturating_mul(self.verbs.len())
    }

    /// The rule as rules with one verb and one thing each.
    pub(super) fn atoms(&self) -> Vec<Rule> {
        let one = |text: &String| vec![text.clone()];
        let mut atoms = Vec::new();
        for (group, resource) in self.groups.iter().flat_map(|g| self.resources.iter().map(move |r| (g, r))) {
            for verb in &self.verbs {
                let atom = Rule { verbs: one(verb), groups: one(group), resources: one(resource), ..Rule::default() };
                if self.names.is_empty() {
                    atoms.push(atom);
                    continue;
                }
                atoms.extend(self.names.iter().map(|name| Rule { names: one(name), ..atom.clone() }));
            }
        }
        for (url, verb) in self.urls.iter().flat_map(|u| self.verbs.iter().map(move |v| (u, v))) {
            atoms.push(Rule { verbs: one(verb), urls: one(url), ..Rule::default() });
        }
        atoms
    }

    /// Whether everything an atom allows is allowed by this rule.
    pub(super) fn covers(&self, atom: &Rule) -> bool {
        let all = |list: &[String], wanted: &[String]| wanted.iter().all(|w| has(list, w));
        if !all(&self.verbs, &atom.verbs) {
            return false;
        }
        if !atom.urls.is_empty() {
            return atom.urls.iter().all(|wanted| self.urls.iter().any(|url| url_matches(url, wanted)));
        }
        let named =
            self.names.is_empty() || (!atom.names.is_empty() && atom.names.iter().all(|n| self.names.contains(n)));
        named
            && all(&self.groups, &atom.groups)
            && atom.resources.iter().all(|wanted| {
                let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
                self.resources.iter().any(|r| resource_matches(r, resource, subresource))
            })
    }

    /// The rule in short, for messages: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
    pub(super) fn compact(&self) -> String {
        let lists = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> =
            lists.iter().filter(|(_, l)| !l.is_empty()).map(|(name, l)| format!("{name}:{}", quoted(l))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// A list of strings as Go's `%q` prints it: `["a" "b"]`.
pub(super) fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| golang::quote(text)).collect();
    format!("[{}]", texts.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    match rule.split_once('/') {
        None => subresource.is_empty() && rule == resource,
        Some((_, sub)) if subresource.is_empty() || sub != subresource => false,
        Some((main, _)) => main == "*" || main == resource,
    }
}

fn url_matches(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}
