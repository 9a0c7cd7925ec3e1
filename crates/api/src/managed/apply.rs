//! Server-side apply: the configuration merged over the live object, fields given up taken out, conflicts reported.

use crate::value::{Map, Value, json};

use super::check::check;
use super::compare::compare;
use super::entries::{self, Entry, Id, Operation};
use super::merge::{merge, remove};
use super::owned::owned;
use super::set::Set;
use super::text;
use super::types::Type;
use super::{UNOWNED, Writer, changes, empty, list, put_list, record, take_list, untouchable};
use crate::field::MAX_MISTAKES;
use crate::schema::Struct;
use crate::{Failure, Look, golang};

/// Owns what was there before the first apply, if nobody's fields were known.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager that moves objects from client-side to server-side apply.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Maximum length in bytes of the path of a conflict.
const MAX_PATH: usize = 512;
/// All annotations together may have as many bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// See [`super::apply`].
pub(super) fn apply(
    of: &'static Struct,
    live: Option<&Value>,
    config: &Value,
    force: bool,
    writer: Writer<'_>,
) -> Result<Value, Failure> {
    let failed = |why: String| Failure::new(500, "", why);
    let stored = live.map_or(&[][..], list);
    let entries = entries::read(stored).map_err(|why| failed(format!("failed to decode managed fields: {why}")))?;
    check_kind(of, config, writer)?;
    if config.at("metadata").at("managedFields").is_array() {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    if let Err(misfits) = check(of, config) {
        return Err(failed(format!("failed to create typed patch object ({}): {misfits}", named(config))));
    }
    let mut base = live.cloned().unwrap_or_else(|| empty(of));
    take_list(&mut base);
    let nothing = empty(of);
    let mut case = Case { of, base: &base, config, writer, entries };
    if case.entries.is_empty() {
        let before = Writer { manager: BEFORE_FIRST_APPLY, ..writer };
        record(of, changes(of, &nothing, &base, before), &mut case.entries, before);
    }
    let mut out = case.run(force)?;
    if writer.manager == KUBECTL {
        renew_last_applied(&mut out, config);
    }
    Ok(out)
}

/// One apply, once the configuration is known to fit.
struct Case<'a> {
    of: &'static Struct,
    base: &'a Value,
    config: &'a Value,
    writer: Writer<'a>,
    entries: Vec<Entry<'a>>,
}

/// Another manager's fields that an apply would change.
struct Conflict {
    with: String,
    path: String,
}

impl<'a> Case<'a> {
    fn run(mut self, force: bool) -> Result<Value, Failure> {
        let id = Id::of_apply(self.writer);
        let mut fields = owned(Type::of_object(self.of), self.config);
        fields.subtract_trees(untouchable(self.of, self.writer.subresource));
        let last = self.take(&id);
        let mut entry = Entry {
            id,
            api_version: self.writer.api_version.into(),
            time: last.as_ref().and_then(|last| last.time.clone()),
            fields,
        };
        let new = self.pruned(&entry, last.as_ref());
        self.settle(&new, force)?;
        let changed = new != *self.base;
        if changed {
            entry.time = Some(self.writer.now.into());
        }
        entry.fields.subtract(&UNOWNED);
        if !entry.fields.is_empty() {
            self.entries.push(entry);
        }
        let list = entries::write(self.entries);
        let mut new = new;
        put_list(&mut new, list);
        Ok(new)
    }

    fn take(&mut self, id: &Id<'_>) -> Option<Entry<'a>> {
        let at = self.entries.iter().position(|entry| entry.id == *id)?;
        Some(self.entries.remove(at))
    }

    /// The merged object without what the manager applied before and does not name any more, unless others own it.
    fn pruned(&self, entry: &Entry<'_>, last: Option<&Entry<'_>>) -> Value {
        let of = Type::of_object(self.of);
        let merged = merge(of, self.base, self.config);
        let Some(last) = last.filter(|last| !last.fields.is_empty() && last.api_version == self.writer.api_version)
        else {
            return merged;
        };
        let last = last.fields.clone().with_structs(of);
        let all = owned(of, &merged).with_structs(of);
        let mut without = merged.clone();
        remove(of, &mut without, &last);
        let mut kept = owned(of, &without).with_structs(of);
        let others = self.entries.iter().chain([entry]).filter(|other| other.api_version == self.writer.api_version);
        // All at once: an object may have thousands of managers.
        kept.union(Set::union_of(others.map(|other| other.fields.clone().with_structs(of)).collect()));
        let mut gone = all.clone();
        gone.subtract(&kept);
        let mut without = merged.clone();
        remove(of, &mut without, &gone);
        // What went along without having been the manager's comes back.
        let mut gone = all.clone();
        gone.subtract(&owned(of, &without).with_structs(of));
        let gone = gone.intersection(&last);
        let mut out = merged.clone();
        remove(of, &mut out, &gone);
        out
    }

    /// Takes from the other managers what changes, if that is allowed.
    fn settle(&mut self, new: &Value, force: bool) -> Result<(), Failure> {
        let change = changes(self.of, self.base, new, self.writer);
        if !force {
            let conflicts = self.conflicts(&change.changed);
            if !conflicts.is_empty() {
                return Err(conflict(conflicts));
            }
        }
        super::release(self.of, &change, &mut self.entries, self.writer);
        Ok(())
    }

    fn conflicts(&self, changed: &Set<'_>) -> Vec<Conflict> {
        let allowed = (self.writer.manager == KUBECTL).then(|| self.last_applied()).flatten();
        let mut entries: Vec<_> =
            self.entries.iter().filter(|entry| entry.api_version == self.writer.api_version).collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id));
        let mut out = Vec::new();
        for entry in entries {
            let mut taken = entry.fields.intersection(changed);
            if let Some(allowed) = &allowed {
                taken.subtract(&text::read(allowed).unwrap_or_default());
            }
            let paths = taken.paths().into_iter();
            out.extend(paths.map(|path| {
                let path = golang::shorten(&path, MAX_PATH).into_owned();
                Conflict { with: shown(entry), path }
            }));
        }
        out
    }

    /// The fields that client-side apply set and that still are as it set them: server-side apply by the same manager may
    /// change them.
    fn last_applied(&self) -> Option<Value> {
        let text = self.base.at("metadata").at("annotations").text(LAST_APPLIED);
        let last: Value = serde_json::from_str(text).ok()?;
        if last.text("apiVersion") != self.writer.api_version || check(self.of, &last).is_err() {
            return None;
        }
        let mut fields = owned(Type::of_object(self.of), &last);
        let change = compare(self.of, &last, self.base);
        fields.subtract(&change.changed);
        fields.subtract(&change.removed);
        Some(text::write(&fields))
    }
}

