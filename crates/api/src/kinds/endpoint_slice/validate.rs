//! What is wrong with an EndpointSlice.

use crate::value::Value;

use super::ZONE;
use crate::field::{FieldError, FieldErrors, Mistake, Path, invalid};
use crate::kinds::endpoints::PROTOCOLS;
use crate::{Look, Settings, ip, meta, names};

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;
const MAX_TOPOLOGY: usize = 16;

pub(super) fn whole(object: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let address_type = object.text("addressType");
    let mut errors = match address_type {
        "" => FieldErrors::from([FieldError::required(&Path::new("addressType"), "")]),
        "FQDN" | "IPv4" | "IPv6" => FieldErrors::new(),
        other => {
            let allowed = &["FQDN", "IPv4", "IPv6"];
            FieldErrors::from([FieldError::not_supported(&Path::new("addressType"), other, allowed)])
        }
    };
    errors.extend(ports(object.list("ports")));
    let list = object.list("endpoints");
    // What was stored by a more lenient server stays valid as long as nobody touches it.
    if old.is_none_or(|old| old.list("endpoints") != list) {
        errors.extend(endpoints(list, address_type));
    }
    errors
}

pub(super) fn change(object: &Value, old: &Value, _: &Settings) -> FieldErrors {
    let new = object.text("addressType");
    if new == old.text("addressType") {
        return FieldErrors::new();
    }
    FieldErrors::from([FieldError::invalid(&Path::new("addressType"), new, "field is immutable")])
}

fn ports(ports: &[Value]) -> FieldErrors {
    let path = Path::new("ports");
    if ports.len() > MAX_PORTS {
        return FieldErrors::from([FieldError::too_many(&path, ports.len(), MAX_PORTS)]);
    }
    let mut errors = FieldErrors::new();
    let mut seen = std::collections::HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            errors.extend(invalid(&path.child("name"), name, names::label(name)));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let protocol = port.text("protocol");
        if !PROTOCOLS.contains(&protocol) {
            errors.push(FieldError::not_supported(&path.child("protocol"), protocol, PROTOCOLS));
        }
        if let Some(app) = port.text_opt("appProtocol") {
            errors.extend(invalid(&path.child("appProtocol"), app, names::label_key(app)));
        }
    }
    errors
}

fn endpoints(endpoints: &[Value], address_type: &str) -> FieldErrors {
    let path = Path::new("endpoints");
    if endpoints.len() > MAX_ENDPOINTS {
        return FieldErrors::from([FieldError::too_many(&path, endpoints.len(), MAX_ENDPOINTS)]);
    }
    endpoints.iter().enumerate().flat_map(|(i, it)| endpoint(it, address_type, &path.index(i))).collect()
}

fn endpoint(endpoint: &Value, address_type: &str, path: &Path) -> FieldErrors {
    let mut errors = addresses(&endpoint.texts("addresses"), address_type, &path.child("addresses"));
    if let Some(node) = endpoint.text_opt("nodeName") {
        errors.extend(invalid(&path.child("nodeName"), node, names::subdomain(node)));
    }
    errors.extend(topology(endpoint.at("deprecatedTopology"), &path.child("deprecatedTopology")));
    if let Some(hostname) = endpoint.text_opt("hostname") {
        errors.extend(invalid(&path.child("hostname"), hostname, names::label(hostname)));
    }
    errors.extend(hints(endpoint.at("hints"), &path.child("hints")));
    errors
}

fn addresses(addresses: &[&str], address_type: &str, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if addresses.is_empty() {
        errors.push(FieldError::required(path, "must contain at least 1 address"));
    }
    if addresses.len() > MAX_ADDRESSES {
        errors.push(FieldError::too_many(path, addresses.len(), MAX_ADDRESSES));
    }
    for (index, address) in addresses.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(match address_type {
            "IPv4" => ip_address(address, ip::parse_strict(address), Family::V4, path, index),
            "IPv6" => ip_address(address, ip::parse_canonical(address), Family::V6, path, index),
            "FQDN" => domain(address, &path.index(index)),
            _ => FieldErrors::new(),
        });
    }
    errors
}

#[derive(Clone, Copy, PartialEq)]
enum Family {
    V4,
    V6,
}

fn ip_address(
    text: &str,
    read: Result<std::net::IpAddr, names::Reasons>,
    family: Family,
    path: &Path,
    index: usize,
) -> FieldErrors {
    let own = path.index(index);
    let ip = match read {
        Ok(ip) => ip,
        Err(reasons) => return invalid(&own, text, reasons),
    };
    let mut errors = FieldErrors::new();
    if ip.is_ipv4() != (family == Family::V4) {
        let why = if family == Family::V4 { "must be an IPv4 address" } else { "must be an IPv6 address" };
        // Told at the list, not at the element.
        errors.push(FieldError::invalid(path, text, why));
    }
    errors.extend(invalid(&own, text, ip::endpoint_reasons(text)));
    errors
}

/// A domain name of at least two labels; a dot at the end is let through.
fn domain(text: &str, path: &Path) -> FieldErrors {
    if text.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let reasons = names::subdomain(name);
    if !reasons.is_empty() {
        return FieldErrors::from([FieldError::invalid(path, name, reasons.join(","))]);
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return FieldErrors::from([FieldError::invalid(path, name, why)]);
    }
    let bad = name.split('.').map(|label| (label, names::label(label))).find(|(_, reasons)| !reasons.is_empty());
    bad.map(|(label, reasons)| FieldError::invalid(path, label, reasons.join(","))).into_iter().collect()
}

fn topology(topology: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let count = topology.as_object().map_or(0, crate::value::Map::len);
    if count > MAX_TOPOLOGY {
        errors.push(FieldError::too_many(path, count, MAX_TOPOLOGY));
    }
    errors.extend(meta::validate_labels(topology, path));
    if !topology.at(ZONE).is_null() {
        errors.push(FieldError {
            field: path.key(ZONE).to_string(),
            mistake: Mistake::Internal,
            value: None,
            detail: "reserved key was not removed in conversion".to_owned(),
        });
    }
    errors
}

fn hints(hints: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for field in ["forZones", "forNodes"] {
        let (path, list) = (path.child(field), hints.list(field));
        if list.len() > MAX_HINTS {
            errors.push(FieldError::too_many(&path, list.len(), MAX_HINTS));
            return errors;
        }
        for (index, hint) in list.iter().enumerate() {
            let (path, name) = (path.index(index).child("name"), hint.text("name"));
            if list[..index].iter().any(|other| other.text("name") == name) {
                errors.push(FieldError::duplicate(&path, name));
            }
            let reasons = if field == "forZones" { names::label_value(name) } else { names::subdomain(name) };
            errors.extend(invalid(&path, name, reasons));
        }
    }
    errors
}
