//! What a Pod asks for that an unprivileged process of its Node may not have. Pods here are processes on the file system of
//! their Node, so another's user or group is as much a privilege as root.

use crate::look::Look;
use crate::{Path, field::FieldError};

/// The annotation of Pods that may have it. The server alone sets it, when the Pod is made.
pub const ANNOTATION: &str = "fairlead.dev/host-privileges";
/// Its value.
pub const GRANTED: &str = "granted";
/// Who may `use` this resource of this group may make such Pods.
pub const RESOURCE: (&str, &str) = ("fairlead.dev", "hostprivileges");

/// The image of containers that run on the file system of their Node.
pub const HOST_IMAGE: &str = "host";

/// The user and group that belong to nobody; greater ones are given to no account either.
const NOBODY: i64 = 65534;
/// The users and groups that Nodes give to Pods unless told otherwise, one to each. A Pod that
/// chooses one itself may be another's. No system or tool gives numbers between 1879048192 and
/// 2147483647 away (systemd, docs/UIDS-GIDS.md).
pub const POD_USERS: std::ops::RangeInclusive<i64> = 1_900_000_000..=1_900_065_535;
/// Ports below are for privileged processes.
const FREE_PORTS: i64 = 1024;

/// Whether a container of the Pod runs on the file system of its Node. Privileges in an image are another matter.
pub fn runs_on_host<V: Look>(pod: &V) -> bool {
    let of = |list: &str| pod.at("spec").list(list).iter().any(|container| container.text("image") == HOST_IMAGE);
    ["initContainers", "containers", "ephemeralContainers"].into_iter().any(of)
}

/// The fields by which a Pod asks for privileges; none: it needs none.
pub fn asked<V: Look>(pod: &V) -> Vec<Path> {
    let (spec, path) = (pod.at("spec"), Path::new("spec"));
    let mut fields = Vec::new();
    for name in ["hostNetwork", "hostPID", "hostIPC"] {
        if spec.flag(name) {
            fields.push(path.child(name));
        }
    }
    let (context, at) = (spec.at("securityContext"), path.child("securityContext"));
    accounts(context, &at, &["runAsUser", "runAsGroup", "fsGroup"], &mut fields);
    let groups = context.ints("supplementalGroups").into_iter().enumerate();
    for (index, _) in groups.filter(|(_, group)| is_account(*group)) {
        fields.push(at.child("supplementalGroups").index(index));
    }
    for (index, volume) in spec.list("volumes").iter().enumerate() {
        if volume.map("hostPath").is_some() {
            fields.push(path.child("volumes").index(index).child("hostPath"));
        }
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in spec.list(list).iter().enumerate() {
            of_container(container, &path.child(list).index(index), &mut fields);
        }
    }
    fields
}

fn of_container<V: Look>(container: &V, path: &Path, fields: &mut Vec<Path>) {
    let (context, at) = (container.at("securityContext"), path.child("securityContext"));
    accounts(context, &at, &["runAsUser", "runAsGroup"], fields);
    for name in ["privileged", "allowPrivilegeEscalation"] {
        if context.flag(name) {
            fields.push(at.child(name));
        }
    }
    if !context.at("capabilities").list("add").is_empty() {
        fields.push(at.child("capabilities").child("add"));
    }
    for (index, port) in container.list("ports").iter().enumerate() {
        if (1..FREE_PORTS).contains(&port.int("hostPort")) {
            fields.push(path.child("ports").index(index).child("hostPort"));
        }
    }
}

/// Users and groups that may be somebody's.
fn accounts<V: Look>(context: &V, path: &Path, names: &[&'static str], fields: &mut Vec<Path>) {
    for name in names {
        if context.int_opt(name).is_some_and(is_account) {
            fields.push(path.child(name));
        }
    }
}

/// Returns true if a user or group may be an account's or another Pod's.
fn is_account(id: i64) -> bool {
    id < NOBODY || POD_USERS.contains(&id)
}

/// What the annotation of an object says.
pub fn annotation<V: Look>(object: &V) -> Option<&str> {
    object.at("metadata").at("annotations").text_opt(ANNOTATION)
}

/// The mistake of a client that sets the annotation.
pub fn not_yours() -> FieldError {
    let why = "is set by the server alone, when who makes the Pod may \"use\" hostprivileges.fairlead.dev";
    FieldError::forbidden(&Path::new("metadata").child("annotations").key(ANNOTATION), why)
}

#[cfg(test)]
mod tests;
