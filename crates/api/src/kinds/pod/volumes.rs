//! Defaults of and mistakes in the volumes of a Pod. Kinds of volumes that only a cluster of containers can have are checked
//! for their name and for being the only kind, no further.

use std::collections::{BTreeMap, HashSet};

use crate::value::{Value, json};

use super::defaults::{absent, items, pull_policy};
use super::env::{no_backsteps, validate_field, validate_resource_field};
use super::{refuse, spec};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::quantity::Quantity;
use crate::{Path, names};

/// The volumes that containers may mount, by name.
pub(super) type Known<'a> = BTreeMap<&'a str, &'a Value>;

/// File modes when none is given: readable by all, written by the owner.
const FILE_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

/// Fills in what a volume leaves out.
pub(super) fn fill(volume: &mut Value) {
    if !SOURCES.iter().any(|source| volume.get(source.0).is_some()) {
        volume.set("emptyDir", json!({}));
    }
    if let Some(host) = volume.get_mut("hostPath") {
        absent(host, "type", "");
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            absent(source, "defaultMode", FILE_MODE);
        }
    }
    volume.get_mut("downwardAPI").into_iter().for_each(fill_files);
    for source in volume.get_mut("projected").into_iter().flat_map(|projected| items(projected, "sources")) {
        source.get_mut("downwardAPI").into_iter().for_each(fill_files);
        if let Some(token) = source.get_mut("serviceAccountToken") {
            absent(token, "expirationSeconds", TOKEN_SECONDS);
        }
    }
    if let Some(image) = volume.get_mut("image") {
        let pull = pull_policy(image.text("reference"));
        absent(image, "pullPolicy", pull);
    }
}

fn fill_files(downward: &mut Value) {
    for field in items(downward, "items").filter_map(|file| file.get_mut("fieldRef")) {
        absent(field, "apiVersion", "v1");
    }
}

/// Checks volumes and gives those without mistakes. `metadata` is the Pod's.
pub(super) fn validate<'a>(metadata: &Value, volumes: &'a [Value], list: &Path, errors: &mut FieldErrors) -> Known<'a> {
    let created: HashSet<String> = volumes
        .iter()
        .filter(|volume| !volume.at("ephemeral").is_null() && !metadata.text("name").is_empty())
        .map(|volume| format!("{}-{}", metadata.text("name"), volume.text("name")))
        .collect();
    let mut known = Known::new();
    for (at, volume) in volumes.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let (path, name) = (list.index(at), volume.text("name"));
        let mut found = FieldErrors::new();
        validate_source(volume, &path, &mut found);
        match name {
            "" => found.push(FieldError::required(&path.child("name"), "")),
            name => refuse(&mut found, &path.child("name"), name, names::label(name)),
        }
        if known.contains_key(name) {
            found.push(FieldError::duplicate(&path.child("name"), name));
        }
        if found.is_empty() {
            known.insert(name, volume);
        }
        errors.extend(found);
        let claim = volume.at("persistentVolumeClaim").text("claimName");
        if created.contains(claim) {
            let path = path.child("persistentVolumeClaim").child("claimName");
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&path, claim, detail));
        }
    }
    known
}

/// Tokens of a service account where the Pod has none.
pub(super) fn validate_no_tokens(volumes: &[Value], list: &Path, errors: &mut FieldErrors) {
    for (at, volume) in volumes.iter().enumerate() {
        let sources = list.index(at).child("projected").child("sources");
        for (at, source) in volume.at("projected").list("sources").iter().enumerate() {
            if !source.at("serviceAccountToken").is_null() {
                let detail = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&sources.index(at).child("serviceAccountToken"), detail));
            }
        }
    }
}

type Rule = fn(&Value, &Path, &mut FieldErrors);

/// The kinds of volumes in the order they are looked at, with what each requires.
const SOURCES: &[(&str, Rule)] = &[
    ("emptyDir", validate_empty_dir),
    ("hostPath", validate_host_path),
    ("gitRepo", |source, path, errors| require(source, &["repository"], path, errors)),
    ("gcePersistentDisk", |source, path, errors| require(source, &["pdName"], path, errors)),
    ("awsElasticBlockStore", |source, path, errors| require(source, &["volumeID"], path, errors)),
    ("secret", |source, path, errors| validate_keys(source, "secretName", path, errors)),
    ("nfs", validate_nfs),
    ("iscsi", |source, path, errors| require(source, &["targetPortal", "iqn"], path, errors)),
    ("glusterfs", |source, path, errors| require(source, &["endpoints", "path"], path, errors)),
    ("flocker", |_, _, _| {}),
    ("persistentVolumeClaim", |source, path, errors| require(source, &["claimName"], path, errors)),
    ("rbd", |source, path, errors| require(source, &["image"], path, errors)),
    ("cinder", |source, path, errors| require(source, &["volumeID"], path, errors)),
    ("cephfs", |_, _, _| {}),
    ("quobyte", |source, path, errors| require(source, &["registry"], path, errors)),
    ("downwardAPI", validate_downward),
    ("fc", |_, _, _| {}),
    ("flexVolume", |source, path, errors| require(source, &["driver"], path, errors)),
    ("configMap", |source, path, errors| validate_keys(source, "name", path, errors)),
    ("azureFile", |source, path, errors| require(source, &["secretName", "shareName"], path, errors)),
    ("vsphereVolume", |source, path, errors| require(source, &["volumePath"], path, errors)),
    ("photonPersistentDisk", |source, path, errors| require(source, &["pdID"], path, errors)),
    ("portworxVolume", |source, path, errors| require(source, &["volumeID"], path, errors)),
    ("azureDisk", |source, path, errors| require(source, &["diskName", "diskURI"], path, errors)),
    ("storageos", |_, _, _| {}),
    ("projected", |source, path, errors| validate_mode(source, "defaultMode", path, errors)),
    ("scaleIO", |source, path, errors| require(source, &["gateway", "system", "volumeName"], path, errors)),
    ("csi", |source, path, errors| require(source, &["driver"], path, errors)),
    ("ephemeral", |source, path, errors| {
        if source.at("volumeClaimTemplate").is_null() {
            errors.push(FieldError::required(&path.child("volumeClaimTemplate"), ""));
        }
    }),
    ("image", |source, path, errors| {
        require(source, &["reference"], path, errors);
        spec::one_of(source, "pullPolicy", &["Always", "IfNotPresent", "Never"], path, errors);
    }),
];

