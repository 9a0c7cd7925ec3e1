//! Who owns which field: `metadata.managedFields`, kept on every write, and server-side apply built on it.
//!
//! On a create, update or patch the server decodes the object, sets defaults, calls [`update`], and only then prepares,
//! allocates and validates: what the server itself chooses (addresses, node ports, status) is owned by nobody. For an
//! apply it calls [`apply`] with the live object, decodes the result, sets defaults and goes on as for an update, without
//! calling [`update`]. At the end of every write to an existing object it calls [`keep_times`].

use std::sync::LazyLock;

use crate::value::{Map, Value};

use crate::Failure;
use crate::Look;
use crate::decode::decode;
use crate::schema::Struct;

mod apply;
mod check;
mod compare;
mod entries;
mod merge;
mod owned;
mod set;
mod text;
mod types;

use compare::{Change, compare};
use entries::{Entry, Id};
use set::Set;

/// Who writes, and how.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The field manager: the `fieldManager` parameter, or the User-Agent up to its first `/`.
    pub manager: &'a str,
    /// The apiVersion the object was written in.
    pub api_version: &'a str,
    /// The subresource written to, empty for the object itself.
    pub subresource: &'a str,
    /// The present time as RFC 3339 with seconds.
    pub now: &'a str,
}

/// Sets `metadata.managedFields` of `new` after a create, update or patch that is not an apply. `old` is what is stored. Both
/// are canonical and have their defaults, but `new` is not yet prepared (see [`crate::kinds::Rules`]). What `new` carries in
/// managedFields is what the client sent: a proper list is taken as the state before this write, an absent or improper one
/// leaves the stored one, a list of one empty entry empties it. (A client may also send an empty list; decoding
/// drops that, so the server calls [`keep_reset`] first.)
pub fn update(of: &'static Struct, old: Option<&Value>, new: &mut Value, writer: Writer<'_>) {
    let sent = take_list(new);
    let list = updated(of, old, new, &sent, writer);
    put_list(new, list);
}

/// Server-side apply: lays `config` (the client's object as parsed, neither decoded nor defaulted: what it does not name
/// it does not own, and a field the type does not know is an error) over `live` (`None`: it is created), and gives the merged
/// object with its managedFields, before decoding. Conflicts are a 409 unless `force`.
pub fn apply(
    of: &'static Struct,
    live: Option<&Value>,
    config: &Value,
    force: bool,
    writer: Writer<'_>,
) -> Result<Value, Failure> {
    apply::apply(of, live, config, force, writer)
}

/// Marks an empty managedFields list in a body as the wish to empty it, which decoding would lose.
pub fn keep_reset(sent: &Value, decoded: &mut Value) {
    let list = sent.at("metadata").at("managedFields");
    if list.as_array().is_some_and(Vec::is_empty) {
        put_list(decoded, vec![Value::Object(Map::new())]);
    }
}

/// Takes back the times of managedFields if a write changed nothing else, so that it is no write at all. Called with the
/// object as it is about to be stored.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (before, after) = (list(old), list(new));
    let same = |(a, b): (&Value, &Value)| {
        ["manager", "operation", "apiVersion", "subresource", "fieldsType", "fieldsV1"]
            .iter()
            .all(|name| a.at(name) == b.at(name))
    };
    if before == after || before.len() != after.len() || !before.iter().zip(after).all(same) {
        return;
    }
    let taken = take_list(new);
    put_list(new, before.to_vec());
    if new != old {
        put_list(new, taken);
    }
}

fn updated(of: &'static Struct, old: Option<&Value>, new: &Value, sent: &[Value], writer: Writer<'_>) -> Vec<Value> {
    let stored = old.map_or(&[][..], list);
    let sent = if writer.subresource.is_empty() { sent } else { stored };
    let nothing = if old.is_none() { empty(of) } else { Value::Null };
    let change = changes(of, old.unwrap_or(&nothing), new, writer);
    if old.is_some() && change.is_empty() && (sent.is_empty() || sent == stored) {
        return stored.to_vec();
    }
    let mut entries = before(stored, sent);
    // An existing object that nobody's fields are known of stays so until it is applied.
    if entries.is_empty() && old.is_some() {
        return Vec::new();
    }
    record(of, change, &mut entries, writer);
    entries::write(entries)
}

