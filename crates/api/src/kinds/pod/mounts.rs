//! Mistakes in how a container mounts the volumes of its Pod.

use std::collections::{BTreeSet, HashSet};

use crate::value::Value;

use super::env::no_backsteps;
use super::refuse;
use super::volumes::{Known, descending};
use crate::Path;
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;

/// `volumeMounts` and `volumeDevices`.
pub(super) fn validate(container: &Value, volumes: &Known<'_>, path: &Path, errors: &mut FieldErrors) {
    validate_mounts(container, volumes, &path.child("volumeMounts"), errors);
    validate_devices(container, volumes, &path.child("volumeDevices"), errors);
}

fn validate_mounts(container: &Value, volumes: &Known<'_>, list: &Path, errors: &mut FieldErrors) {
    let device_names = texts(container.list("volumeDevices"), "name");
    let device_paths = texts(container.list("volumeDevices"), "devicePath");
    let mut seen = BTreeSet::new();
    for (at, mount) in container.list("volumeMounts").iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let (path, name, place) = (list.index(at), mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&path.child("name"), name));
        }
        if place.is_empty() {
            errors.push(FieldError::required(&path.child("mountPath"), ""));
        }
        if !seen.insert(place) {
            errors.push(FieldError::invalid(&path.child("mountPath"), place, "must be unique"));
        }
        if device_names.contains(name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&path.child("name"), name, detail));
        }
        if device_paths.contains(place) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&path.child("mountPath"), place, detail));
        }
        validate_sub_path(mount, &path, list, errors);
        validate_propagation(mount, container, list, errors);
    }
}

/// Returns one field of each element of a list.
fn texts<'a>(list: &'a [Value], field: &str) -> HashSet<&'a str> {
    list.iter().map(|element| element.text(field)).collect()
}

/// The reference server names these fields without the index of the mount.
fn validate_sub_path(mount: &Value, path: &Path, list: &Path, errors: &mut FieldErrors) {
    let (plain, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
    refuse(errors, &list.child("subPath"), plain, descending(plain));
    if expression.is_empty() {
        return;
    }
    if !plain.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.push(FieldError::invalid(&path.child("subPathExpr"), expression, detail));
    }
    refuse(errors, &list.child("subPathExpr"), expression, descending(expression));
}

fn validate_propagation(mount: &Value, container: &Value, list: &Path, errors: &mut FieldErrors) {
    let (mode, path) = (mount.text_opt("mountPropagation"), list.child("mountPropagation"));
    let allowed = &["Bidirectional", "HostToContainer", "None"];
    match mode {
        Some("Bidirectional") if !container.at("securityContext").flag("privileged") => {
            let detail = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(FieldError::forbidden(&path, detail));
        }
        Some(mode) if !allowed.contains(&mode) => errors.push(FieldError::not_supported(&path, mode, allowed)),
        _ => {}
    }
    let path = list.child("recursiveReadOnly");
    match mount.text_opt("recursiveReadOnly") {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.flag("readOnly") {
                errors.push(FieldError::forbidden(&path, "may only be specified when readOnly is true"));
            }
            if mode.is_some_and(|mode| mode != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
        Some(mode) => errors.push(FieldError::not_supported(&path, mode, &["Disabled", "Enabled", "IfPossible"])),
    }
}

fn validate_devices(container: &Value, volumes: &Known<'_>, list: &Path, errors: &mut FieldErrors) {
    let mount_names = texts(container.list("volumeMounts"), "name");
    let mount_paths = texts(container.list("volumeMounts"), "mountPath");
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    for (at, device) in container.list("volumeDevices").iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let (path, name, place) = (list.index(at), device.text("name"), device.text("devicePath"));
        let (name_path, place_path) = (path.child("name"), path.child("devicePath"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else if !names.insert(name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(FieldError::not_found(&name_path, name)),
            Some(volume) if volume.get("persistentVolumeClaim").or(volume.get("ephemeral")).is_none() => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(&name_path, name, detail));
            }
            Some(_) => {}
        }
        if place.is_empty() {
            errors.push(FieldError::required(&place_path, ""));
        }
        if places.contains(place) {
            errors.push(FieldError::invalid(&place_path, place, "must be unique"));
        }
        if no_backsteps(place).is_empty() {
            places.insert(place);
        } else {
            errors.push(FieldError::invalid(&place_path, place, "can not contain backsteps ('..')"));
        }
        if mount_names.contains(name) {
            errors.push(FieldError::invalid(&name_path, name, "must not already exist in volumeMounts"));
        }
        if mount_paths.contains(place) {
            errors.push(FieldError::invalid(&place_path, place, "must not already exist as a path in volumeMounts"));
        }
    }
}
