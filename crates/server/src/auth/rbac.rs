//! Who may do what: Roles, ClusterRoles and their bindings as an index, and the question "may this user do this?".
//!
//! Roles only ever allow, so a denial means that no rule was found; its reason names bindings that point nowhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fairlead_api::status::Subject as About;
use fairlead_api::value::{Map, Value, json};
use fairlead_api::{Failure, Kind, Look, golang};

use super::{SERVICE_ACCOUNT_PREFIX, User};
use aggregation::Aggregation;
pub use rule::Rule;

mod aggregation;
pub mod builtin;
pub mod escalation;
mod rule;
#[cfg(test)]
mod tests;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
/// Members may do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";

/// What a request wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `impersonate`; the lower-case HTTP method for paths.
    pub verb: &'a str,
    /// With what.
    pub target: Target<'a>,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// An API object or a collection; what does not apply is empty.
    Resource {
        /// The API group.
        group: &'a str,
        /// `services`.
        resource: &'a str,
        /// `status`.
        subresource: &'a str,
        /// Empty at the cluster scope.
        namespace: &'a str,
        /// Empty for collections.
        name: &'a str,
    },
    /// A path outside of the API groups, as `/metrics`.
    Path(&'a str),
}

impl Target<'_> {
    fn namespace(&self) -> &str {
        match self {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        }
    }
}

/// Whether a request may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow {
        /// Which binding allows it, for the audit log; may be empty.
        reason: String,
    },
    /// It may not.
    Deny {
        /// What may be wrong with the roles; mostly empty.
        reason: String,
    },
}

impl Decision {
    /// Whether the request may go on.
    pub fn allowed(&self) -> bool {
        matches!(self, Decision::Allow { .. })
    }
}

/// All roles and bindings.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// By namespace and name.
    roles: HashMap<Place, Arc<[Rule]>>,
    cluster_roles: BTreeMap<String, ClusterRole>,
    /// By namespace (empty for ClusterRoleBindings) and name.
    bindings: BTreeMap<Place, Arc<Binding>>,
    /// Which bindings name a subject.
    subjects: HashMap<Subject, BTreeSet<Place>>,
}

type Place = (String, String);

#[derive(Debug, Clone)]
struct ClusterRole {
    labels: Map,
    own: Arc<[Rule]>,
    aggregation: Option<Aggregation>,
    /// What the role allows in the end: its own rules, or the collected ones.
    rules: Arc<[Rule]>,
}

#[derive(Debug, Clone)]
struct Binding {
    role: RoleRef,
    subjects: Vec<(Subject, String)>,
}

/// Which role a binding gives.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RoleRef {
    kind: String,
    name: String,
}

/// A service account is the user of its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Subject {
    User(String),
    Group(String),
}

