//! Deleting objects: at once, with grace, or when the last finalizer is gone; one or many.

use std::sync::Arc;
use std::time::Instant;

use fairlead_api::field::{FieldErrors, Path};
use fairlead_api::kinds::pod::Grace;
use fairlead_api::status::Subject;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, FieldError, Kind, Look, Settings, kinds, schema};
use fairlead_store::{Entry, Guard, Outcome, Revision, Txn, Write};

use crate::allocate::{self, Allocation};
use crate::body::{self, Expected};
use crate::options::{FieldValidation, ListOptions, Query, dry_run_errors, invalid_options};
use crate::read::{self, subject};
use crate::reply::{List, Payload, Reply};
use crate::route::Target;
use crate::{Inner, clock, object, write};

/// How often a delete that lost a race looks again.
const ATTEMPTS: usize = 12;

/// How to delete: from the body, or from the query if there is no body.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    grace: Option<i64>,
    uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    finalizer: Option<Finalizer>,
    pub(crate) dry_run: bool,
}

/// What a propagation policy adds to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finalizer {
    /// Dependents are orphaned first.
    Orphan,
    /// Dependents are deleted first.
    Foreground,
    /// Neither.
    None,
}

impl DeleteOptions {
    pub(crate) fn parse(
        bytes: &[u8],
        media: &str,
        query: &Query,
        settings: &Settings,
    ) -> Result<DeleteOptions, Failure> {
        let value = if bytes.is_empty() {
            from_query(query)?
        } else {
            let expected = Expected::message("DeleteOptions", "v1", &schema::meta::DELETE_OPTIONS);
            body::decode(bytes, media, &expected, FieldValidation::Ignore, settings)?.value
        };
        DeleteOptions::read(&value)
    }

    /// Reads a decoded DeleteOptions; null is one that asks for nothing.
    pub(crate) fn read(value: &Value) -> Result<DeleteOptions, Failure> {
        let dry_run = value.texts("dryRun");
        let (policy, orphan) = (value.text_opt("propagationPolicy"), value.flag_opt("orphanDependents"));
        let mut errors = policy_errors(policy, orphan);
        errors.extend(dry_run_errors(&dry_run));
        invalid_options("DeleteOptions", &errors)?;
        let preconditions = value.at("preconditions");
        Ok(DeleteOptions {
            grace: value.int_opt("gracePeriodSeconds"),
            uid: preconditions.text_opt("uid").map(str::to_owned),
            resource_version: preconditions.text_opt("resourceVersion").map(str::to_owned),
            finalizer: match (policy, orphan) {
                (Some("Orphan"), _) | (_, Some(true)) => Some(Finalizer::Orphan),
                (Some("Foreground"), _) => Some(Finalizer::Foreground),
                (Some(_), _) | (_, Some(false)) => Some(Finalizer::None),
                (None, None) => None,
            },
            dry_run: !dry_run.is_empty(),
        })
    }
}

fn from_query(query: &Query) -> Result<Value, Failure> {
    let mut value = json!({});
    if let Some(grace) = query.number("gracePeriodSeconds")? {
        value.set("gracePeriodSeconds", grace);
    }
    if let Some(policy) = query.get("propagationPolicy").filter(|policy| !policy.is_empty()) {
        value.set("propagationPolicy", policy);
    }
    if let Some(orphan) = query.flag("orphanDependents") {
        value.set("orphanDependents", orphan);
    }
    let dry_run: Vec<Value> = query.all("dryRun").into_iter().map(Value::from).collect();
    if !dry_run.is_empty() {
        value.set("dryRun", dry_run);
    }
    Ok(value)
}

fn policy_errors(policy: Option<&str>, orphan: Option<bool>) -> FieldErrors {
    let path = Path::new("propagationPolicy");
    let mut errors = FieldErrors::new();
    if let (Some(policy), Some(_)) = (policy, orphan) {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid(&path, policy, why));
    }
    match policy {
        None | Some("Foreground" | "Background" | "Orphan") => {}
        Some(other) => {
            errors.push(FieldError::not_supported(&path, other, &["Foreground", "Background", "Orphan", "nil"]));
        }
    }
    errors
}

