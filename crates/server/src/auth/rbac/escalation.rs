//! Nobody may give away rights they do not have: the check before a role or binding is written.

use fairlead_api::status::Subject as About;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, golang};

use super::rule::quoted;
use super::{Attributes, GROUP, Policy, Rule, Target};
use crate::auth::User;

/// A write that is about to happen.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// What is written.
    pub kind: &'a Kind,
    /// The namespace of the URL, empty at the cluster scope.
    pub namespace: &'a str,
    /// The object as it shall be.
    pub object: &'a Value,
    /// The object before an update.
    pub old: Option<&'a Value>,
}

/// Whether a user may write this role or binding. Other kinds may always be written.
pub fn check(policy: &Policy, user: &User, write: &Write<'_>) -> Result<(), Failure> {
    let Write { kind, object, old, .. } = *write;
    if kind.group != GROUP || user.is_master() || old.is_some_and(|old| only_references_change(object, old)) {
        return Ok(());
    }
    let name = object.at("metadata").text("name");
    let refuse = |why: String| Failure::forbidden(About { group: GROUP, kind: kind.resource, name }, &why);
    match kind.kind {
        "Role" | "ClusterRole" => check_role(policy, user, write).map_err(refuse),
        "RoleBinding" | "ClusterRoleBinding" => check_binding(policy, user, write).map_err(|mistake| match mistake {
            Mistake::Escalation(why) => refuse(why),
            Mistake::NoRole(failure) => failure,
        }),
        _ => Ok(()),
    }
}

fn check_role(policy: &Policy, user: &User, write: &Write<'_>) -> Result<(), String> {
    let Write { kind, namespace, object, old } = *write;
    let name = object.at("metadata").text("name");
    let target = Target::Resource { group: GROUP, resource: kind.resource, subresource: "", namespace, name };
    if policy.authorize(user, &Attributes { verb: "escalate", target }).allowed() {
        return Ok(());
    }
    held(policy, user, namespace, &Rule::read_all(object))?;
    // An aggregating role can gather anything later on, so only those who may do everything may write one.
    if aggregates(object) || old.is_some_and(aggregates) {
        held(policy, user, namespace, &everything())
            .map_err(|_| "must have cluster-admin privileges to use the aggregationRule".to_owned())?;
    }
    Ok(())
}

enum Mistake {
    Escalation(String),
    NoRole(Failure),
}

fn check_binding(policy: &Policy, user: &User, write: &Write<'_>) -> Result<(), Mistake> {
    let Write { namespace, object, .. } = *write;
    let role = object.at("roleRef");
    let (kind, name) = (role.text("kind"), role.text("name"));
    let (resource, singular, rules) = match kind {
        "Role" => {
            ("roles", "role", policy.roles.get(&(namespace.to_owned(), name.to_owned())).map(|rules| rules.to_vec()))
        }
        "ClusterRole" => ("clusterroles", "clusterrole", policy.cluster_role_rules(name).map(<[Rule]>::to_vec)),
        // Validation refuses other kinds with a better message.
        _ => return Ok(()),
    };
    let target = Target::Resource { group: role.text("apiGroup"), resource, subresource: "", namespace, name };
    if policy.authorize(user, &Attributes { verb: "bind", target }).allowed() {
        return Ok(());
    }
    let Some(rules) = rules else {
        return Err(Mistake::NoRole(Failure::not_found(About { group: GROUP, kind: singular, name })));
    };
    held(policy, user, namespace, &rules).map_err(Mistake::Escalation)
}

/// Maximum number of rights of one verb and one thing each in a role that is compared with the
/// rights of its writer. They are the product of the lists of a rule: four lists of 1,000 words
/// make 10^12.
const MAX_ATOMS: usize = 10_000;
/// Maximum number of missing rights that a message lists.
const MAX_MISSING: usize = 500;

/// Whether a user has every right that rules give.
fn held(policy: &Policy, user: &User, namespace: &str, wanted: &[Rule]) -> Result<(), String> {
    let atoms = wanted.iter().fold(0_usize, |sum, rule| sum.saturating_add(rule.atom_count()));
    if atoms > MAX_ATOMS {
        return Err(format!(
            "its rules combine to {atoms} rights of one verb and one resource each, and at most {MAX_ATOMS} are compared with \
             those of user {}: use several roles",
            golang::quote(&user.name)
        ));
    }
    let (own, broken) = policy.rules_for(user, namespace);
    let atoms = wanted.iter().flat_map(Rule::atoms);
    let missing: Vec<Rule> = atoms.filter(|a| !own.iter().any(|o| o.covers(a))).take(MAX_MISSING).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<String> = merge_verbs(missing).iter().map(Rule::compact).collect();
    lines.sort();
    lines.dedup();
    let mut message = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        golang::quote(&user.name),
        quoted(&user.groups),
        lines.join("\n")
    );
    if !broken.is_empty() {
        message.push_str(&format!("; resolution errors: [{}]", super::listed(&broken)));
    }
    Err(message)
}

/// Atoms that differ only in their verb, as one rule.
fn merge_verbs(atoms: Vec<Rule>) -> Vec<Rule> {
    let mut merged: Vec<Rule> = Vec::new();
    for atom in atoms {
        let same = |rule: &&mut Rule| {
            atom.urls.is_empty()
                && rule.groups == atom.groups
                && rule.resources == atom.resources
                && rule.names == atom.names
        };
        match merged.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => merged.push(atom),
        }
    }
    merged
}

fn aggregates(role: &Value) -> bool {
    !role.at("aggregationRule").list("clusterRoleSelectors").is_empty()
}

fn everything() -> Vec<Rule> {
    let any = || vec!["*".to_owned()];
    vec![
        Rule { verbs: any(), groups: any(), resources: any(), ..Rule::default() },
        Rule { verbs: any(), urls: any(), ..Rule::default() },
    ]
}

/// Whether an update changes only what the garbage collector changes.
fn only_references_change(object: &Value, old: &Value) -> bool {
    let stripped = |value: &Value| {
        let mut value = value.clone();
        for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            value.map_mut("metadata").shift_remove(field);
        }
        value
    };
    stripped(object) == stripped(old)
}
