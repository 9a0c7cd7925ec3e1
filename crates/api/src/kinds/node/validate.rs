//! Mistakes in a Node.

use std::collections::HashSet;

use crate::value::{Value, json};

use crate::field::{FieldError, FieldErrors};
use crate::kinds::pod;
use crate::look::Look;
use crate::{Path, ip, names};

/// Mistakes in a whole Node.
pub(super) fn whole(node: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_taints(node, &mut errors);
    validate_amounts(node, &mut errors);
    validate_ranges(node, &mut errors);
    errors
}

/// What an update may not change, and mistakes in status.
pub(super) fn update(node: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (spec, before) = (node.at("spec"), old.at("spec"));
    let path = Path::new("spec");
    validate_amounts(node, &mut errors);
    validate_addresses(node, &mut errors);
    let ranges = before.list("podCIDRs");
    let changed = match spec.list("podCIDRs") {
        _ if ranges.is_empty() => 0,
        now if now.len() != ranges.len() => 1,
        now => ranges.iter().zip(now).filter(|(old, new)| old != new).count(),
    };
    for _ in 0..changed {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("podCIDRs"), detail));
    }
    let provider = before.text("providerID");
    if !provider.is_empty() && provider != spec.text("providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("providerID"), detail));
    }
    validate_taints(node, &mut errors);
    if spec.text("externalID") != before.text("externalID") {
        errors.push(FieldError::forbidden(&path.child("externalID"), "may not be updated"));
    }
    errors
}

/// The reference server names taints as if they were in the metadata, where they once were.
fn validate_taints(node: &Value, errors: &mut FieldErrors) {
    let taints = node.at("spec").list("taints");
    let path = Path::new("metadata").child("taints");
    let mut seen = HashSet::new();
    for (at, taint) in taints.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(at);
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        for reason in names::label_key(key) {
            errors.push(FieldError::invalid(&path.child("key"), key, reason));
        }
        let reasons = names::label_value(value);
        if !reasons.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, reasons.join(";")));
        }
        match effect {
            "" => errors.push(FieldError::required(&path.child("effect"), "")),
            effect => pod::validate_effect(effect, &path.child("effect"), errors),
        }
        if !seen.insert((key, effect)) {
            let shown = json!({"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.at("timeAdded")});
            let mut error = FieldError::duplicate(&path, &shown);
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
}

fn validate_amounts(node: &Value, errors: &mut FieldErrors) {
    for list in ["capacity", "allocatable"] {
        for (name, amount) in node.at("status").map(list).into_iter().flatten() {
            pod::validate_amount(name, amount, &Path::new("status").child(list).child(name), errors);
        }
    }
}

fn validate_addresses(node: &Value, errors: &mut FieldErrors) {
    let addresses = node.at("status").list("addresses");
    let mut seen = HashSet::new();
    for (at, address) in addresses.iter().enumerate() {
        if !seen.insert(address) {
            let shown = json!({"Type": address.text("type"), "Address": address.text("address")});
            errors.push(FieldError::duplicate(&Path::new("status").child("addresses").index(at), &shown));
        }
    }
}

/// One range of each family.
fn validate_ranges(node: &Value, errors: &mut FieldErrors) {
    let list = node.at("spec").at("podCIDRs");
    let ranges = node.at("spec").texts("podCIDRs");
    let path = Path::new("spec").child("podCIDRs");
    for (at, range) in ranges.iter().enumerate() {
        for reason in ip::cidr::strict_reasons(range) {
            errors.push(FieldError::invalid(&path.index(at), *range, reason));
        }
    }
    if ranges.len() < 2 {
        return;
    }
    let families: Vec<bool> =
        ranges.iter().filter_map(|range| ip::cidr::parse(range)).map(|range| range.addr().is_ipv4()).collect();
    if ranges.len() > 2 || families.len() != 2 || families[0] == families[1] {
        errors.push(FieldError::invalid(&path, list, "may specify no more than one CIDR for each IP family"));
    }
}