/// Deletes one object.
pub(crate) async fn delete(server: &Inner, target: &Target, options: &DeleteOptions) -> Result<Reply, Failure> {
    protect(target)?;
    for _ in 0..ATTEMPTS {
        let entry = read::find(&*server.store, target).await?;
        if let Some(reply) = try_delete(server, target, &entry, options).await? {
            return Ok(reply);
        }
    }
    Err(Failure::conflict(subject(target), "the object has been modified; please try again"))
}

/// Namespaces the cluster cannot be without.
fn protect(target: &Target) -> Result<(), Failure> {
    if target.kind.resource == "namespaces" && kinds::namespace::KEPT.contains(&target.name.as_str()) {
        return Err(Failure::forbidden(subject(target), "this namespace may not be deleted"));
    }
    Ok(())
}

/// `None` when the object changed meanwhile.
async fn try_delete(
    server: &Inner,
    target: &Target,
    entry: &Arc<Entry>,
    options: &DeleteOptions,
) -> Result<Option<Reply>, Failure> {
    let kind = target.kind;
    let old = object::load(kind, entry)?;
    check_preconditions(kind, &old, options)?;
    let fate = fate(kind, &old, options);
    let key = object::key(kind, &target.namespace, &target.name);
    if options.dry_run {
        return reply(kind, fate.object(), entry.revision, fate.is_gone()).map(Some);
    }
    let Allocation { mut guards, mut writes, lock, .. } = match &fate {
        Fate::Gone(_) => release(server, kind, &old).await?,
        Fate::Marked(_) => Allocation::default(),
    };
    guards.insert(0, Guard::At(key.clone(), entry.revision));
    match &fate {
        Fate::Gone(_) => writes.insert(0, Write::Delete(key)),
        Fate::Marked(object) if object == &old => return reply(kind, object, entry.revision, false).map(Some),
        Fate::Marked(object) => writes.insert(0, Write::Put(key, object::draft(kind, object))),
    }
    let outcome = server.commit(Txn { guards, writes }, Instant::now()).await?;
    drop(lock);
    match outcome {
        Outcome::Done(revision) => reply(kind, fate.object(), revision, fate.is_gone()).map(Some),
        Outcome::Refused(_) => Ok(None),
    }
}

/// Refuses an object that is not the one the options are for.
pub(crate) fn check_preconditions(kind: &Kind, old: &Value, options: &DeleteOptions) -> Result<(), Failure> {
    let metadata = old.at("metadata");
    let name = metadata.text("name");
    let conflict = |why: String| Failure::conflict(Subject { group: kind.group, kind: kind.kind, name }, &why);
    let (uid, version) = (metadata.text("uid"), metadata.text("resourceVersion"));
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        return Err(conflict(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        )));
    }
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        )));
    }
    Ok(())
}

/// What a delete makes of an object.
enum Fate {
    /// It is removed; this is what it was.
    Gone(Value),
    /// It stays, marked, until its finalizers or its grace period are over.
    Marked(Value),
}

impl Fate {
    fn object(&self) -> &Value {
        match self {
            Fate::Gone(object) | Fate::Marked(object) => object,
        }
    }
    fn is_gone(&self) -> bool {
        matches!(self, Fate::Gone(_))
    }
}

fn fate(kind: &'static Kind, old: &Value, options: &DeleteOptions) -> Fate {
    let mut object = old.clone();
    // Pods of a ReplicationController stay unless the request says otherwise, as they did before
    // there was a garbage collector (pkg/registry/core/replicationcontroller/strategy.go,
    // DefaultGarbageCollectionPolicy).
    let usual = (*kind == kinds::REPLICATION_CONTROLLER).then_some(Finalizer::Orphan);
    set_finalizers(&mut object, options.finalizer.or(usual));
    let waits = !object.at("metadata").list("finalizers").is_empty();
    match kind.resource {
        "pods" => return pod_fate(object, waits, options),
        "namespaces" => return namespace_fate(object),
        _ => {}
    }
    if !waits {
        return Fate::Gone(object);
    }
    mark(&mut object, 0);
    Fate::Marked(object)
}

