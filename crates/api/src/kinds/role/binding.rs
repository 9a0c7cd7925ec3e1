//! RoleBinding and ClusterRoleBinding: who may do what a role allows.

use crate::value::{Value, json};

use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::kinds::{Rules, columns};
use crate::meta::Checks;
use crate::schema::rbac::SUBJECT;
use crate::{Look, Settings, names};

/// The rules of RoleBinding.
pub static BINDING_RULES: Rules = Rules {
    name: |name, _| names::path_segment(name),
    metadata: Checks::WHOLE_FIRST,
    default,
    validate: |object, _, _| validate(object, &["Role", "ClusterRole"], true),
    validate_update,
    columns: &[
        columns::NAME,
        columns::text("Role", "The role it grants."),
        columns::AGE,
        columns::wide("Users", "Users it is granted to."),
        columns::wide("Groups", "Groups it is granted to."),
        columns::wide("ServiceAccounts", "ServiceAccounts it is granted to."),
    ],
    row,
    ..Rules::PLAIN
};

/// The rules of ClusterRoleBinding.
pub static CLUSTER_BINDING_RULES: Rules =
    Rules { validate: |object, _, _| validate(object, &["ClusterRole"], false), ..BINDING_RULES };

const GROUP: &str = "rbac.authorization.k8s.io";

fn default(object: &mut Value, _: &Settings) {
    if let Some(role) = object.get_mut("roleRef")
        && role.text("apiGroup").is_empty()
    {
        role.set("apiGroup", GROUP);
    }
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if ["User", "Group"].contains(&subject.text("kind")) && subject.text("apiGroup").is_empty() {
            SUBJECT.place(subject, "apiGroup", GROUP);
        }
    }
}

fn validate(object: &Value, kinds: &[&str], namespaced: bool) -> FieldErrors {
    let (path, role) = (Path::new("roleRef"), object.at("roleRef"));
    let mut errors = FieldErrors::new();
    if role.text("apiGroup") != GROUP {
        errors.push(FieldError::not_supported(&path.child("apiGroup"), role.text("apiGroup"), &[GROUP]));
    }
    if !kinds.contains(&role.text("kind")) {
        errors.push(FieldError::not_supported(&path.child("kind"), role.text("kind"), kinds));
    }
    match role.text("name") {
        "" => errors.push(FieldError::required(&path.child("name"), "")),
        name => errors.extend(invalid(&path.child("name"), name, names::path_segment(name))),
    }
    for (index, it) in object.list("subjects").iter().enumerate() {
        errors.extend(subject(it, namespaced, &Path::new("subjects").index(index)));
    }
    errors
}

fn subject(subject: &Value, namespaced: bool, path: &Path) -> FieldErrors {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    let mut errors = FieldErrors::new();
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.extend(invalid(&path.child("name"), name, names::subdomain(name)));
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[""]));
            }
            if !namespaced && subject.text("namespace").is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" if group == GROUP => {}
        "User" | "Group" => errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[GROUP])),
        other => {
            let kinds = &["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.child("kind"), other, kinds));
        }
    }
    errors
}

/// What a binding grants never changes; only to whom.
fn validate_update(object: &Value, old: &Value, _: &Settings) -> FieldErrors {
    let role = object.at("roleRef");
    if role == old.at("roleRef") {
        return FieldErrors::new();
    }
    // Shown by the names of the reference server's internal type.
    let shown = json!({"APIGroup": role.text("apiGroup"), "Kind": role.text("kind"), "Name": role.text("name")});
    FieldErrors::from([FieldError::invalid(&Path::new("roleRef"), &shown, "cannot change roleRef")])
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let role = object.at("roleRef");
    let of_kind = |kind: &'static str| object.list("subjects").iter().filter(move |s| s.text("kind") == kind);
    let names = |kind| of_kind(kind).map(|s| s.text("name")).collect::<Vec<_>>().join(", ");
    let accounts: Vec<String> =
        of_kind("ServiceAccount").map(|s| format!("{}/{}", s.text("namespace"), s.text("name"))).collect();
    vec![
        columns::name(object),
        format!("{}/{}", role.text("kind"), role.text("name")).into(),
        columns::age_of(object, now),
        names("User").into(),
        names("Group").into(),
        accounts.join(", ").into(),
    ]
}