/// The state before a write: what the client sent if it is proper, else what is stored.
fn before<'a>(stored: &'a [Value], sent: &'a [Value]) -> Vec<Entry<'a>> {
    if let [only] = sent
        && only.as_object().is_none_or(Map::is_empty)
    {
        return Vec::new();
    }
    match entries::read(sent) {
        Ok(entries) if !entries.is_empty() => entries,
        _ => entries::read(stored).unwrap_or_default(),
    }
}

/// Gives the writer what it changed and takes from all what is changed or gone.
fn record<'a>(of: &'static Struct, change: Change<'a>, entries: &mut Vec<Entry<'a>>, writer: Writer<'a>) {
    release(of, &change, entries, writer);
    let mut taken = change.changed;
    taken.subtract(&UNOWNED);
    if !taken.is_empty() {
        let id = Id::of_update(writer);
        let time = Some(writer.now.into());
        match entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) => {
                entry.fields.union(taken);
                entry.time = time;
            }
            None => entries.push(Entry { id, api_version: writer.api_version.into(), time, fields: taken }),
        }
    }
    entries::cap(entries);
}

/// Takes from all entries what is changed or gone, and forgets those that end empty or whose version is gone.
fn release(of: &'static Struct, change: &Change<'_>, entries: &mut Vec<Entry<'_>>, writer: Writer<'_>) {
    entries.retain_mut(|entry| {
        if entry.api_version == writer.api_version {
            entry.fields.subtract(&change.changed);
            entry.fields.subtract(&change.removed);
            return !entry.fields.is_empty();
        }
        entries::is_served(of, &entry.api_version)
    });
}

/// What a write changed, without the fields it may not touch.
fn changes<'a>(of: &'static Struct, old: &'a Value, new: &'a Value, writer: Writer<'_>) -> Change<'a> {
    let mut change = compare(of, old, new);
    let untouchable = untouchable(of, writer.subresource);
    change.changed.subtract_trees(untouchable);
    change.removed.subtract_trees(untouchable);
    change
}

/// Fields that a write to this resource or subresource never changes, whatever the client sends.
fn untouchable(of: &'static Struct, subresource: &str) -> &'static Set<'static> {
    static OF_OBJECT: LazyLock<Set<'static>> = LazyLock::new(|| Set::of_fields(&[&["status"]]));
    static OF_STATUS: LazyLock<Set<'static>> = LazyLock::new(|| Set::of_fields(&[&["spec"]]));
    static OF_POD_STATUS: LazyLock<Set<'static>> = LazyLock::new(|| {
        Set::of_fields(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
    });
    static OF_RANGE_STATUS: LazyLock<Set<'static>> = LazyLock::new(|| Set::of_fields(&[&["metadata"], &["spec"]]));
    match (subresource, of.name) {
        ("status", "Pod") => &OF_POD_STATUS,
        ("status", "ServiceCIDR") => &OF_RANGE_STATUS,
        ("status", _) => &OF_STATUS,
        _ => &OF_OBJECT,
    }
}

/// Fields that name the object or are the server's; they have no manager.
static UNOWNED: LazyLock<Set<'static>> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// The object before it is created: no fields but the structs that are always there.
fn empty(of: &'static Struct) -> Value {
    decode(of, Value::Object(Map::new())).map(|decoded| decoded.value).unwrap_or_default()
}

fn list(object: &Value) -> &[Value] {
    object.at("metadata").list("managedFields")
}

fn take_list(object: &mut Value) -> Vec<Value> {
    match object.get_mut("metadata").and_then(|meta| meta.unset("managedFields")) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn put_list(object: &mut Value, list: Vec<Value>) {
    take_list(object);
    if !list.is_empty() {
        object.map_mut("metadata").insert("managedFields", Value::Array(list));
    }
}

#[cfg(test)]
mod tests;
