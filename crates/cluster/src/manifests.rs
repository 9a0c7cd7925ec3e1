//! Files instead of a cluster: manifests as kubectl takes them, read once, never changed. For tests, dry runs and bug reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::Value;
use fairlead_api::selector::{FieldSelector, LabelSelector};
use fairlead_api::source::{Event, Key, Later, List, Object, Selection, Source, Watch};
use fairlead_api::status::Subject;
use fairlead_api::{Failure, Kind, Look, Settings, decode, kinds};
use http::{Method, Request, Response};
use http_body_util::Full;

use crate::request::path;
use crate::{OpenError, Requests, boxed};

/// The version of everything in files.
const REVISION: u64 = 1;
/// Files of a directory that are read.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];
/// Directories in directories are looked into this deep.
const DEPTH: usize = 16;
/// Values in one document: `kubectl get -o yaml` of a large cluster is one document.
const NODES: usize = 50_000_000;
/// Bytes of text in one document.
const TEXT: usize = 1 << 30;
/// Where an object is that does not say it.
const DEFAULT_NAMESPACE: &str = "default";

/// An object in a file that is of no kind we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file, and which document in it.
    pub file: String,
    /// `batch/v1 Job`
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The objects of some files.
pub(crate) struct Manifests {
    kinds: Vec<(&'static Kind, BTreeMap<Key, Value>)>,
}

impl Manifests {
    /// Reads a file, or all files of a directory.
    pub(crate) fn read(path: &Path) -> Result<(Manifests, Vec<Skipped>), OpenError> {
        let mut files = Vec::new();
        find(path, DEPTH, &mut files)?;
        files.sort();
        let mut manifests = Manifests { kinds: Vec::new() };
        let mut skipped = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file).map_err(|error| wrong(file.display(), &error))?;
            for (number, document) in documents(&text).enumerate() {
                let place = format!("{}, document {}", file.display(), number + 1);
                let value = parse(document).map_err(|why| wrong(&place, &why))?;
                manifests.add(value, &place, &mut skipped)?;
            }
        }
        Ok((manifests, skipped))
    }

    /// Adds an object, or each item of a list.
    fn add(&mut self, mut value: Value, place: &str, skipped: &mut Vec<Skipped>) -> Result<(), OpenError> {
        if value.is_null() {
            return Ok(());
        }
        let (version, name) = (value.text("apiVersion").to_owned(), value.text("kind").to_owned());
        if version.is_empty() || name.is_empty() {
            return Err(wrong(place, &"apiVersion or kind is not set"));
        }
        let known = kinds::KINDS.iter().chain(kinds::OPTIONAL).copied();
        if let Some(kind) = known.clone().find(|kind| kind.kind == name && kind.api_version() == version) {
            return self.add_object(kind, value, place);
        }
        let item_kind = name.strip_suffix("List").unwrap_or_default().to_owned();
        if let Some(Value::Array(items)) = value.unset("items") {
            for mut item in items {
                // The items of a ServiceList need not say that they are Services.
                if item.is_object() && item.text("kind").is_empty() && !item_kind.is_empty() {
                    item.set("apiVersion", version.as_str());
                    item.set("kind", item_kind.as_str());
                }
                self.add(item, place, skipped)?;
            }
            return Ok(());
        }
        let object = value.at("metadata").text("name").to_owned();
        skipped.push(Skipped { file: place.to_owned(), kind: format!("{version} {name}"), name: object });
        Ok(())
    }

    fn add_object(&mut self, kind: &'static Kind, value: Value, place: &str) -> Result<(), OpenError> {
        let (kind, object) = as_served(kind, value).map_err(|why| wrong(place, &why))?;
        let metadata = object.at("metadata");
        let key = Key::new(metadata.text("namespace"), metadata.text("name"));
        if key.name.is_empty() {
            return Err(wrong(place, &format!("a {} without metadata.name", kind.kind)));
        }
        let at = self.kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.kinds.push((kind, BTreeMap::new()));
            self.kinds.len() - 1
        });
        self.kinds[at].1.insert(key, object);
        Ok(())
    }

    fn select(&self, selection: &Selection) -> Result<List, Failure> {
        let labels = LabelSelector::parse(&selection.labels)?;
        let fields = FieldSelector::parse(&selection.fields, selection.kind)?;
        let all = self.kinds.iter().filter(|(kind, _)| *kind == selection.kind).flat_map(|(_, objects)| objects);
        let here = all.filter(|(key, _)| selection.namespace.is_empty() || *key.namespace == *selection.namespace);
        let selected = here.filter(|(_, object)| labels.selects(object) && fields.selects(object, selection.kind));
        let objects = selected.map(|(key, object)| Object {
            key: key.clone(),
            revision: REVISION,
            json: object.to_string().into(),
        });
        Ok(List { objects: objects.collect(), revision: REVISION, more: None })
    }

    fn get(&self, wanted: &str) -> Option<&Value> {
        let all = self.kinds.iter().flat_map(|(kind, objects)| objects.iter().map(move |object| (kind, object)));
        let mut found = all.filter(|(kind, (key, _))| path(kind, &key.namespace, &key.name, None) == wanted);
        found.next().map(|(_, (_, object))| object)
    }
}

