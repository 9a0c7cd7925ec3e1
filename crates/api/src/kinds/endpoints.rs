//! Endpoints: the addresses behind a Service, as they were written before EndpointSlices.

use crate::value::Value;

use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::schema::core::ENDPOINT_PORT;
use crate::{Look, Settings, ip, names};

/// The rules.
pub static RULES: Rules = Rules {
    default,
    validate,
    warnings,
    columns: &[columns::NAME, columns::text("Endpoints", "The first addresses that are ready."), columns::AGE],
    row: |object, now| vec![columns::name(object), ready(object).into(), columns::age_of(object, now)],
    ..Rules::PLAIN
};

/// The protocols a port may have, in the order messages name them.
pub(super) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

fn default(object: &mut Value, _: &Settings) {
    for subset in object.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten() {
        for port in subset.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if port.text("protocol").is_empty() {
                ENDPOINT_PORT.place(port, "protocol", "TCP");
            }
        }
    }
}

fn validate(object: &Value, old: Option<&Value>, _: &Settings) -> FieldErrors {
    let path = Path::new("subsets");
    let subsets = object.list("subsets");
    let errors: FieldErrors = subsets.iter().enumerate().flat_map(|(i, s)| subset(s, &path.index(i))).collect();
    // What was stored by a more lenient server stays valid as long as nobody touches it.
    if old.is_some_and(|old| old.list("subsets") == subsets) { FieldErrors::new() } else { errors }
}

fn subset(subset: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if subset.list("addresses").is_empty() && subset.list("notReadyAddresses").is_empty() {
        errors.push(FieldError::required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
    for list in ["addresses", "notReadyAddresses"] {
        for (index, it) in subset.list(list).iter().enumerate() {
            if errors.is_full() {
                break;
            }
            errors.extend(address(it, &path.child(list).index(index)));
        }
    }
    let ports = subset.list("ports");
    for (index, it) in ports.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        errors.extend(port(it, ports.len() > 1, &path.child("ports").index(index)));
    }
    errors
}

fn address(address: &Value, path: &Path) -> FieldErrors {
    let text = address.text("ip");
    let ip = path.child("ip");
    let mut errors = invalid(&ip, text, ip::strict_reasons(text));
    let hostname = address.text("hostname");
    if !hostname.is_empty() {
        errors.extend(invalid(&path.child("hostname"), hostname, names::label(hostname)));
    }
    if let Some(node) = address.text_opt("nodeName") {
        errors.extend(invalid(&path.child("nodeName"), node, names::subdomain(node)));
    }
    errors.extend(invalid(&ip, text, ip::endpoint_reasons(text)));
    errors
}

fn port(port: &Value, name_required: bool, path: &Path) -> FieldErrors {
    let name = port.text("name");
    let mut errors = match name {
        "" if name_required => FieldErrors::from([FieldError::required(&path.child("name"), "")]),
        "" => FieldErrors::new(),
        name => invalid(&path.child("name"), name, names::label(name)),
    };
    let number = port.int("port");
    errors.extend(
        names::port_number(number).into_iter().map(|why| FieldError::invalid(&path.child("port"), number, why)),
    );
    let protocol = port.text("protocol");
    if !PROTOCOLS.contains(&protocol) {
        errors.push(FieldError::not_supported(&path.child("protocol"), protocol, PROTOCOLS));
    }
    if let Some(app) = port.text_opt("appProtocol") {
        errors.extend(invalid(&path.child("appProtocol"), app, names::label_key(app)));
    }
    errors
}

fn warnings(object: &Value, _: Option<&Value>, _: &Settings) -> Vec<String> {
    // The controller writes addresses as they should be; large objects need not be searched.
    if object.at("metadata").at("labels").text("endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, subset) in object.list("subsets").iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            let path = Path::new("subsets").index(i).child(list);
            for (j, address) in subset.list(list).iter().enumerate() {
                warnings.extend(ip::warnings(&path.index(j).child("ip"), address.text("ip")));
            }
        }
    }
    warnings
}

/// The ready addresses with each of their ports.
fn ready(object: &Value) -> String {
    let subsets = object.list("subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let addresses = subset.list("addresses").iter().map(|address| address.text("ip"));
        if subset.list("ports").is_empty() {
            all.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in subset.list("ports") {
            all.extend(addresses.clone().map(|ip| host_port(ip, port.int("port"))));
        }
    }
    columns::first_few(&all)
}

fn host_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}
