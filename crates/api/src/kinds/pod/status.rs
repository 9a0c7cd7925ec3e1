//! Writes to the status of a Pod: what is kept, and what is wrong.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::value::{Value, json};

use super::{refuse, update};
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::schema::pod::POD;
use crate::{Path, ip, names};

/// Keeps everything but status, labels, annotations and finalizers.
pub(super) fn prepare(pod: &mut Value, old: &Value) {
    pod.set("spec", old.at("spec").clone());
    for name in ["deletionTimestamp", "ownerReferences", "generation"] {
        match old.at("metadata").get(name) {
            Some(value) => pod.map_mut("metadata").insert(name.to_owned(), value.clone()),
            None => pod.map_mut("metadata").shift_remove(name),
        };
    }
    let mut status = pod.at("status").clone();
    for name in ["qosClass", "observedGeneration"] {
        if let (true, Some(value)) = (status.at(name).is_null(), old.at("status").get(name)) {
            status.set(name, value.clone());
        }
    }
    keep_observed(&mut status, old.at("status"));
    pod.set("status", status);
    POD.arrange(pod);
}

/// A condition that does not say which generation it saw keeps the one said before.
fn keep_observed(status: &mut Value, old: &Value) {
    let mut before: HashMap<&str, VecDeque<&Value>> = HashMap::new();
    for condition in old.list("conditions") {
        before.entry(condition.text("type")).or_default().push_back(condition);
    }
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(same) = before.get_mut(condition.text("type")).and_then(VecDeque::pop_front) else { continue };
        if condition.int("observedGeneration") == 0 && same.int("observedGeneration") != 0 {
            condition.set("observedGeneration", same.int("observedGeneration"));
        }
    }
}

/// Mistakes in a new status.
pub(super) fn validate(pod: &Value, old: &Value) -> FieldErrors {
    let (status, before) = (pod.at("status"), old.at("status"));
    let path = Path::new("status");
    let mut errors = FieldErrors::new();
    update::validate_annotations(pod, old, &mut errors);
    validate_conditions(status.list("conditions"), &path.child("conditions"), &mut errors);
    validate_nomination(status, before, old.at("spec"), &path.child("nominatedNodeName"), &mut errors);
    if status.int("observedGeneration") < 0 {
        let number = status.int("observedGeneration");
        errors.push(FieldError::invalid(&path.child("observedGeneration"), number, NOT_NEGATIVE));
    }
    if status.text("qosClass") != before.text("qosClass") {
        errors.push(FieldError::invalid(&path.child("qosClass"), status.text("qosClass"), "field is immutable"));
    }
    for (statuses, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", ""),
    ] {
        validate_states(status, before, statuses, old.at("spec"), containers, &path.child(statuses), &mut errors);
    }
    validate_ips(status, before, "podIPs", &path, &mut errors);
    if let Some(first) = status.list("hostIPs").first() {
        if first.text("ip") != status.text("hostIP") {
            let path = path.child("hostIPs").index(0).child("ip");
            errors.push(FieldError::invalid(&path, first.text("ip"), "must be equal to `hostIP`"));
        }
        validate_ips(status, before, "hostIPs", &path, &mut errors);
    }
    errors
}

const NOT_NEGATIVE: &str = "must be a non-negative integer";

fn validate_conditions(conditions: &[Value], path: &Path, errors: &mut FieldErrors) {
    for (at, condition) in conditions.iter().enumerate() {
        let (path, kind) = (path.index(at), condition.text("type"));
        let observed = condition.int("observedGeneration");
        if observed < 0 {
            errors.push(FieldError::invalid(&path.child("observedGeneration"), observed, NOT_NEGATIVE));
        }
        refuse(errors, &path.child("Type"), kind, names::label_key(kind));
    }
}

fn validate_nomination(status: &Value, before: &Value, spec: &Value, path: &Path, errors: &mut FieldErrors) {
    let node = status.text("nominatedNodeName");
    if node.is_empty() || node == before.text("nominatedNodeName") {
        return;
    }
    refuse(errors, path, node, names::subdomain(node));
    if !spec.text("nodeName").is_empty() {
        errors.push(FieldError::forbidden(path, "may not be set on pods that are already bound to a node"));
    }
}

/// A container that has ended stays so, unless it is to be started again.
fn validate_states(
    status: &Value,
    before: &Value,
    list: &str,
    spec: &Value,
    containers: &str,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let statuses = by_name(status.list(list));
    let containers = by_name(spec.list(containers));
    for (at, was) in before.list(list).iter().enumerate() {
        let ended = was.at("state").at("terminated");
        let now = statuses.get(was.text("name"));
        if ended.is_null() || now.is_none_or(|now| !now.at("state").at("terminated").is_null()) {
            continue;
        }
        let container = containers.get(was.text("name"));
        if !container.is_some_and(|container| restarts(container, spec, ended.int("exitCode"))) {
            let detail = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(&path.index(at).child("state"), detail));
        }
    }
}

/// Returns the elements of a list by name. Of two with one name the first counts.
fn by_name(list: &[Value]) -> HashMap<&str, &Value> {
    list.iter().rev().map(|element| (element.text("name"), element)).collect()
}

/// Whether a container that ended with this code is started again.
fn restarts(container: &Value, spec: &Value, code: i64) -> bool {
    let everything =
        |c: &Value| c.list("restartPolicyRules").iter().any(|r| r.text("action") == "RestartAllContainers");
    if spec.list("containers").iter().chain(spec.list("initContainers")).any(everything) {
        return true;
    }
    for rule in container.list("restartPolicyRules") {
        let (codes, wanted) = (rule.at("exitCodes"), Value::from(code));
        let listed = codes.list("values").contains(&wanted);
        let matches = if codes.text("operator") == "NotIn" { !listed } else { listed };
        if matches {
            return true;
        }
    }
    match container.text_opt("restartPolicy").unwrap_or(spec.text("restartPolicy")) {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}

/// One address of each family. What was stored before may stay.
fn validate_ips(status: &Value, before: &Value, field: &str, path: &Path, errors: &mut FieldErrors) {
    let path = path.child(field);
    let ips: Vec<&str> = status.list(field).iter().map(|entry| entry.text("ip")).collect();
    let known: HashSet<&str> = before.list(field).iter().map(|entry| entry.text("ip")).collect();
    for (at, text) in ips.iter().enumerate() {
        if !known.contains(text) {
            refuse(errors, &path.index(at), text, ip::strict_reasons(text));
        }
    }
    let families: Vec<bool> = ips.iter().filter_map(|text| ip::parse(text)).map(|ip| ip.is_ipv4()).collect();
    let pair = ips.len() == 2 && families.len() == 2 && families[0] != families[1];
    if ips.len() > 1 && !pair {
        let shown: Value = ips.iter().map(|ip| json!({"IP": ip})).collect();
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&path, &shown, detail));
    }
}