/// Sets the time of deletion once; a shorter grace period brings it nearer.
fn mark(object: &mut Value, grace: i64) {
    let metadata = object.at("metadata");
    let marked = !metadata.text("deletionTimestamp").is_empty();
    if marked && metadata.int("deletionGracePeriodSeconds") <= grace {
        return;
    }
    let metadata = object.map_mut("metadata");
    metadata.insert("deletionTimestamp", clock::in_seconds(grace).into());
    metadata.insert("deletionGracePeriodSeconds", grace.into());
    if let (false, Some(generation)) = (marked, metadata.get("generation").and_then(Value::as_i64)) {
        metadata.insert("generation", (generation + 1).into());
    }
    write::arrange_metadata(object);
}

fn set_finalizers(object: &mut Value, wanted: Option<Finalizer>) {
    let Some(wanted) = wanted else { return };
    let metadata = object.at("metadata");
    let mut finalizers: Vec<Value> = metadata.list("finalizers").to_vec();
    finalizers.retain(|name| name != "orphan" && name != "foregroundDeletion");
    match wanted {
        Finalizer::Orphan => finalizers.push("orphan".into()),
        Finalizer::Foreground => finalizers.push("foregroundDeletion".into()),
        Finalizer::None => {}
    }
    let metadata = object.map_mut("metadata");
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers", finalizers.into());
        write::arrange_metadata(object);
    }
}

/// A Pod on a node is given time; one that never ran is not.
fn pod_fate(mut object: Value, waits: bool, options: &DeleteOptions) -> Fate {
    let seconds = match kinds::pod::grace(&object, &json!({"gracePeriodSeconds": options.grace})) {
        Grace::AtOnce => 0,
        Grace::Seconds(seconds) => seconds,
    };
    mark(&mut object, seconds);
    if seconds == 0 && !waits { Fate::Gone(object) } else { Fate::Marked(object) }
}

/// A Namespace goes when its content has gone.
fn namespace_fate(mut object: Value) -> Fate {
    kinds::namespace::terminate(&mut object, &clock::now());
    if kinds::namespace::is_finalized(&object) { Fate::Gone(object) } else { Fate::Marked(object) }
}

/// What goes with an object: a Service gives back its addresses and ports, and takes its Endpoints with it.
pub(crate) async fn release(server: &Inner, kind: &'static Kind, old: &Value) -> Result<Allocation, Failure> {
    let mut allocation = allocate::release(server, kind, old).await?;
    if kind.resource == "services" {
        let metadata = old.at("metadata");
        let key = object::key(&kinds::ENDPOINTS, metadata.text("namespace"), metadata.text("name"));
        allocation.writes.push(Write::Delete(key));
    }
    Ok(allocation)
}

fn reply(kind: &'static Kind, object: &Value, revision: Revision, gone: bool) -> Result<Reply, Failure> {
    let metadata = object.at("metadata");
    if !kind.traits.delete_returns_object && gone {
        let mut details = json!({"name": metadata.text("name")});
        if !kind.group.is_empty() {
            details.set("group", kind.group);
        }
        details.set("kind", kind.resource);
        details.set("uid", metadata.text("uid"));
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        return Ok(Reply::document(200, status));
    }
    Ok(Reply::object(200, kind, object::encode(object).at(revision)))
}

/// Deletes every object a selection names; answers the list as it was.
pub(crate) async fn delete_collection(
    server: &Inner,
    target: &Target,
    list: &ListOptions,
    options: &DeleteOptions,
) -> Result<Reply, Failure> {
    let reply = read::list(&*server.store, target, list).await?;
    let Payload::List(List { entries, .. }) = &reply.payload else { return Ok(reply) };
    for entry in entries {
        let object = object::load(target.kind, entry)?;
        let metadata = object.at("metadata");
        let one = Target {
            namespace: metadata.text("namespace").to_owned(),
            name: metadata.text("name").to_owned(),
            ..target.clone()
        };
        match delete(server, &one, options).await {
            // Another client was quicker: the others still go. A precondition that does not hold
            // ends the request, as in kube-apiserver (registry/generic/registry/store.go,
            // DeleteCollection).
            Ok(_) | Err(Failure { code: 404, .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(reply)
}