impl Source for Manifests {
    fn list<'a>(&'a self, selection: &'a Selection, _: Option<&'a str>) -> Later<'a, Result<List, Failure>> {
        Box::pin(async move { self.select(selection) })
    }

    fn watch<'a>(&'a self, _: &'a Selection, _: u64) -> Later<'a, Result<Box<dyn Watch>, Failure>> {
        Box::pin(async { Ok(Box::new(Nothing) as Box<dyn Watch>) })
    }
}

/// Files are read once: nothing ever changes.
struct Nothing;

impl Watch for Nothing {
    fn next(&mut self) -> Later<'_, Result<Vec<Event>, Failure>> {
        Box::pin(std::future::pending())
    }

    fn progress(&self) -> u64 {
        REVISION
    }
}

/// Answers single reads, and refuses everything else.
pub(crate) fn requests(manifests: Arc<Manifests>) -> Requests {
    boxed(tower::service_fn(move |request: Request<Full<Bytes>>| {
        let answer = answer(&manifests, request.method(), request.uri().path());
        let (code, body) = answer.map_or_else(|failure| (failure.code, failure.status()), |object| (200, object));
        let mut response = Response::new(Full::<Bytes>::from(body.to_string()));
        *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
        std::future::ready(Ok::<_, std::convert::Infallible>(response))
    }))
}

fn answer(manifests: &Manifests, method: &Method, path: &str) -> Result<Value, Failure> {
    if method != Method::GET {
        let message = "the objects come from files and cannot be changed; a cluster is needed for this";
        return Err(Failure::new(405, "MethodNotAllowed", message));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let kind = path.rsplit('/').nth(1).unwrap_or_default();
    manifests.get(path).cloned().ok_or_else(|| Failure::not_found(Subject { group: "", kind, name }))
}

/// The object as an API server would show it: in the stored version, defaults filled in, with a resourceVersion.
fn as_served(kind: &'static Kind, value: Value) -> Result<(&'static Kind, Value), String> {
    let settings = Settings { service_ranges: Vec::new(), node_ports: 30000..=32767, service_topology: true };
    let decoded = decode::decode_gated(kind.schema, value, &|gate| settings.allows(gate));
    let mut object = decoded.map_err(|mismatch| mismatch.to_string())?.value;
    let mut stored = kind;
    if let Some(conversion) = &kind.conversion {
        object = (conversion.store)(&object);
        stored = conversion.stored;
        object.set("apiVersion", stored.api_version());
        object.set("kind", stored.kind);
    }
    (stored.rules.default)(&mut object, &settings);
    let metadata = object.map_mut("metadata");
    metadata.insert("resourceVersion".to_owned(), REVISION.to_string().into());
    if stored.namespaced {
        let namespace = metadata.entry("namespace").or_insert_with(|| "".into());
        if namespace.as_str().is_none_or(str::is_empty) {
            *namespace = DEFAULT_NAMESPACE.into();
        }
    }
    Ok((stored, object))
}

fn find(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), OpenError> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(|error| wrong(path.display(), &error))? {
        let path = entry.map_err(|error| wrong(path.display(), &error))?.path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_dir() {
            if depth > 0 {
                find(&path, depth - 1, files)?;
            }
        } else if EXTENSIONS.contains(&extension) {
            files.push(path);
        }
    }
    Ok(())
}

/// The documents of a file: as kubectl does it, a line that begins with `---` begins another.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("\n---").map(|(at, _)| at + 1);
    let bounds: Vec<usize> = std::iter::once(0).chain(starts).chain([text.len()]).collect();
    let documents: Vec<&str> = bounds.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
    documents.into_iter().filter(|document| has_content(document))
}

fn has_content(document: &str) -> bool {
    let line_has =
        |line: &str| !line.trim().is_empty() && !line.starts_with("---") && !line.trim_start().starts_with('#');
    document.lines().any(line_has)
        || document.lines().next().is_some_and(|line| line.len() > 3 && line_starts_value(line))
}

/// `--- {kind: Service}`: a document that begins on its separator.
fn line_starts_value(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('#'))
}

fn parse(document: &str) -> Result<Value, String> {
    if document.trim_start().starts_with('{') {
        return fairlead_api::json::parse(document.as_bytes()).map(|parsed| parsed.value);
    }
    let budget = serde_saphyr::budget! { max_nodes: NODES, max_events: 2 * NODES, max_total_scalar_bytes: TEXT };
    let options = serde_saphyr::options! { budget: budget };
    serde_saphyr::from_str_with_options(document, options).map_err(|error| error.to_string())
}

fn wrong(file: impl ToString, why: &dyn std::fmt::Display) -> OpenError {
    OpenError::Manifest { file: file.to_string(), why: why.to_string() }
}
