//! Pods that are more than unprivileged processes of their Node, and the users that may make them. The decision is made when a
//! Pod, or an object that makes Pods, is written, and kept in an annotation that no client can write; the runner starts no such
//! Pod without it.
//!
//! A controller may make every Pod, so for Pods of a Deployment and the like the decision about their
//! owner counts: a user that may write Deployments gets no privileges by them.

use fairlead_api::kinds::pod::privileges::{self, ANNOTATION, GRANTED, RESOURCE};
use fairlead_api::status::Subject;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, kinds};

use crate::access::Access;
use crate::auth::User;
use crate::auth::rbac::{Attributes, Decision, Target as About};
use crate::{Inner, object, read};

/// Fields of a Pod's spec that must be as in the template of its owner, if the owner's grant is to
/// count. Controllers set others: affinity, tolerations, hostname.
const GRANTED_FIELDS: [&str; 8] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "securityContext",
    "initContainers",
    "containers",
    "ephemeralContainers",
    "volumes",
];

/// The kinds with a Pod template whose Pods a controller of Fairlead makes.
fn makes_pods(kind: &Kind) -> bool {
    let kinds = [
        &kinds::DEPLOYMENT,
        &kinds::REPLICA_SET,
        &kinds::STATEFUL_SET,
        &kinds::DAEMON_SET,
        &kinds::REPLICATION_CONTROLLER,
    ];
    kinds.contains(&kind)
}

/// Returns the Pod that an object is or makes, and the path to it, if the object can be granted
/// privileges.
fn pod_of<'a>(kind: &Kind, object: &'a Value) -> Option<(&'a Value, &'static str)> {
    match kind {
        kind if *kind == kinds::POD => Some((object, "")),
        kind if makes_pods(kind) => Some((object.at("spec").at("template"), "spec.template.")),
        _ => None,
    }
}

/// Returns the first field by which an object asks for privileges, if it does. With `any_image`
/// Pods with other images than the host's files count, too.
fn asked(any_image: bool, kind: &Kind, object: &Value) -> Option<String> {
    let (pod, path) = pod_of(kind, object)?;
    if !any_image && !privileges::runs_on_host(pod) {
        return None;
    }
    privileges::asked(pod).first().map(|field| format!("{path}{field}"))
}

/// Notes on a new object that it may have the privileges it asks for, if its creator may give them.
/// Otherwise the warning says what is missing.
pub(crate) async fn grant(
    server: &Inner,
    user: Option<&User>,
    namespace: &str,
    kind: &Kind,
    object: &mut Value,
) -> Result<Option<String>, Failure> {
    let Some(first) = asked(server.options.admission.grants_for_images, kind, object) else { return Ok(None) };
    if !owner_is_granted(server, namespace, kind, object).await? {
        return Ok(Some(format!(
            "{first}: a node of Fairlead does not run this Pod: its owner has no grant of host privileges for it"
        )));
    }
    Ok(grant_for_user(&server.access, user, namespace, &first, object))
}

/// Decides again about an object that makes Pods, when its template changes. An unchanged template
/// keeps the decision. A template that asked for privileges without a grant gets none by an update:
/// the user that restarts such a Deployment, or sets its image, is not the author of the rest.
pub(crate) fn grant_update(
    server: &Inner,
    user: Option<&User>,
    namespace: &str,
    kind: &Kind,
    new: &mut Value,
    old: &Value,
) -> Option<String> {
    if !makes_pods(kind) || new.at("spec").at("template") == old.at("spec").at("template") {
        return None;
    }
    let mut annotations = new.at("metadata").map("annotations").cloned().unwrap_or_default();
    if annotations.shift_remove(ANNOTATION).is_some() {
        crate::write::set_metadata(new, "annotations", annotations);
    }
    let any_image = server.options.admission.grants_for_images;
    let first = asked(any_image, kind, new)?;
    if asked(any_image, kind, old).is_some() && privileges::annotation(old) != Some(GRANTED) {
        return Some(format!(
            "{first}: a node of Fairlead does not run this Pod: it had no grant of host privileges before; delete the object and create \
             it again to have one"
        ));
    }
    grant_for_user(&server.access, user, namespace, &first, new)
}

/// Notes the grant if the user may give it, and returns a warning otherwise.
fn grant_for_user(
    access: &Access,
    user: Option<&User>,
    namespace: &str,
    first: &str,
    object: &mut Value,
) -> Option<String> {
    let (group, resource) = RESOURCE;
    let about = About::Resource { group, resource, subresource: "", namespace, name: "" };
    let attributes = Attributes { verb: "use", target: about };
    let may = user.is_some_and(|user| matches!(access.decide(user, &attributes), Decision::Allow { .. }));
    if !may {
        return Some(format!(
            "{first}: a node of Fairlead does not run this Pod: who makes it may not \"use\" {resource}.{group} in namespace {namespace}"
        ));
    }
    note(object);
    None
}

/// Returns true if an object has no controller that makes Pods, or one with a grant for this Pod.
async fn owner_is_granted(server: &Inner, namespace: &str, kind: &Kind, object: &Value) -> Result<bool, Failure> {
    let Some((pod, _)) = pod_of(kind, object) else { return Ok(true) };
    let owners = object.at("metadata").list("ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner.flag("controller")) else { return Ok(true) };
    let (version, name) = (owner.text("apiVersion"), owner.text("kind"));
    let known = kinds::KINDS.iter().find(|known| known.kind == name && known.api_version() == version);
    let Some(owner_kind) = known.copied().filter(|kind| makes_pods(kind)) else { return Ok(true) };
    let key = object::key(owner_kind, namespace, owner.text("name"));
    let Some(entry) = server.store.get(&key).await.map_err(read::unavailable)? else { return Ok(false) };
    let found = object::load(owner_kind, &entry)?;
    let mut template = found.at("spec").at("template").clone();
    if *kind == kinds::POD {
        // Some fields have defaults in Pods only.
        (kind.rules.default)(&mut template, &server.options.settings);
    }
    let (spec, template) = (pod.at("spec"), template.at("spec"));
    Ok(found.at("metadata").text("uid") == owner.text("uid")
        && privileges::annotation(&found) == Some(GRANTED)
        && GRANTED_FIELDS.iter().all(|field| spec.at(field) == template.at(field)))
}

fn note(object: &mut Value) {
    let mut all = object.at("metadata").map("annotations").cloned().unwrap_or_default();
    all.insert(ANNOTATION, GRANTED.into());
    all.sort_keys();
    crate::write::set_metadata(object, "annotations", all);
}

/// What an update leaves out stays.
pub(crate) fn keep(kind: &Kind, new: &mut Value, old: &Value) {
    if pod_of(kind, old).is_some()
        && privileges::annotation(old) == Some(GRANTED)
        && privileges::annotation(new).is_none()
    {
        note(new);
    }
}

/// 403 for a client that writes the note itself.
pub(crate) fn check(kind: &Kind, new: &Value, old: Option<&Value>) -> Result<(), Failure> {
    if pod_of(kind, new).is_none() || privileges::annotation(new) == old.and_then(privileges::annotation) {
        return Ok(());
    }
    let name = new.at("metadata").text("name");
    Err(Failure::forbidden(
        Subject { group: kind.group, kind: kind.resource, name },
        &privileges::not_yours().to_string(),
    ))
}
