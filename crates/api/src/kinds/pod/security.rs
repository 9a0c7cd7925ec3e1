//! Mistakes in the security contexts of a Pod and its containers. Whether a Pod may ask for what it asks is not decided here.

use std::collections::HashSet;

use crate::value::Value;

use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::{Path, names};

/// `securityContext` of the Pod.
pub(super) fn validate_pod(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let (context, path) = (spec.at("securityContext"), path.child("securityContext"));
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        validate_id(context.at(field), &path.child(field), errors);
    }
    for (at, group) in context.list("supplementalGroups").iter().enumerate() {
        validate_id(group, &path.child("supplementalGroups").index(at), errors);
    }
    if spec.flag("shareProcessNamespace") && spec.flag("hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, detail));
    }
    validate_sysctls(spec, &path.child("sysctls"), errors);
    let words: [(&str, &[&str]); 3] = [
        ("fsGroupChangePolicy", &["Always", "OnRootMismatch"]),
        ("supplementalGroupsPolicy", &["Merge", "Strict"]),
        ("seLinuxChangePolicy", &["MountOption", "Recursive"]),
    ];
    validate_word(context, words[0], &path, errors);
    validate_profiles(context, &path, errors);
    validate_word(context, words[1], &path, errors);
    validate_word(context, words[2], &path, errors);
}

/// What cannot be shared with the host by a Pod with users of its own.
pub(super) fn validate_host_users(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    if spec.flag_opt("hostUsers") != Some(false) {
        return;
    }
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.flag(field) {
            errors.push(FieldError::forbidden(&path.child(shown), "when `hostUsers` is false"));
        }
    }
}

/// `securityContext` of a container. `pod` is the spec it stands in.
pub(super) fn validate_container(context: &Value, pod: &Value, path: &Path, errors: &mut FieldErrors) {
    for field in ["runAsUser", "runAsGroup"] {
        validate_id(context.at(field), &path.child(field), errors);
    }
    if let Some(mount) = context.text_opt("procMount") {
        if !["Default", "Unmasked"].contains(&mount) {
            errors.push(FieldError::not_supported(&path.child("procMount"), mount, &["Default", "Unmasked"]));
        }
        if mount == "Unmasked" && pod.flag_opt("hostUsers") != Some(false) {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(&path.child("procMount"), mount, detail));
        }
    }
    validate_escalation(context, path, errors);
    validate_profiles(context, path, errors);
}

fn validate_escalation(context: &Value, path: &Path, errors: &mut FieldErrors) {
    if context.flag_opt("allowPrivilegeEscalation") != Some(false) {
        return;
    }
    if context.flag("privileged") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(FieldError::invalid(path, context, detail));
    }
    if context.at("capabilities").texts("add").contains(&"CAP_SYS_ADMIN") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(FieldError::invalid(path, context, detail));
    }
}

fn validate_id(id: &Value, path: &Path, errors: &mut FieldErrors) {
    let Some(id) = id.as_i64() else { return };
    let reasons = names::in_range(id, 0, i32::MAX.into());
    errors.extend(reasons.into_iter().map(|reason| FieldError::invalid(path, id, reason)));
}

fn validate_word(context: &Value, (field, allowed): (&str, &[&str]), path: &Path, errors: &mut FieldErrors) {
    if let Some(word) = context.text_opt(field).filter(|word| !allowed.contains(word)) {
        errors.push(FieldError::not_supported(&path.child(field), word, allowed));
    }
}

const MAX_SYSCTL: usize = 253;
const SYSCTL: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

fn validate_sysctls(spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for (at, sysctl) in spec.at("securityContext").list("sysctls").iter().enumerate() {
        let (name, path) = (sysctl.text("name"), path.index(at).child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let detail = format!("must have at most {MAX_SYSCTL} characters and match regex {SYSCTL}");
            errors.push(FieldError::invalid(&path, name, detail));
        } else if seen.contains(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        seen.insert(name);
        let dotted = name.replace('/', ".");
        let shared = |namespace: &[&str]| namespace.iter().any(|prefix| dotted.starts_with(prefix));
        if spec.flag("hostNetwork") && shared(&["net."]) {
            errors.push(FieldError::invalid(&path, name, "may not be specified when 'hostNetwork' is true"));
        } else if spec.flag("hostIPC") && shared(&["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."]) {
            errors.push(FieldError::invalid(&path, name, "may not be specified when 'hostIPC' is true"));
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || "-_".contains(c))
    };
    name.len() <= MAX_SYSCTL && name.split(['.', '/']).all(part)
}

/// `seccompProfile` and `appArmorProfile`.
fn validate_profiles(context: &Value, path: &Path, errors: &mut FieldErrors) {
    let allowed = &["Localhost", "RuntimeDefault", "Unconfined"];
    for (field, shown) in [("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")] {
        let (profile, path) = (context.at(field), path.child(field));
        let (kind, local) = (profile.text("type"), profile.at("localhostProfile"));
        match kind {
            _ if profile.is_null() => continue,
            "" => {
                errors.push(FieldError::required(&path.child("type"), format!("type is required when {field} is set")))
            }
            kind if allowed.contains(&kind) => {}
            kind => errors.push(FieldError::not_supported(&path.child("type"), kind, allowed)),
        }
        let path = path.child("localhostProfile");
        if kind == "Localhost" && local.is_null() {
            errors.push(FieldError::required(&path, format!("must be set when {shown} type is Localhost")));
        } else if kind != "Localhost" && !local.is_null() {
            errors.push(FieldError::invalid(&path, local, format!("can only be set when {shown} type is Localhost")));
        }
    }
}