fn validate_source(volume: &Value, path: &Path, errors: &mut FieldErrors) {
    let mut given = SOURCES.iter().filter(|(name, _)| !volume.at(name).is_null());
    let Some((first, rule)) = given.next() else {
        return errors.push(FieldError::required(path, "must specify a volume type"));
    };
    rule(volume.at(first), &path.child(first), errors);
    for (other, _) in given {
        errors.push(FieldError::forbidden(&path.child(other), "may not specify more than 1 volume type"));
    }
}

fn require(source: &Value, fields: &[&str], path: &Path, errors: &mut FieldErrors) {
    for field in fields.iter().filter(|field| source.text(field).is_empty()) {
        errors.push(FieldError::required(&path.child(field), ""));
    }
}

fn validate_empty_dir(source: &Value, path: &Path, errors: &mut FieldErrors) {
    if Quantity::parse(source.text("sizeLimit")).is_ok_and(|limit| limit.sign().is_lt()) {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
    }
}

const HOST_PATH_TYPES: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

fn validate_host_path(source: &Value, path: &Path, errors: &mut FieldErrors) {
    let place = source.text("path");
    if place.is_empty() {
        return errors.push(FieldError::required(&path.child("path"), ""));
    }
    refuse(errors, &path.child("path"), place, no_backsteps(place));
    if let Some(kind) = source.text_opt("type").filter(|kind| !HOST_PATH_TYPES.contains(kind)) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, HOST_PATH_TYPES));
    }
}

fn validate_nfs(source: &Value, path: &Path, errors: &mut FieldErrors) {
    require(source, &["server", "path"], path, errors);
    let place = source.text("path");
    if !place.starts_with('/') {
        errors.push(FieldError::invalid(&path.child("path"), place, "must be an absolute path"));
    }
}

/// A Secret or ConfigMap and the files its keys become.
fn validate_keys(source: &Value, name: &str, path: &Path, errors: &mut FieldErrors) {
    require(source, &[name], path, errors);
    validate_mode(source, "defaultMode", path, errors);
    for (at, item) in source.list("items").iter().enumerate() {
        let path = path.child("items").index(at);
        require(item, &["key", "path"], &path, errors);
        refuse(errors, &path.child("path"), item.text("path"), not_reserved(item.text("path")));
        validate_mode(item, "mode", &path, errors);
    }
}

fn validate_mode(source: &Value, field: &str, path: &Path, errors: &mut FieldErrors) {
    if let Some(mode) = source.int_opt(field).filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(&path.child(field), mode, detail));
    }
}

/// What a file may be told of its Pod.
const FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The reference server names the fields of all files alike, without an index.
fn validate_downward(source: &Value, path: &Path, errors: &mut FieldErrors) {
    validate_mode(source, "defaultMode", path, errors);
    for file in source.list("items") {
        require(file, &["path"], path, errors);
        refuse(errors, &path.child("path"), file.text("path"), not_reserved(file.text("path")));
        let (field, resource) = (file.at("fieldRef"), file.at("resourceFieldRef"));
        if !field.is_null() {
            validate_field(field, FIELDS, &path.child("fieldRef"), errors);
            if !resource.is_null() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", detail));
            }
        } else if !resource.is_null() {
            validate_resource_field(resource, true, &path.child("resourceFieldRef"), errors);
        } else {
            errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
        validate_mode(file, "mode", path, errors);
    }
}

/// A relative path that does not climb.
pub(super) fn descending(path: &str) -> names::Reasons {
    let mut reasons = names::Reasons::new();
    if path.starts_with('/') {
        reasons.push("must be a relative path".to_owned());
    }
    reasons.extend(no_backsteps(path));
    reasons
}

fn not_reserved(path: &str) -> names::Reasons {
    let mut reasons = descending(path);
    if path.starts_with("..") && !path.starts_with("../") {
        reasons.push("must not start with '..'".to_owned());
    }
    reasons
}