impl Policy {
    /// The index of many objects; kinds that are not roles or bindings are passed over.
    pub fn build<'a>(objects: impl IntoIterator<Item = (&'a Kind, &'a Value)>) -> Policy {
        let mut policy = Policy::default();
        for (kind, object) in objects {
            policy.put(kind, object);
        }
        policy.aggregate();
        policy
    }

    /// A role or binding was written.
    pub fn apply(&mut self, kind: &Kind, object: &Value) {
        self.put(kind, object);
        if kind.kind == "ClusterRole" {
            self.aggregate();
        }
    }

    /// A role or binding was deleted. `namespace` is empty for the cluster's.
    pub fn remove(&mut self, kind: &Kind, namespace: &str, name: &str) {
        let place = (namespace.to_owned(), name.to_owned());
        match (kind.group, kind.kind) {
            (GROUP, "Role") => drop(self.roles.remove(&place)),
            (GROUP, "ClusterRole") => {
                self.cluster_roles.remove(name);
                self.aggregate();
            }
            (GROUP, "RoleBinding" | "ClusterRoleBinding") => self.unbind(&place),
            _ => {}
        }
    }

    /// Whether a user may do something.
    pub fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.is_master() {
            return Decision::Allow { reason: String::new() };
        }
        let mut broken = Vec::new();
        for (place, binding) in self.bindings_of(user, attributes.target.namespace()) {
            match self.resolve(&binding.role, &place.0) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Decision::Allow { reason: allowed_by(place, binding, user) };
                }
                Ok(_) => {}
                Err(why) => broken.push(why),
            }
        }
        Decision::Deny { reason: if broken.is_empty() { String::new() } else { format!("RBAC: {}", listed(&broken)) } }
    }

    /// Every rule that holds for a user in a namespace (empty: at the cluster scope), and what could not be found.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<String>) {
        let (mut rules, mut broken) = (Vec::new(), Vec::new());
        for (place, binding) in self.bindings_of(user, namespace) {
            match self.resolve(&binding.role, &place.0) {
                Ok(found) => rules.extend(found.iter().cloned()),
                Err(why) => broken.push(why),
            }
        }
        (rules, broken)
    }

    /// The `status` of a SelfSubjectRulesReview.
    pub fn rules_review(&self, user: &User, namespace: &str) -> Value {
        let (rules, broken) = self.rules_for(user, namespace);
        let resource: Vec<Value> = rules
            .iter()
            .filter(|r| !r.resources.is_empty())
            .map(|r| Rule { urls: vec![], ..r.clone() }.json())
            .collect();
        let paths: Vec<Value> = rules
            .iter()
            .filter(|r| !r.urls.is_empty())
            .map(|r| json!({"verbs": r.verbs, "nonResourceURLs": r.urls}))
            .collect();
        let mut status = json!({"resourceRules": resource, "nonResourceRules": paths, "incomplete": false});
        if !broken.is_empty() {
            status["evaluationError"] = listed(&broken).into();
        }
        status
    }

    /// What a ClusterRole allows in the end; for one with an aggregationRule the rules of the roles it selects.
    pub fn cluster_role_rules(&self, name: &str) -> Option<&[Rule]> {
        self.cluster_roles.get(name).map(|role| &*role.rules)
    }

    /// The rules a `roleRef` stands for, in the namespace of its binding.
    fn resolve(&self, role: &RoleRef, namespace: &str) -> Result<&[Rule], String> {
        let found = match role.kind.as_str() {
            "Role" => self.roles.get(&(namespace.to_owned(), role.name.clone())).map(|rules| &**rules),
            "ClusterRole" => self.cluster_role_rules(&role.name),
            other => return Err(format!("unsupported role reference kind: {}", golang::quote(other))),
        };
        found.ok_or_else(|| format!("{}.{GROUP} {} not found", role.kind.to_lowercase(), golang::quote(&role.name)))
    }

    /// The bindings of a user that hold in a namespace: those of the cluster first.
    fn bindings_of(&self, user: &User, namespace: &str) -> impl Iterator<Item = (&Place, &Binding)> {
        let groups = user.groups.iter().map(|group| Subject::Group(group.clone()));
        let mut places = BTreeSet::new();
        for subject in groups.chain([Subject::User(user.name.clone())]) {
            let Some(bound) = self.subjects.get(&subject) else { continue };
            // A group may be bound in thousands of namespaces: only two are looked at.
            for scope in ["", namespace] {
                let from = (scope.to_owned(), String::new());
                places.extend(bound.range(from..).take_while(|(found, _)| found == scope));
            }
        }
        places.into_iter().filter_map(|place| self.bindings.get(place).map(|binding| (place, &**binding)))
    }

    fn put(&mut self, kind: &Kind, object: &Value) {
        let meta = object.at("metadata");
        let place = (meta.text("namespace").to_owned(), meta.text("name").to_owned());
        match (kind.group, kind.kind) {
            (GROUP, "Role") => drop(self.roles.insert(place, Rule::read_all(object).into())),
            (GROUP, "ClusterRole") => drop(self.cluster_roles.insert(place.1, ClusterRole::read(object))),
            (GROUP, "RoleBinding" | "ClusterRoleBinding") => self.bind(place, Binding::read(object)),
            _ => {}
        }
    }

    fn bind(&mut self, place: Place, binding: Binding) {
        self.unbind(&place);
        for (subject, _) in &binding.subjects {
            self.subjects.entry(subject.clone()).or_default().insert(place.clone());
        }
        self.bindings.insert(place, Arc::new(binding));
    }

    fn unbind(&mut self, place: &Place) {
        let Some(old) = self.bindings.remove(place) else { return };
        for (subject, _) in &old.subjects {
            if let Some(places) = self.subjects.get_mut(subject) {
                places.remove(place);
                if places.is_empty() {
                    self.subjects.remove(subject);
                }
            }
        }
    }
}

