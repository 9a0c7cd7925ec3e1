//! Mistakes in the containers of a Pod.

use std::collections::BTreeSet;

use crate::value::Value;

use super::volumes::Known;
use super::{env, lifecycle, mounts, refuse, resources, security, spec};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::{Path, names};

/// Containers, then init containers, then ephemeral ones. `pod` is the spec they stand in.
pub(super) fn validate_all(pod: &Value, volumes: &Known<'_>, path: &Path, errors: &mut FieldErrors) {
    validate_containers(pod, volumes, &path.child("containers"), errors);
    validate_init(pod, volumes, &path.child("initContainers"), errors);
    validate_ephemeral(pod, volumes, &path.child("ephemeralContainers"), errors);
}

/// An image with space around it.
pub(super) fn validate_image_space(container: &Value, path: &Path, errors: &mut FieldErrors) {
    let image = container.text("image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(&path.child("image"), image, detail));
    }
}

fn validate_containers(pod: &Value, volumes: &Known<'_>, path: &Path, errors: &mut FieldErrors) {
    let containers = pod.list("containers");
    if containers.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let mut names = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(at);
        validate_common(container, pod, volumes, &path, errors);
        if !names.insert(container.text("name")) {
            errors.push(FieldError::duplicate(&path.child("name"), container.text("name")));
        }
        lifecycle::validate(container, pod, &path, errors);
        lifecycle::validate_restart(container, &path, errors);
    }
    let all: Vec<(usize, &Value)> = containers.iter().enumerate().collect();
    validate_host_ports(&all, path, errors);
}

fn validate_init(pod: &Value, volumes: &Known<'_>, path: &Path, errors: &mut FieldErrors) {
    let mut names: BTreeSet<&str> = pod.list("containers").iter().map(|c| c.text("name")).collect();
    for (at, container) in pod.list("initContainers").iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let (list, path, name) = (path, path.index(at), container.text("name"));
        validate_common(container, pod, volumes, &path, errors);
        lifecycle::validate_restart(container, &path, errors);
        if names.contains(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        } else if !name.is_empty() {
            names.insert(name);
        }
        // They run one after the other, so each is looked at alone; the reference server counts from zero each time.
        validate_host_ports(&[(0, container)], list, errors);
        if lifecycle::stays(container) {
            lifecycle::validate(container, pod, &path, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if !container.at(field).is_null() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(&path.child(field), detail));
            }
        }
    }
}

fn validate_ephemeral(pod: &Value, volumes: &Known<'_>, path: &Path, errors: &mut FieldErrors) {
    let others = pod.list("containers").iter().chain(pod.list("initContainers"));
    let mut names: BTreeSet<&str> = others.map(|c| c.text("name")).collect();
    for (at, container) in pod.list("ephemeralContainers").iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(at);
        validate_common(container, pod, volumes, &path, errors);
        validate_image_space(container, &path, errors);
        if !names.insert(container.text("name")) {
            errors.push(FieldError::duplicate(&path.child("name"), container.text("name")));
        }
    }
}

/// What holds for every container.
fn validate_common(container: &Value, pod: &Value, volumes: &Known<'_>, path: &Path, errors: &mut FieldErrors) {
    match container.text("name") {
        "" => errors.push(FieldError::required(&path.child("name"), "")),
        name => refuse(errors, &path.child("name"), name, names::label(name)),
    }
    if container.text("image").is_empty() {
        errors.push(FieldError::required(&path.child("image"), ""));
    }
    spec::one_of(container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path, errors);
    validate_ports(container.list("ports"), &path.child("ports"), errors);
    env::validate(container, path, errors);
    mounts::validate(container, volumes, path, errors);
    spec::one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, errors);
    resources::validate(container.at("resources"), pod, &path.child("resources"), errors);
    resources::validate_resize(container, pod, &path.child("resizePolicy"), errors);
    security::validate_container(container.at("securityContext"), pod, &path.child("securityContext"), errors);
}

fn validate_ports(ports: &[Value], path: &Path, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let (path, name) = (path.index(at), port.text("name"));
        let reasons = if name.is_empty() { Vec::new() } else { names::port_name(name) };
        if reasons.is_empty() && !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        refuse(errors, &path.child("name"), name, reasons);
        match port.int("containerPort") {
            0 => errors.push(FieldError::required(&path.child("containerPort"), "")),
            number => validate_number(number, &path.child("containerPort"), errors),
        }
        match port.int("hostPort") {
            0 => {}
            number => validate_number(number, &path.child("hostPort"), errors),
        }
        spec::one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, errors);
    }
}

fn validate_number(number: i64, path: &Path, errors: &mut FieldErrors) {
    errors.extend(names::port_number(number).into_iter().map(|reason| FieldError::invalid(path, number, reason)));
}

/// A port of the host can be taken once.
fn validate_host_ports(containers: &[(usize, &Value)], path: &Path, errors: &mut FieldErrors) {
    let mut taken = BTreeSet::new();
    for (at, container) in containers {
        for (index, port) in container.list("ports").iter().enumerate() {
            let number = port.int("hostPort");
            let key = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if number != 0 && !taken.insert(key.clone()) {
                let path = path.index(*at).child("ports").index(index).child("hostPort");
                errors.push(FieldError::duplicate(&path, key));
            }
        }
    }
}