fn check_kind(of: &'static Struct, config: &Value, writer: Writer<'_>) -> Result<(), Failure> {
    if config.text("apiVersion") == writer.api_version && config.text("kind") == of.name {
        return Ok(());
    }
    Err(Failure::bad_request(format!("invalid object type: {}", kind_of(config))))
}

/// `/v1, Kind=Service`.
fn kind_of(config: &Value) -> String {
    let (group, version) = match config.text("apiVersion").split('/').collect::<Vec<_>>()[..] {
        [version] => ("", version),
        [group, version] => (group, version),
        _ => return "/, Kind=".to_owned(),
    };
    format!("{group}/{version}, Kind={}", config.text("kind"))
}

fn named(config: &Value) -> String {
    let meta = config.at("metadata");
    format!("{}/{}; {}", meta.text("namespace"), meta.text("name"), kind_of(config))
}

/// `"m1"`, `"kubectl-edit" using v1`, `"lb" with subresource "status"`.
fn shown(entry: &Entry<'_>) -> String {
    let mut text = golang::quote(&entry.id.manager);
    if !entry.id.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", golang::quote(&entry.id.subresource)));
    }
    if entry.id.operation == Operation::Update {
        text.push_str(&format!(" using {}", entry.api_version));
    }
    text
}

fn conflict(conflicts: Vec<Conflict>) -> Failure {
    let causes: Vec<Value> = conflicts
        .iter()
        .take(MAX_MISTAKES)
        .map(|c| json!({"reason": "FieldManagerConflict", "message": format!("conflict with {}", c.with), "field": c.path}))
        .collect();
    let message = match &conflicts[..] {
        [only] => format!("Apply failed with 1 conflict: conflict with {}: {}", only.with, only.path),
        many => {
            let mut lines = Vec::new();
            for (at, one) in many.iter().enumerate().take(MAX_MISTAKES) {
                if at == 0 || many[at - 1].with != one.with {
                    lines.push(format!("conflicts with {}:", one.with));
                }
                lines.push(format!("- {}", one.path));
            }
            if many.len() > MAX_MISTAKES {
                lines.push(format!("and {} more", many.len() - MAX_MISTAKES));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let mut details = Map::new();
    details.insert("causes", Value::Array(causes));
    Failure::new(409, "Conflict", message).with(details)
}

/// Keeps the annotation of client-side apply in step, where it is there.
fn renew_last_applied(object: &mut Value, config: &Value) {
    let annotations = object.at("metadata").at("annotations");
    if annotations.text(LAST_APPLIED).is_empty() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.get_mut("metadata").and_then(|meta| meta.get_mut("annotations")) {
        annotations.unset(LAST_APPLIED);
    }
    sort_keys(&mut config);
    let mut text = config.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    text.push('\n');
    let others = annotations.as_object().into_iter().flatten().filter(|(name, _)| *name != LAST_APPLIED);
    let size: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    let fits = size + LAST_APPLIED.len() + text.len() <= MAX_ANNOTATIONS;
    let Some(annotations) = object.get_mut("metadata").and_then(|meta| meta.get_mut("annotations")) else { return };
    if fits {
        annotations.set(LAST_APPLIED, text);
    } else {
        annotations.unset(LAST_APPLIED);
    }
}

fn sort_keys(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sort_keys);
        }
        Value::Array(list) => list.iter_mut().for_each(sort_keys),
        _ => {}
    }
}
