//! Reading objects: get and list, with selectors, pages and resource versions.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairlead_api::Failure;
use fairlead_api::selector::{FieldSelector, LabelSelector};
use fairlead_api::status::Subject;
use fairlead_api::value::{Value, json};
use fairlead_store::{Backend, Entry, Error as StoreError, Page, Range, Revision};

use crate::object;
use crate::options::{ListOptions, revision};
use crate::reply::{List, Reply};
use crate::route::Target;

/// How long a read of a version that is not there yet waits for it; the reference server's own patience.
const FRESHNESS_WAIT: Duration = Duration::from_secs(3);

/// One object.
pub(crate) async fn get(store: &dyn Backend, target: &Target, resource_version: &str) -> Result<Reply, Failure> {
    if !resource_version.is_empty() {
        let wanted = revision(resource_version).map_err(|why| Failure::new(500, "", why))?;
        wait_for(store, Revision(wanted)).await?;
    }
    let entry = find(store, target).await?;
    Ok(Reply::object(200, target.kind, object::text(target.kind, &entry)?))
}

/// The stored object a target names, or 404.
pub(crate) async fn find(store: &dyn Backend, target: &Target) -> Result<Arc<Entry>, Failure> {
    let key = object::key(target.kind, &target.namespace, &target.name);
    store.get(&key).await.map_err(unavailable)?.ok_or_else(|| Failure::not_found(subject(target)))
}

/// The resource and name of a target, for failures.
pub(crate) fn subject(target: &Target) -> Subject<'_> {
    Subject { group: target.kind.group, kind: target.kind.resource, name: &target.name }
}

/// Many objects.
pub(crate) async fn list(store: &dyn Backend, target: &Target, options: &ListOptions) -> Result<Reply, Failure> {
    let filter = Filter::new(target, options)?;
    let start = Start::of(target, options)?;
    if let Some(wanted) = start.wait {
        wait_for(store, wanted).await?;
    }
    let mut found = collect(store, target, &filter, &start).await?;
    let mut entries = std::mem::take(&mut found.entries);
    let more = start.limit > 0 && (entries.len() > start.limit || found.remaining > 0);
    let mut remaining = found.remaining;
    if start.limit > 0 && entries.len() > start.limit {
        remaining += entries.len() - start.limit;
        entries.truncate(start.limit);
    }
    let continue_token = match entries.last() {
        Some(last) if more => continue_token(found.revision, &start.prefix, &last.key),
        _ => String::new(),
    };
    let remaining = (more && filter.is_everything()).then_some(remaining as i64);
    let list = List { kind: target.kind, revision: found.revision.to_string(), continue_token, remaining, entries };
    Ok(Reply { code: 200, payload: crate::reply::Payload::List(list) })
}

/// What a selector lets through.
#[derive(Debug)]
pub(crate) struct Filter {
    kind: &'static fairlead_api::Kind,
    name: String,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    pub(crate) fn new(target: &Target, options: &ListOptions) -> Result<Filter, Failure> {
        Ok(Filter {
            kind: target.kind,
            name: target.name.clone(),
            labels: LabelSelector::parse(&options.label_selector)?,
            fields: FieldSelector::parse(&options.field_selector, target.kind)?,
        })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.name.is_empty() && self.labels.is_everything() && self.fields.is_everything()
    }

    /// The one name that can match, if there is only one.
    fn only_name(&self) -> Option<&str> {
        if !self.name.is_empty() { Some(&self.name) } else { self.fields.name() }
    }

    pub(crate) fn matches(&self, entry: &Arc<Entry>) -> bool {
        if self.is_everything() {
            return true;
        }
        let mut parts = entry.key.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let namespace = if self.kind.namespaced { parts.next().unwrap_or_default() } else { "" };
        if !self.name.is_empty() && self.name != name {
            return false;
        }
        object::with_index(self.kind, entry, |index| {
            let label = |key: &str| index.labels.iter().find(|(k, _)| &**k == key).map(|(_, value)| &**value);
            let field = |key: &str| -> std::borrow::Cow<'_, str> {
                match key {
                    "metadata.name" => name.into(),
                    "metadata.namespace" => namespace.into(),
                    _ => index.fields.iter().find(|(k, _)| *k == key).map_or("", |(_, value)| value).into(),
                }
            };
            self.labels.matches(label) && self.fields.matches(field)
        })
    }
}

/// Where a list begins and which version it shows.
struct Start {
    prefix: String,
    after: Option<Box<str>>,
    at: Option<Revision>,
    limit: usize,
    /// The list must not be older than this.
    wait: Option<Revision>,
}

