//! ServiceCIDR: a range that cluster IPs are taken from.

use crate::value::{Value, json};

use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::ip::cidr;
use crate::meta::{self, Checks};
use crate::schema::networking::SERVICE_CIDR;
use crate::{Look, Settings};

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks::CHANGE_ONLY,
    prepare_create: |object, _| object.set("status", json!({})),
    prepare_update: |object, old, _| keep(object, old, "status"),
    prepare_status: |object, old, _| {
        keep(object, old, "spec");
        meta::keep_for_status(object, old);
    },
    validate: |object, old, _| if old.is_none() { cidrs(object.at("spec")) } else { FieldErrors::new() },
    validate_update,
    columns: &[columns::NAME, columns::text("CIDRs", "The ranges."), columns::AGE],
    row: |object, now| {
        vec![columns::name(object), object.at("spec").texts("cidrs").join(",").into(), columns::age_of(object, now)]
    },
    ..Rules::PLAIN
};

fn keep(object: &mut Value, old: &Value, field: &'static str) {
    SERVICE_CIDR.place(object, field, old.at(field).clone());
}

fn path() -> Path {
    Path::new("spec").child("cidrs")
}

fn cidrs(spec: &Value) -> FieldErrors {
    let texts = spec.texts("cidrs");
    match texts.len() {
        0 => return FieldErrors::from([FieldError::required(&path(), "at least one CIDR required")]),
        1 | 2 => {}
        _ => {
            // Shown by the name of the reference server's internal type.
            let shown = json!({"CIDRs": texts});
            return FieldErrors::from([FieldError::invalid(&path(), &shown, "may only hold up to 2 values")]);
        }
    }
    let mut errors = FieldErrors::new();
    for (index, text) in texts.iter().enumerate() {
        errors.extend(invalid(&path().index(index), text, cidr::canonical_reasons(text)));
    }
    if let [Some(first), Some(second)] = texts.iter().map(|text| cidr::parse(text)).collect::<Vec<_>>()[..]
        && first.addr().is_ipv4() == second.addr().is_ipv4()
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&path(), spec.at("cidrs"), why));
    }
    errors
}

/// A range never changes, but a second one of the other family may be added.
fn validate_update(object: &Value, old: &Value, _: &Settings) -> FieldErrors {
    let spec = object.at("spec");
    let (new, had) = (spec.texts("cidrs"), old.at("spec").texts("cidrs"));
    let grows = had.len() == 1 && new.len() == 2;
    if new.len() != had.len() && !grows {
        return FieldErrors::from([FieldError::invalid(&path(), spec.at("cidrs"), IMMUTABLE)]);
    }
    let changed = new.iter().zip(&had).enumerate().filter(|(_, (new, old))| new != old);
    let mut errors: FieldErrors =
        changed.map(|(i, (new, _))| FieldError::invalid(&path().index(i), *new, IMMUTABLE)).collect();
    if grows {
        errors.extend(cidrs(spec));
    }
    errors
}

const IMMUTABLE: &str = "field is immutable";

#[cfg(test)]
mod tests;