impl ClusterRole {
    fn read(object: &Value) -> ClusterRole {
        let own: Arc<[Rule]> = Rule::read_all(object).into();
        ClusterRole {
            labels: object.at("metadata").map("labels").cloned().unwrap_or_default(),
            aggregation: Aggregation::read(object),
            rules: own.clone(),
            own,
        }
    }
}

impl Binding {
    fn read(object: &Value) -> Binding {
        let role = object.at("roleRef");
        let namespace = object.at("metadata").text("namespace");
        Binding {
            role: RoleRef { kind: role.text("kind").to_owned(), name: role.text("name").to_owned() },
            subjects: object.list("subjects").iter().filter_map(|s| read_subject(s, namespace)).collect(),
        }
    }
}

/// A subject and how messages describe it.
fn read_subject(subject: &Value, binding_namespace: &str) -> Option<(Subject, String)> {
    let (kind, name) = (subject.text("kind"), subject.text("name"));
    let described = |name: &str| format!("{kind} {}", golang::quote(name));
    match kind {
        "User" => Some((Subject::User(name.to_owned()), described(name))),
        "Group" => Some((Subject::Group(name.to_owned()), described(name))),
        "ServiceAccount" => {
            let namespace = Some(subject.text("namespace")).filter(|n| !n.is_empty()).unwrap_or(binding_namespace);
            if namespace.is_empty() {
                return None;
            }
            let user = format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}");
            Some((Subject::User(user), described(&format!("{name}/{namespace}"))))
        }
        _ => None,
    }
}

fn allowed_by((namespace, name): &Place, binding: &Binding, user: &User) -> String {
    let (kind, name) = match namespace.as_str() {
        "" => ("ClusterRoleBinding", name.clone()),
        _ => ("RoleBinding", format!("{name}/{namespace}")),
    };
    let subject = binding.subjects.iter().find(|(subject, _)| match subject {
        Subject::User(name) => *name == user.name,
        Subject::Group(name) => user.groups.contains(name),
    });
    format!(
        "RBAC: allowed by {kind} {} of {} {} to {}",
        golang::quote(&name),
        binding.role.kind,
        golang::quote(&binding.role.name),
        subject.map_or("", |(_, text)| text)
    )
}

/// Several messages as one: `a`, `[a, b]`; each only once.
fn listed(messages: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for message in messages {
        if !seen.contains(&message.as_str()) {
            seen.push(message);
        }
    }
    if seen.len() == 1 { seen[0].to_owned() } else { format!("[{}]", seen.join(", ")) }
}

/// The 403 a denied request gets.
pub fn forbidden(user: &User, attributes: &Attributes<'_>, reason: &str) -> Failure {
    let mut why = refusal(user, attributes).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    match attributes.target {
        Target::Path(_) => Failure::new(403, "Forbidden", format!("forbidden: {why}")).with(Map::new()),
        Target::Resource { group, resource, name, .. } => {
            let mut failure = Failure::forbidden(About { group, kind: resource, name }, &why);
            if name.is_empty() {
                let dot = if group.is_empty() { "" } else { "." };
                failure.message = format!("{resource}{dot}{group} is forbidden: {why}");
            }
            failure
        }
    }
}

fn refusal(user: &User, attributes: &Attributes<'_>) -> String {
    let (user, verb) = (golang::quote(&user.name), attributes.verb);
    match attributes.target {
        Target::Path(path) => format!("User {user} cannot {verb} path {}", golang::quote(path)),
        Target::Resource { group, resource, subresource, namespace, .. } => {
            let resource =
                if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
            let scope = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", golang::quote(namespace)),
            };
            let (resource, group) = (golang::quote(&resource), golang::quote(group));
            format!("User {user} cannot {verb} resource {resource} in API group {group} {scope}")
        }
    }
}