impl Start {
    fn of(target: &Target, options: &ListOptions) -> Result<Start, Failure> {
        let prefix = object::prefix(target.kind, &target.namespace);
        let limit = usize::try_from(options.limit).unwrap_or_default();
        let version = options.resource_version.as_str();
        // A list from any version (0) comes from memory in the reference server, which knows no pages there.
        let limit = if version == "0" { 0 } else { limit };
        let mut start = Start { prefix, after: None, at: None, limit, wait: None };
        if !options.continue_token.is_empty() {
            if !matches!(version, "" | "0") {
                let why = "specifying resource version is not allowed when using continue";
                return Err(Failure::bad_request(why));
            }
            let (revision, after) = read_continue_token(&options.continue_token)?;
            start.after = Some(format!("{}{after}", start.prefix).into());
            start.at = revision;
            return Ok(start);
        }
        if !version.is_empty() {
            let wanted = revision(version)
                .map(Revision)
                .map_err(|why| Failure::bad_request(format!("invalid resource version: {why}")))?;
            start.wait = Some(wanted);
            if options.exact || (limit > 0 && wanted.0 > 0) {
                start.at = Some(wanted);
            }
        }
        Ok(start)
    }
}

/// Reads enough of the store to fill the limit with objects that match.
async fn collect(store: &dyn Backend, target: &Target, filter: &Filter, start: &Start) -> Result<Page, Failure> {
    let whole_key = !target.namespace.is_empty() || !target.kind.namespaced;
    let from_now = start.after.is_none() && start.at.is_none();
    if let Some(name) = filter.only_name().filter(|_| whole_key && from_now) {
        return one(store, target, filter, name).await;
    }
    let mut after = start.after.clone();
    let mut at = start.at;
    let mut found = Vec::new();
    loop {
        let range = Range { prefix: start.prefix.as_str().into(), after, limit: start.limit, at };
        let page = store.range(range).await.map_err(too_old_or_unavailable)?;
        if filter.is_everything() {
            return Ok(page);
        }
        let last = page.entries.last().map(|entry| entry.key.clone());
        found.extend(page.entries.into_iter().filter(|entry| filter.matches(entry)));
        let done = page.remaining == 0 || (start.limit > 0 && found.len() > start.limit);
        match last {
            Some(last) if !done => {
                after = Some(last);
                at = Some(page.revision);
            }
            _ => return Ok(Page { entries: found, revision: page.revision, remaining: 0 }),
        }
    }
}

/// A list that can hold one object only is a look-up.
async fn one(store: &dyn Backend, target: &Target, filter: &Filter, name: &str) -> Result<Page, Failure> {
    let revision = store.revision().await.map_err(unavailable)?;
    let key = object::key(target.kind, &target.namespace, name);
    let entry = store.get(&key).await.map_err(unavailable)?;
    let entries: Vec<_> = entry.into_iter().filter(|entry| filter.matches(entry)).collect();
    let revision = entries.iter().map(|entry| entry.revision).fold(revision, Revision::max);
    Ok(Page { entries, revision, remaining: 0 })
}

/// Waits until the store has reached a revision; 504 if it does not in time.
pub(crate) async fn wait_for(store: &dyn Backend, wanted: Revision) -> Result<(), Failure> {
    let deadline = tokio::time::Instant::now() + FRESHNESS_WAIT;
    loop {
        let current = store.revision().await.map_err(unavailable)?;
        if current >= wanted {
            return Ok(());
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(too_large(wanted, current));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn too_large(wanted: Revision, current: Revision) -> Failure {
    let details = json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    });
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    Failure { details: Some(details), ..Failure::new(504, "Timeout", message) }
}

/// A continue token: which version the pages show, and after which key the next one begins.
fn continue_token(revision: Revision, prefix: &str, last: &str) -> String {
    let start = format!("{}\0", last.strip_prefix(prefix).unwrap_or(last));
    URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision.0, "start": start}).to_string())
}

fn read_continue_token(token: &str) -> Result<(Option<Revision>, String), Failure> {
    let invalid =
        |why: String| Failure::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            _ => token.len().saturating_sub(1),
        };
        invalid(format!("illegal base64 data at input byte {at}"))
    })?;
    let value: Value = fairlead_api::json::parse(&bytes).map_err(invalid)?.value;
    let start = value["start"].as_str().unwrap_or_default().trim_end_matches('\0').to_owned();
    if value["v"] != "meta.k8s.io/v1" || start.is_empty() || start.contains("..") {
        return Err(invalid("server does not recognize this encoded version".to_owned()));
    }
    // A version of -1 asks for the rest as it is now.
    Ok((value["rv"].as_u64().map(Revision), start))
}

/// 410 for a version that is no longer kept, 500 for a store that does not answer.
pub(crate) fn too_old_or_unavailable(error: StoreError) -> Failure {
    match error {
        StoreError::Compacted { .. } => Failure::new(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        ),
        StoreError::Future { requested, current } => too_large(requested, current),
        other => unavailable(other),
    }
}

/// 500 for a store that does not answer.
pub(crate) fn unavailable(error: StoreError) -> Failure {
    Failure::internal(error.to_string())
}
