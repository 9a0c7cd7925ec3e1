//! Does an alias lead somewhere, and do servers there know the name that clients say?

use std::collections::BTreeSet;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{ServicePort, ServiceType};
use serde_json::json;

use crate::Cause;
use crate::objects::named;
use crate::steps::{Case, Draft, remedy};

/// So many aliases are followed.
const MAX_ALIASES: usize = 16;
/// What is spoken, as `appProtocol` says it and as names of ports begin; and whether that is TLS.
const PROTOCOLS: [(&str, bool); 12] = [
    ("https", true),
    ("tls", true),
    ("ssl", true),
    ("wss", true),
    ("kubernetes.io/wss", true),
    ("http", false),
    ("http2", false),
    ("h2c", false),
    ("kubernetes.io/h2c", false),
    ("grpc", false),
    ("ws", false),
    ("kubernetes.io/ws", false),
];
/// Ports at which that is usual.
const NUMBERS: [(i32, bool); 4] = [(80, false), (8080, false), (443, true), (8443, true)];

/// Whether an alias leads somewhere.
pub(super) fn alias(case: &Case<'_>, draft: &mut Draft) {
    let name = case.service.spec.external_name.as_str();
    if ip::parse(name).is_some() {
        return address(case, name, draft);
    }
    if let Some((cause, message)) = follow(case, name, draft) {
        draft.broken(cause, message, vec![rename(case)]);
        return;
    }
    other_host(case, name, draft);
}

fn rename(case: &Case<'_>) -> String {
    case.patch(&json!({"spec": {"externalName": "server.example.com"}}))
}

fn address(case: &Case<'_>, name: &str, draft: &mut Draft) {
    let message = format!("{name} is an address, but an alias can only stand for a name: DNS has no answer");
    let plain = json!({"spec": {"type": "ClusterIP", "externalName": null, "ports": [{"port": 80}]}});
    let register = format!("fairlead register {} --address {} --port 80", remedy::named(case.key), remedy::quote(name));
    draft.broken(Cause::ExternalNameIsAddress, message, vec![case.patch(&plain), register, rename(case)]);
}

/// Why it leads nowhere, if it leads to a Service of this cluster.
fn follow(case: &Case<'_>, name: &str, draft: &mut Draft) -> Option<(Cause, String)> {
    let mut seen = BTreeSet::from([case.key.clone()]);
    let mut next = inside(case, name);
    while let Some(key) = next.take().filter(|_| seen.len() <= MAX_ALIASES) {
        let Some(target) = case.objects.service(&key) else {
            let message = format!("{name} leads to the Service {key}, which does not exist");
            return Some((Cause::ExternalNameTargetMissing, message));
        };
        if seen.contains(&key) {
            let message = format!("{name} leads back to {key}: an alias that goes in a circle has no addresses");
            return Some((Cause::ExternalNameLoops, message));
        }
        draft.see(format!("{name} is the Service {key}"));
        if target.spec.kind == ServiceType::ExternalName {
            next = inside(case, &target.spec.external_name);
        }
        seen.insert(key);
    }
    None
}

/// The Service a name of the cluster stands for: `web.shop.svc.cluster.local`. Those of other clusters, such as
/// `web.shop.svc.clusterset.local`, stand for none here.
fn inside(case: &Case<'_>, name: &str) -> Option<Key> {
    named(name).filter(|(_, domain)| *domain == case.domain()).map(|(key, _)| key)
}

/// DNS leads to another server, but tells it nothing of the name: that is in what clients send, and it is the Service's.
fn other_host(case: &Case<'_>, name: &str, draft: &mut Draft) {
    let own = case.whole_name(case.key);
    draft
        .see(format!("clients that are told {own} say so to {name}: in HTTP's Host, and when they check certificates"));
    let Some((port, is_tls)) = case.ports.iter().find_map(|port| Some((*port, speaks(port)?))) else { return };
    let (what, knows) = match is_tls {
        true => ("TLS", "its certificate is for"),
        false => ("HTTP", "it serves"),
    };
    let message = format!(
        "clients of port {} ({what}) ask {name} for {own}, but most likely {knows} {name}: they must say that name",
        port.port
    );
    draft.warn(Cause::ExternalNameChangesHost, message, vec![say(name, &own, port.port, is_tls)]);
}

/// Asks the alias for the name that its server knows.
fn say(name: &str, own: &str, port: i32, is_tls: bool) -> String {
    let name = name.trim_end_matches('.');
    if is_tls {
        let way = format!("{name}:{port}:{own}:{port}");
        return format!(
            "curl --connect-to {} {}",
            remedy::quote(&way),
            remedy::quote(&format!("https://{name}:{port}/"))
        );
    }
    let host = remedy::quote(&format!("Host: {name}"));
    format!("curl -H {host} {}", remedy::quote(&format!("http://{own}:{port}/")))
}

/// Whether HTTP or TLS is spoken at a port, as far as that can be guessed; true for TLS.
fn speaks(port: &ServicePort) -> Option<bool> {
    let by_name = |text: &str| PROTOCOLS.iter().find(|(name, _)| *name == text).map(|(_, tls)| *tls);
    if let Some(said) = &port.app_protocol {
        return by_name(&said.to_ascii_lowercase());
    }
    let first = port.name.split('-').next().unwrap_or_default();
    by_name(first).or_else(|| NUMBERS.iter().find(|(number, _)| *number == port.port).map(|(_, tls)| *tls))
}
