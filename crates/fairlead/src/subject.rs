//! Which objects does somebody mean who types `svc/web`, `svc web`, `po` or `all`? Kinds are named in the plural, the singular, by
//! short names or categories, with a group (`events.events.k8s.io`) where one name is not enough.

use fairlead_api::{Kind, kinds};
use fairlead_cluster::Resource;
use thiserror::Error;

use near::nearest;
pub(crate) use near::similar;

mod near;
#[cfg(test)]
mod tests;

/// One object that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Its kind.
    pub(crate) resource: Resource,
    /// Its namespace, where the words said it: `svc/other/web`.
    pub(crate) namespace: Option<String>,
    /// Its name.
    pub(crate) name: String,
}

/// Everything that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All objects of these kinds.
    Kinds(Vec<Resource>),
    /// These objects.
    Objects(Vec<Subject>),
}

/// What is wrong with the words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Mistake {
    /// Nothing was said.
    #[error("say what: a KIND such as svc, or KIND/NAME such as svc/web")]
    Nothing,
    /// There is no such kind.
    #[error("there is no kind {word:?}{}", advice(.near))]
    UnknownKind {
        /// What was said.
        word: String,
        /// Kinds with names like it.
        near: Vec<String>,
    },
    /// `svc/`, `/web` or `a/b/c/d`.
    #[error("{0:?} names no object: want KIND/NAME or KIND NAME, such as svc/web")]
    Malformed(String),
    /// `svc po/web`.
    #[error("{kind:?} is a kind, and {with:?} has one of its own: say either KIND NAME… or KIND/NAME…")]
    Mixed {
        /// The kind.
        kind: String,
        /// What came after it.
        with: String,
    },
    /// A name without a kind, where any kind may be meant.
    #[error("{0:?} is a name without a kind: say KIND/NAME, such as svc/{0}")]
    NoKind(String),
    /// A kind without a name, where one object must be meant.
    #[error("which one of the {0}? Say its name, as in {1}/NAME")]
    NoName(String, String),
    /// Two objects where one must be meant.
    #[error("one at a time: {0:?} is one too many")]
    TooMany(String),
}

/// The kinds of Fairlead's own API server. A foreign one is asked what it has.
pub(crate) fn known() -> Vec<Resource> {
    kinds::KINDS.iter().map(|kind| Resource::of(kind)).collect()
}

/// What the words mean, as kubectl reads them: `KIND[,KIND] [NAME…]` or `KIND/NAME…`.
pub(crate) fn wanted<S: AsRef<str>>(words: &[S], known: &[Resource]) -> Result<Wanted, Mistake> {
    let (first, rest) = words.split_first().ok_or(Mistake::Nothing)?;
    if first.as_ref().contains('/') {
        let subjects = words.iter().map(|word| subject(word.as_ref(), known));
        return Ok(Wanted::Objects(subjects.collect::<Result<_, _>>()?));
    }
    let kinds = kinds_of(first.as_ref(), known)?;
    if rest.is_empty() {
        return Ok(Wanted::Kinds(kinds));
    }
    if let Some(word) = rest.iter().find(|word| word.as_ref().contains('/')) {
        return Err(Mistake::Mixed { kind: first.as_ref().to_owned(), with: word.as_ref().to_owned() });
    }
    let named = |resource: Resource| {
        rest.iter().map(move |name| Subject {
            resource: resource.clone(),
            namespace: None,
            name: name.as_ref().to_owned(),
        })
    };
    Ok(Wanted::Objects(kinds.into_iter().flat_map(named).collect()))
}

/// The one object the words mean; a name alone is one of kind `otherwise`.
pub(crate) fn one<S: AsRef<str>>(
    words: &[S],
    known: &[Resource],
    otherwise: Option<&Kind>,
) -> Result<Subject, Mistake> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words[..] {
        [] => Err(Mistake::Nothing),
        [whole] if whole.contains('/') => subject(whole, known),
        [name] => match (otherwise, find(name, known)) {
            (Some(kind), _) => Ok(Subject { resource: Resource::of(kind), namespace: None, name: name.to_owned() }),
            (None, Ok(resource)) => Err(Mistake::NoName(resource.name.clone(), name.to_owned())),
            (None, Err(_)) => Err(Mistake::NoKind(name.to_owned())),
        },
        [kind, name] if !kind.contains('/') => {
            if name.contains('/') {
                return Err(Mistake::Mixed { kind: kind.to_owned(), with: name.to_owned() });
            }
            Ok(Subject { resource: find(kind, known)?.clone(), namespace: None, name: name.to_owned() })
        }
        [_, more] | [_, _, more, ..] => Err(Mistake::TooMany(more.to_owned())),
    }
}

/// The kind of that name.
pub(crate) fn find<'a>(word: &str, known: &'a [Resource]) -> Result<&'a Resource, Mistake> {
    let lower = word.to_lowercase();
    let (name, group) = lower.split_once('.').map_or((&*lower, None), |(name, group)| (name, Some(group)));
    let named = |resource: &&Resource| is_named(resource, name) && group.is_none_or(|group| is_in(resource, group));
    let exact = known.iter().filter(named).find(|resource| resource.name == name);
    exact
        .or_else(|| known.iter().find(named))
        .ok_or_else(|| Mistake::UnknownKind { word: word.to_owned(), near: nearest(&lower, known) })
}

/// The kinds of `svc,po` or `all`, each once, in the order they are named.
fn kinds_of(words: &str, known: &[Resource]) -> Result<Vec<Resource>, Mistake> {
    let mut found: Vec<Resource> = Vec::new();
    for word in words.split(',') {
        let members: Vec<&Resource> =
            known.iter().filter(|one| one.categories.iter().any(|name| name == word)).collect();
        let meant = if members.is_empty() { vec![find(word, known)?] } else { members };
        for resource in meant {
            if !found.contains(resource) {
                found.push(resource.clone());
            }
        }
    }
    Ok(found)
}

/// `svc/web` or `svc/other/web`.
fn subject(word: &str, known: &[Resource]) -> Result<Subject, Mistake> {
    let parts: Vec<&str> = word.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, name] => (kind, None, name),
        [kind, namespace, name] => (kind, Some(namespace), name),
        _ => return Err(Mistake::Malformed(word.to_owned())),
    };
    if kind.is_empty() || name.is_empty() || namespace.is_some_and(str::is_empty) {
        return Err(Mistake::Malformed(word.to_owned()));
    }
    let resource = find(kind, known)?.clone();
    Ok(Subject { resource, namespace: namespace.map(str::to_owned), name: name.to_owned() })
}

fn is_named(resource: &Resource, name: &str) -> bool {
    let singular =
        if resource.singular.is_empty() { resource.kind_name.to_lowercase() } else { resource.singular.clone() };
    resource.name == name || singular == name || resource.short_names.iter().any(|short| short == name)
}

/// Whether a group is meant: `discovery.k8s.io`, the beginning of it, or with the version before it: `v1.discovery.k8s.io`.
fn is_in(resource: &Resource, group: &str) -> bool {
    let whole = group.strip_prefix(&format!("{}.", resource.version)).unwrap_or(group);
    let whole = if group == resource.version { "" } else { whole };
    resource.group == whole || (!whole.is_empty() && resource.group.starts_with(&format!("{whole}.")))
}

fn advice(near: &[String]) -> String {
    match near {
        [] => "; `fairlead get --help` tells which there are".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}
