//! Which IP families a Service has, and under which policy, from what the client said and what the cluster offers.

use crate::value::Value;

use super::{invalid, put};
use crate::field::{FieldError, FieldErrors, Path};
use crate::kinds::service::spec;
use crate::kinds::service::validate::addresses::cluster_ips;
use crate::{Failure, Look, Settings, ip};

const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// Fills `ipFamilyPolicy` and `ipFamilies`; refuses what contradicts itself or the cluster.
pub(super) fn complete(service: &mut Value, old: Option<&Value>, settings: &Settings) -> Result<(), Failure> {
    let old = old.map(|old| old.at("spec"));
    let mut spec = service.get_mut("spec").map(Value::take).unwrap_or_default();
    let done = fill(&mut spec, old, &configured(settings));
    if let Some(place) = service.get_mut("spec") {
        *place = spec;
    }
    done.map_err(|errors| invalid(service, errors))
}

/// Whether nothing about addresses changes in a Service that prefers two families: such a Service keeps what it has
/// even if the cluster has gained or lost a family since.
pub(super) fn is_settled(spec: &Value, old: &Value) -> bool {
    let same = |name: &str| spec.at(name) == old.at(name);
    same("type")
        && [spec::CLUSTER_IP, spec::NODE_PORT, spec::LOAD_BALANCER].contains(&spec.text("type"))
        && spec.text("ipFamilyPolicy") == PREFER
        && old.text_opt("ipFamilyPolicy").is_none_or(|policy| policy == PREFER)
        && same("clusterIPs")
        && same("ipFamilies")
}

/// The family of an address, as the API names it.
pub(super) fn family_of(text: &str) -> &'static str {
    if ip::parse(text).is_some_and(|ip| ip.is_ipv6()) { "IPv6" } else { "IPv4" }
}

/// The families of the cluster, primary first.
fn configured(settings: &Settings) -> Vec<&'static str> {
    let mut families = Vec::new();
    for range in &settings.service_ranges {
        let family = if range.addr().is_ipv6() { "IPv6" } else { "IPv4" };
        if !families.contains(&family) {
            families.push(family);
        }
    }
    families
}

fn other(family: &str) -> &'static str {
    if family == "IPv4" { "IPv6" } else { "IPv4" }
}

fn fill(spec: &mut Value, old: Option<&Value>, cluster: &[&'static str]) -> Result<(), FieldErrors> {
    if spec.text("type") == spec::EXTERNAL_NAME || old.is_some_and(|old| is_settled(spec, old)) {
        return Ok(());
    }
    let headless_without_selector =
        spec.text("clusterIP") == spec::NONE && spec.map("selector").is_none_or(|selector| selector.is_empty());
    if spec.text_opt("ipFamilyPolicy").is_none() {
        let before = old.and_then(|old| old.text_opt("ipFamilyPolicy"));
        let policy = before.unwrap_or(if headless_without_selector { REQUIRE } else { SINGLE });
        put(spec, "ipFamilyPolicy", policy);
    }
    stop_at(cluster_ips(spec, old))?;
    let mut errors = old.map(|old| shrink(spec, old)).unwrap_or_default();
    errors.extend(too_many_for_single(spec));
    errors.extend(infer(spec, cluster));
    stop_at(errors)?;
    // Its endpoints may be of any family, whatever the cluster has.
    if !headless_without_selector {
        stop_at(not_offered(spec, cluster))?;
    }
    let primary = cluster.first().copied().unwrap_or("IPv4");
    let mut families: Vec<String> = spec.texts("ipFamilies").into_iter().map(str::to_owned).collect();
    if families.is_empty() {
        families.push(primary.to_owned());
    }
    let dual = headless_without_selector || cluster.len() > 1;
    if families.len() == 1 && dual && spec.text("ipFamilyPolicy") != SINGLE {
        families.push(other(&families[0]).to_owned());
    }
    put(spec, "ipFamilies", families);
    Ok(())
}

fn stop_at(errors: FieldErrors) -> Result<(), FieldErrors> {
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn about_policy(spec: &Value, detail: &str) -> FieldError {
    FieldError::invalid(&Path::new("spec.ipFamilyPolicy"), spec.text("ipFamilyPolicy"), detail)
}

/// With policy SingleStack an unchanged second address and family go; with another policy they may not be taken away.
fn shrink(spec: &mut Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (name, detail) in [
        ("clusterIPs", "must be 'SingleStack' to release the secondary cluster IP"),
        ("ipFamilies", "must be 'SingleStack' to release the secondary IP family"),
    ] {
        let (now, before) = (spec.list(name), old.list(name));
        if spec.text("ipFamilyPolicy") != SINGLE {
            if !now.is_empty() && now.len() < before.len() {
                errors.push(about_policy(spec, detail));
            }
        } else if now == before && now.len() > 1 {
            put(spec, name, now[..1].to_vec());
        }
    }
    errors
}

fn too_many_for_single(spec: &Value) -> FieldErrors {
    if spec.text("ipFamilyPolicy") != SINGLE {
        return FieldErrors::new();
    }
    let lists = [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")];
    let pairs = lists.iter().filter(|(name, _)| spec.list(name).len() == 2);
    pairs
        .map(|(_, what)| {
            let detail = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            about_policy(spec, &detail)
        })
        .collect()
}

/// Families that were not named follow from the addresses that were.
fn infer(spec: &mut Value, cluster: &[&str]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut families: Vec<Value> = spec.list("ipFamilies").to_vec();
    for (i, address) in spec.texts("clusterIPs").into_iter().enumerate() {
        let family = family_of(address);
        if address == spec::NONE {
            break;
        }
        if i < families.len() {
            continue;
        }
        if cluster.contains(&family) {
            families.push(family.into());
        } else {
            let path = Path::new("spec.clusterIPs").index(i);
            let detail = format!("{family} is not configured on this cluster");
            errors.push(FieldError::invalid(&path, spec.at("clusterIPs"), detail));
        }
    }
    if !families.is_empty() {
        put(spec, "ipFamilies", families);
    }
    errors
}

fn not_offered(spec: &Value, cluster: &[&str]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if spec.text("ipFamilyPolicy") == REQUIRE && cluster.len() < 2 {
        errors.push(about_policy(spec, "this cluster is not configured for dual-stack services"));
    }
    for (i, family) in spec.texts("ipFamilies").into_iter().enumerate() {
        if !cluster.contains(&family) {
            let path = Path::new("spec.ipFamilies").index(i);
            errors.push(FieldError::invalid(&path, family, "not configured on this cluster"));
        }
    }
    errors
}
