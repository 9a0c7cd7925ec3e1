//! Mistakes in the addresses of a Service: cluster IPs and their families, external IPs, source ranges.

use std::collections::HashSet;

use crate::value::Value;

use super::super::ports::against;
use super::super::spec;
use super::{one_of, only_for_load_balancers};
use crate::field::{FieldError, FieldErrors, Path};
use crate::{Look, ip};

const IP_FAMILY_POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Mistakes in `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy`, which allocation looks for as well.
pub(crate) fn cluster_ips(spec: &Value, old: Option<&Value>) -> FieldErrors {
    // These fields are forbidden for ExternalName, so nothing more is to be said about them.
    if spec.text("type") == spec::EXTERNAL_NAME {
        return FieldErrors::new();
    }
    let mut errors = singular_and_plural(spec);
    errors.extend(families(spec));
    errors.extend(one_of(spec, "ipFamilyPolicy", IP_FAMILY_POLICIES));
    let known: HashSet<&str> = old.into_iter().flat_map(|old| old.texts("clusterIPs")).collect();
    let malformed = well_formed(spec, &known);
    let stop = !malformed.is_empty();
    errors.extend(malformed);
    if spec.list("clusterIPs").len() > 2 {
        errors.push(about_list(spec, "may only hold up to 2 values"));
    }
    if !stop {
        errors.extend(one_of_each_family(spec));
    }
    errors
}

/// Mistakes in `externalIPs`.
pub(super) fn external_ips(spec: &Value, old: Option<&Value>) -> FieldErrors {
    let known: HashSet<&str> = old.into_iter().flat_map(|old| old.texts("externalIPs")).collect();
    let mut errors = FieldErrors::new();
    for (i, text) in spec.texts("externalIPs").into_iter().enumerate() {
        let strict = if known.contains(text) { Vec::new() } else { ip::strict_reasons(text) };
        let reasons = if strict.is_empty() { ip::endpoint_reasons(text) } else { strict };
        errors.extend(against(&Path::new("spec.externalIPs").index(i), text, reasons));
    }
    errors
}

/// The annotation that `loadBalancerSourceRanges` replaced.
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Mistakes in `loadBalancerSourceRanges` or, without it, in the annotation. Both may be padded with spaces.
pub(super) fn source_ranges(service: &Value, old: Option<&Value>) -> FieldErrors {
    let spec = service.at("spec");
    let ranges = spec.texts("loadBalancerSourceRanges");
    let mut errors = FieldErrors::new();
    let mut check_type = |path: &Path| {
        if spec.text("type") != spec::LOAD_BALANCER {
            errors.push(only_for_load_balancers(path));
        }
    };
    if !ranges.is_empty() {
        // The capital letter is the reference server's.
        let path = Path::new("spec.LoadBalancerSourceRanges");
        check_type(&path);
        let old: HashSet<&str> =
            old.into_iter().flat_map(|old| old.at("spec").texts("loadBalancerSourceRanges")).map(str::trim).collect();
        for (i, range) in ranges.iter().map(|range| range.trim()).enumerate() {
            if !old.contains(range) {
                errors.extend(against(&path.index(i), range, ip::cidr::strict_reasons(range)));
            }
        }
        return errors;
    }
    let annotation =
        |service: &Value| service.at("metadata").at("annotations").text_opt(SOURCE_RANGES).map(str::to_owned);
    if let Some(text) = annotation(service) {
        let path = Path::new("metadata.annotations").key(SOURCE_RANGES);
        check_type(&path);
        let unchanged = old.and_then(annotation).unwrap_or_default() == text && old.is_some();
        if !unchanged && !text.trim().is_empty() {
            let ranges = text.split(',').map(str::trim);
            errors.extend(ranges.flat_map(|range| against(&path, range, ip::cidr::strict_reasons(range))));
        }
    }
    errors
}

fn singular_and_plural(spec: &Value) -> FieldErrors {
    let (one, all) = (spec.text("clusterIP"), spec.texts("clusterIPs"));
    match all.first() {
        None if one.is_empty() => FieldErrors::new(),
        None => FieldErrors::from([FieldError::required(&Path::new("spec.clusterIPs"), "")]),
        Some(_) if one.is_empty() => {
            FieldErrors::from([about_list(spec, "must be empty when `clusterIP` is not specified")])
        }
        Some(first) if *first != one => FieldErrors::from([about_list(spec, "first value must match `clusterIP`")]),
        Some(_) => FieldErrors::new(),
    }
}

fn families(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let families = spec.texts("ipFamilies");
    let mut seen = HashSet::new();
    for (i, family) in families.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = Path::new("spec.ipFamilies").index(i);
        if !["IPv4", "IPv6"].contains(family) {
            errors.push(FieldError::not_supported(&path, *family, &["IPv4", "IPv6"]));
        }
        if !seen.insert(family) {
            errors.push(FieldError::duplicate(&path, *family));
        }
    }
    errors
}

/// Each an address, or `None` alone. What the old object had was valid once.
fn well_formed(spec: &Value, known: &HashSet<&str>) -> FieldErrors {
    let all = spec.texts("clusterIPs");
    let mut errors = FieldErrors::new();
    for (i, text) in all.iter().enumerate() {
        if i == 0 && *text == spec::NONE {
            if all.len() > 1 {
                errors.push(about_list(spec, "'None' must be the first and only value"));
            }
        } else if !known.contains(text) {
            errors.extend(against(&Path::new("spec.clusterIPs").index(i), text, ip::strict_reasons(text)));
        }
    }
    errors
}

/// At most one address of each family, and each of the family that stands in the same place.
fn one_of_each_family(spec: &Value) -> FieldErrors {
    let all = spec.texts("clusterIPs");
    let mut errors = FieldErrors::new();
    if all.len() > 1 {
        let v6 = all.iter().filter(|text| is_ipv6(text)).count();
        if v6 == 0 || v6 == all.len() {
            errors.push(about_list(spec, "may specify no more than one IP for each IP family"));
        }
    }
    if spec::is_headless(spec) {
        return errors;
    }
    for (i, (text, family)) in all.iter().zip(spec.texts("ipFamilies")).enumerate() {
        if (family == "IPv4" && is_ipv6(text)) || (family == "IPv6" && !is_ipv6(text)) {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.push(FieldError::invalid(&Path::new("spec.clusterIPs").index(i), *text, detail));
        }
    }
    errors
}

fn is_ipv6(text: &str) -> bool {
    ip::parse(text).is_some_and(|ip| ip.is_ipv6())
}

/// A mistake in the list of cluster IPs, which is shown whole.
fn about_list(spec: &Value, detail: &str) -> FieldError {
    FieldError::invalid(&Path::new("spec.clusterIPs"), spec.at("clusterIPs"), detail)
}
