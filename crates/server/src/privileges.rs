//! Who may make Pods that are more than unprivileged processes of their Node. The decision is made once, when a Pod is made, and
//! kept in an annotation that nobody else can write; the runner starts no such Pod without it.

use fairlead_api::kinds::pod::privileges::{self, ANNOTATION, GRANTED, RESOURCE};
use fairlead_api::status::Subject;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, kinds};

use crate::access::Access;
use crate::auth::User;
use crate::auth::rbac::{Attributes, Decision, Target as About};

/// Notes on a new Pod that it may have what it asks for, if who makes it may give that. Otherwise the warning says what is
/// missing. With `any_image` that is done for Pods with other images than the host's files, too.
pub(crate) fn grant(
    access: &Access,
    any_image: bool,
    user: Option<&User>,
    namespace: &str,
    kind: &Kind,
    pod: &mut Value,
) -> Option<String> {
    if *kind != kinds::POD || !any_image && !privileges::runs_on_host(pod) {
        return None;
    }
    let asked = privileges::asked(pod);
    let first = asked.first()?;
    let (group, resource) = RESOURCE;
    let about = About::Resource { group, resource, subresource: "", namespace, name: "" };
    let attributes = Attributes { verb: "use", target: about };
    let may = user.is_some_and(|user| matches!(access.decide(user, &attributes), Decision::Allow { .. }));
    if !may {
        return Some(format!(
            "{first}: a node of Fairlead does not run this Pod: who makes it may not \"use\" {resource}.{group} in namespace {namespace}"
        ));
    }
    note(pod);
    None
}

fn note(pod: &mut Value) {
    let mut all = pod.at("metadata").map("annotations").cloned().unwrap_or_default();
    all.insert(ANNOTATION, GRANTED.into());
    all.sort_keys();
    crate::write::set_metadata(pod, "annotations", all);
}

/// What an update leaves out stays.
pub(crate) fn keep(kind: &Kind, new: &mut Value, old: &Value) {
    if *kind == kinds::POD && privileges::annotation(old) == Some(GRANTED) && privileges::annotation(new).is_none() {
        note(new);
    }
}

/// 403 for a client that writes the note itself.
pub(crate) fn check(kind: &Kind, new: &Value, old: Option<&Value>) -> Result<(), Failure> {
    if *kind != kinds::POD || privileges::annotation(new) == old.and_then(privileges::annotation) {
        return Ok(());
    }
    let name = new.at("metadata").text("name");
    Err(Failure::forbidden(Subject { group: "", kind: "pods", name }, &privileges::not_yours().to_string()))
}
