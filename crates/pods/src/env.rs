//! Which environment variables a container has: its own, in the order it lists them, then those of Services. Pure: whatever
//! must be read from the API is handed in.
//!
//! ```text
//! envFrom --> env, $(VAR) replaced by what stands before it or by a Service's --> Services' variables nobody has set
//! ```

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairlead_api::Look;
use fairlead_api::view::Service;
use serde_json::Value;

pub use expansion::expand;

mod downward;
mod expansion;
mod services;
#[cfg(test)]
mod tests;

/// The reason of a waiting container whose environment cannot be made.
pub const CONFIG_ERROR: &str = "CreateContainerConfigError";
/// The longest variable or argument, with its name, that the kernel hands to a program (`MAX_ARG_STRLEN`).
pub const MAX_LENGTH: usize = 128 << 10;
/// More variables of Services than this deserve a word: programs get slow to start, and the kernel's bound comes near.
const MANY: usize = 1000;
/// The same in bytes.
const MUCH: usize = 64 << 10;

/// What an environment is made from.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// The Pod.
    pub pod: &'a Value,
    /// Its container, one of `spec.containers` or `spec.initContainers`.
    pub container: &'a Value,
    /// All Services there are, or at least those of the Pod's namespace and `default/kubernetes`.
    pub services: &'a [&'a Service],
    /// ConfigMaps of the Pod's namespace by name, as far as [`references`] names them and they exist.
    pub config_maps: &'a BTreeMap<String, Value>,
    /// Secrets of the Pod's namespace by name, likewise.
    pub secrets: &'a BTreeMap<String, Value>,
    /// The Pod's addresses, the first first.
    pub pod_ips: &'a [String],
    /// The Node's addresses, the first first.
    pub host_ips: &'a [String],
    /// `status.allocatable` of the Node: what a container without limits has.
    pub allocatable: &'a Value,
}

/// The environment of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Names and values; no name is there twice.
    pub variables: Vec<(String, String)>,
    /// What is worth saying.
    pub notes: Vec<Note>,
}

/// Something that works, but may surprise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// Services have given the container a great many variables.
    #[error(
        "{count} environment variables ({bytes} bytes) come from Services; enableServiceLinks: false leaves them out, \
         and DNS finds the Services all the same"
    )]
    ManyServiceVariables {
        /// How many.
        count: usize,
        /// How long they are together.
        bytes: usize,
    },
    /// A variable with a name no program can be given.
    #[error("the variable {0:?} is left out: it cannot be handed to a program")]
    Unusable(String),
}

