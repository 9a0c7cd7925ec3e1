//! The list `metadata.managedFields`: read, kept short, put in order, written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::value::{Map, Value};
use thiserror::Error;

use super::Writer;
use super::set::Set;
use super::text;
use crate::Look;
use crate::kinds::KINDS;
use crate::schema::Struct;

/// More managers by update than this are merged into [`ANCIENT`], oldest first.
const MAX_UPDATE_MANAGERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// One manager's fields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry<'a> {
    /// Who.
    pub(super) id: Id<'a>,
    /// The version the fields are named in.
    pub(super) api_version: Cow<'a, str>,
    /// When the manager last changed something.
    pub(super) time: Option<Cow<'a, str>>,
    /// Which fields.
    pub(super) fields: Set<'a>,
}

/// What tells entries apart. One manager may have several.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id<'a> {
    /// The manager's name.
    pub(super) manager: Cow<'a, str>,
    /// How it writes.
    pub(super) operation: Operation,
    /// The version, if it writes by update; an applier has one entry whatever version it applies.
    pub(super) api_version: Cow<'a, str>,
    /// The subresource it writes to, empty for the object itself.
    pub(super) subresource: Cow<'a, str>,
}

/// How a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// Server-side apply.
    Apply,
    /// Everything else.
    Update,
}

/// A list that is not one of managed fields.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum Error {
    /// Neither applied nor updated.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// No version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// No kind of field set.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// A kind of field set that does not exist.
    #[error("invalid fieldsType {0} in managed fields entry {1}")]
    FieldsType(String, usize),
    /// A field set that cannot be read.
    #[error("error decoding set: {0}")]
    Fields(#[from] text::Error),
}

impl<'a> Id<'a> {
    /// The entry a writer's updates go to.
    pub(super) fn of_update(writer: Writer<'a>) -> Id<'a> {
        let api_version = Cow::Borrowed(writer.api_version);
        Id { api_version, ..Id::of(writer, Operation::Update) }
    }

    /// The entry a writer applies to.
    pub(super) fn of_apply(writer: Writer<'a>) -> Id<'a> {
        Id::of(writer, Operation::Apply)
    }

    fn of(writer: Writer<'a>, operation: Operation) -> Id<'a> {
        let manager = if writer.manager.is_empty() { "unknown" } else { writer.manager };
        let subresource = Cow::Borrowed(writer.subresource);
        Id { manager: Cow::Borrowed(manager), operation, api_version: Cow::Borrowed(""), subresource }
    }
}

/// Reads a list. Of entries with one id the last counts.
pub(super) fn read(list: &[Value]) -> Result<Vec<Entry<'_>>, Error> {
    let entries: Result<Vec<Entry<'_>>, Error> =
        list.iter().enumerate().rev().map(|(at, value)| read_entry(at, value)).collect();
    let mut entries = entries?;
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries.dedup_by(|later, kept| later.id == kept.id);
    Ok(entries)
}

fn read_entry(at: usize, value: &Value) -> Result<Entry<'_>, Error> {
    let operation = match value.text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(Error::Operation),
    };
    let api_version = value.text("apiVersion");
    if api_version.is_empty() {
        return Err(Error::ApiVersion);
    }
    match value.text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(Error::NoFieldsType(at)),
        other => return Err(Error::FieldsType(crate::golang::quote(other), at)),
    }
    let fields = match value.at("fieldsV1") {
        Value::Null => Set::default(),
        fields => text::read(fields)?,
    };
    let id = Id {
        manager: value.text("manager").into(),
        operation,
        api_version: if operation == Operation::Apply { "" } else { api_version }.into(),
        subresource: value.text("subresource").into(),
    };
    Ok(Entry { id, api_version: api_version.into(), time: value.text_opt("time").map(Cow::Borrowed), fields })
}

/// Writes a list in its order: appliers first, then by time, manager, version, subresource.
pub(super) fn write(mut entries: Vec<Entry<'_>>) -> Vec<Value> {
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    entries.iter().map(write_entry).collect()
}

fn order<'e>(entry: &'e Entry<'_>) -> impl Ord + use<'e> {
    (entry.id.operation, entry.time.as_deref(), &*entry.id.manager, &*entry.api_version, &*entry.id.subresource)
}

fn write_entry(entry: &Entry<'_>) -> Value {
    let operation = match entry.id.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut out = Map::new();
    let mut put = |name: &'static str, text: &str| {
        if !text.is_empty() {
            out.insert(name, text.into());
        }
    };
    put("manager", &entry.id.manager);
    put("operation", operation);
    put("apiVersion", &entry.api_version);
    put("time", entry.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    out.insert("fieldsV1", text::write(&entry.fields));
    if !entry.id.subresource.is_empty() {
        out.insert("subresource", entry.id.subresource.clone().into());
    }
    Value::Object(out)
}

/// Whether the type is served in that version. Entries in versions that are gone are forgotten.
pub(super) fn is_served(of: &Struct, api_version: &str) -> bool {
    KINDS.iter().any(|kind| kind.kind == of.name && kind.api_version() == api_version)
}

/// Merges the oldest entries by update, each version into one entry, until there are few enough.
pub(super) fn cap(entries: &mut Vec<Entry<'_>>) {
    let count = entries.iter().filter(|entry| entry.id.operation == Operation::Update).count();
    let mut excess = count.saturating_sub(MAX_UPDATE_MANAGERS);
    if excess == 0 {
        return;
    }
    entries.sort_by(|a, b| (a.id.operation, &a.time, &a.id).cmp(&(b.id.operation, &b.time, &b.id)));
    let mut merged: Vec<Vec<Entry<'_>>> = Vec::new();
    let mut first_of: BTreeMap<String, usize> = BTreeMap::new();
    for entry in std::mem::take(entries) {
        if entry.id.operation == Operation::Update && excess > 0 {
            if let Some(at) = first_of.get(&*entry.api_version) {
                merged[*at].push(entry);
                excess -= 1;
                continue;
            }
            first_of.insert(entry.api_version.clone().into_owned(), merged.len());
        }
        merged.push(vec![entry]);
    }
    entries.extend(merged.into_iter().filter_map(pour));
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries.dedup_by(|other, kept| {
        let same = other.id == kept.id;
        if same {
            kept.time = kept.time.take().max(other.time.take());
            kept.fields.union(std::mem::take(&mut other.fields));
        }
        same
    });
}

/// One entry with the fields of all of these, and the time of the youngest, which is the last.
fn pour(mut all: Vec<Entry<'_>>) -> Option<Entry<'_>> {
    if all.len() > 1 {
        let time = all.last_mut().and_then(|last| last.time.take());
        let fields = Set::union_of(all.iter_mut().map(|entry| std::mem::take(&mut entry.fields)).collect());
        let api_version = all.pop()?.api_version;
        let id = Id {
            manager: Cow::Borrowed(ANCIENT),
            operation: Operation::Update,
            api_version: api_version.clone(),
            subresource: Cow::Borrowed(""),
        };
        return Some(Entry { id, api_version, time, fields });
    }
    all.pop()
}