/// Why a container has no environment and cannot start, in the kubelet's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// An object is missing.
    #[error("{kind} \"{name}\" not found")]
    NoObject {
        /// `configmap` or `secret`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A key of an object is missing.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        /// The Pod's namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// A fieldRef or resourceFieldRef that means nothing.
    #[error("{0}")]
    Field(String),
    /// A value that no program can be given.
    #[error("the value of the variable {name} {why}")]
    Value {
        /// The variable.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// The objects of the Pod's namespace that a container's variables come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// ConfigMaps.
    pub config_maps: BTreeSet<String>,
    /// Secrets.
    pub secrets: BTreeSet<String>,
}

/// Which objects must be read before [`of`] can be called.
pub fn references(container: &Value) -> References {
    let mut found = References::default();
    let mut note = |from: &Value, config_map: &str, secret: &str| {
        let name = |reference: &str| from.map(reference).map(|_| from.at(reference).text("name").to_owned());
        found.config_maps.extend(name(config_map));
        found.secrets.extend(name(secret));
    };
    container.list("envFrom").iter().for_each(|from| note(from, "configMapRef", "secretRef"));
    container.list("env").iter().for_each(|env| note(env.at("valueFrom"), "configMapKeyRef", "secretKeyRef"));
    found
}

/// The environment of a container.
pub fn of(given: &Given<'_>) -> Result<Environment, Mistake> {
    let links = services::variables(given.pod, given.services);
    let mut own = Own::default();
    for from in given.container.list("envFrom") {
        own.add_all(given, from)?;
    }
    for variable in given.container.list("env") {
        let name = variable.text("name");
        if let Some(value) = value(given, variable, &own, &links)? {
            own.set(name, value)?;
        }
    }
    let notes = own.notes.into_iter().chain(many(&links)).collect();
    let mut variables = own.variables;
    variables.extend(links.in_order.into_iter().filter(|(name, _)| !own.places.contains_key(name)));
    Ok(Environment { variables, notes })
}

impl Environment {
    /// Returns a `subPathExpr` with `$(VAR)` replaced. A variable that the container does not have
    /// is an error, in the kubelet's words (pkg/kubelet/container/helpers.go,
    /// ExpandContainerVolumeMounts).
    pub fn expand_all(&self, text: &str) -> Result<String, String> {
        let missing = Cell::new(None);
        let expanded = expand(text, |name| {
            let value = self.value(name);
            if value.is_none() {
                missing.set(Some(format!("missing value for {name:?}")));
            }
            value
        });
        match missing.into_inner() {
            Some(missing) => Err(missing),
            None => expanded.ok_or_else(|| format!("subPathExpr {TOO_LONG}")),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A text of a container's `command` or `args` with `$(VAR)` replaced. `None`: it has become longer than the kernel takes.
    pub fn expand(&self, text: &str) -> Option<String> {
        expand(text, |name| self.value(name))
    }
}

/// The container's own variables, in the order of their first mention.
#[derive(Debug, Default)]
struct Own {
    variables: Vec<(String, String)>,
    places: HashMap<String, usize>,
    notes: Vec<Note>,
}

impl Own {
    fn get(&self, name: &str) -> Option<&str> {
        self.places.get(name).map(|place| self.variables[*place].1.as_str())
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Mistake> {
        if name.is_empty() || name.contains(['=', '\0']) {
            self.notes.push(Note::Unusable(name.to_owned()));
            return Ok(());
        }
        let wrong = |why| Mistake::Value { name: name.to_owned(), why };
        if value.contains('\0') {
            return Err(wrong("contains a zero byte"));
        }
        if name.len() + value.len() + 2 > MAX_LENGTH {
            return Err(wrong(TOO_LONG));
        }
        match self.places.get(name) {
            Some(place) => self.variables[*place].1 = value,
            None => {
                self.places.insert(name.to_owned(), self.variables.len());
                self.variables.push((name.to_owned(), value));
            }
        }
        Ok(())
    }

    /// All that an item of `envFrom` brings.
    fn add_all(&mut self, given: &Given<'_>, from: &Value) -> Result<(), Mistake> {
        let prefix = from.text("prefix");
        let sources = [(&CONFIG_MAP, "configMapRef"), (&SECRET, "secretRef")];
        let Some((kind, reference)) = sources.into_iter().find(|(_, reference)| from.map(reference).is_some()) else {
            return Ok(());
        };
        let reference = from.at(reference);
        let Some(object) = kind.find(given, reference)? else { return Ok(()) };
        // The order of keys is nobody's; by name it is always the same.
        let mut keys: Vec<&String> = object.map("data").into_iter().flat_map(|data| data.keys()).collect();
        keys.sort();
        for key in keys {
            let name = format!("{prefix}{key}");
            if let Some(value) = kind.value(object, key, &name)? {
                self.set(&name, value)?;
            }
        }
        Ok(())
    }
}

const TOO_LONG: &str = "is longer than 128 KiB, which the kernel hands to no program";

/// What an item of `env` is set to. `None`: it is optional, and what it refers to is not there.
fn value(given: &Given<'_>, variable: &Value, own: &Own, links: &services::Links) -> Result<Option<String>, Mistake> {
    let (name, text, from) = (variable.text("name"), variable.text("value"), variable.at("valueFrom"));
    if !text.is_empty() {
        let expanded = expand(text, |name| own.get(name).or_else(|| links.get(name)));
        return expanded.map(Some).ok_or_else(|| Mistake::Value { name: name.to_owned(), why: TOO_LONG });
    }
    if from.map("fieldRef").is_some() {
        return downward::field(given, from.at("fieldRef")).map(Some);
    }
    if from.map("resourceFieldRef").is_some() {
        return downward::resource(given, from.at("resourceFieldRef")).map(Some);
    }
    if from.map("configMapKeyRef").is_some() {
        return CONFIG_MAP.key(given, from.at("configMapKeyRef"), name);
    }
    if from.map("secretKeyRef").is_some() {
        return SECRET.key(given, from.at("secretKeyRef"), name);
    }
    if from.map("fileKeyRef").is_some() {
        return Err(Mistake::Field(format!(
            "the variable {name} comes from a file (fileKeyRef), which is not supported"
        )));
    }
    Ok(Some(String::new()))
}

/// ConfigMaps or Secrets: objects that hold texts under keys.
struct Holder {
    kind: &'static str,
    /// As the API's error has it.
    resource: &'static str,
    /// Whether its values are in base64.
    encoded: bool,
}

const CONFIG_MAP: Holder = Holder { kind: "ConfigMap", resource: "configmap", encoded: false };
const SECRET: Holder = Holder { kind: "Secret", resource: "secret", encoded: true };

impl Holder {
    /// The object a reference names; `None` if there is none and it is optional.
    fn find<'a>(&self, given: &Given<'a>, reference: &Value) -> Result<Option<&'a Value>, Mistake> {
        let name = reference.text("name");
        let all = if self.encoded { given.secrets } else { given.config_maps };
        match all.get(name) {
            None if !reference.flag("optional") => {
                Err(Mistake::NoObject { kind: self.resource, name: name.to_owned() })
            }
            found => Ok(found),
        }
    }

    /// The value under the key a reference names.
    fn key(&self, given: &Given<'_>, reference: &Value, variable: &str) -> Result<Option<String>, Mistake> {
        let Some(object) = self.find(given, reference)? else { return Ok(None) };
        let key = reference.text("key");
        let found = self.value(object, key, variable)?;
        if found.is_some() || reference.flag("optional") {
            return Ok(found);
        }
        Err(Mistake::NoKey {
            kind: self.kind,
            namespace: given.pod.at("metadata").text("namespace").to_owned(),
            name: reference.text("name").to_owned(),
            key: key.to_owned(),
        })
    }

    fn value(&self, object: &Value, key: &str, variable: &str) -> Result<Option<String>, Mistake> {
        let Some(text) = object.at("data").text_opt(key) else { return Ok(None) };
        if !self.encoded {
            return Ok(Some(text.to_owned()));
        }
        let wrong = |why| Mistake::Value { name: variable.to_owned(), why };
        let bytes = STANDARD.decode(text).map_err(|_| wrong("is no base64"))?;
        String::from_utf8(bytes).map(Some).map_err(|_| wrong("is no UTF-8 text"))
    }
}

fn many(links: &services::Links) -> Option<Note> {
    let count = links.in_order.len();
    let bytes = links.in_order.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    (count > MANY || bytes > MUCH).then_some(Note::ManyServiceVariables { count, bytes })
}
