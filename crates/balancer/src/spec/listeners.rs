//! Listeners: what is spoken on each port of a Service, towards clients and towards backends.

use fairlead_api::view::{Protocol, Service, ServicePort};

use super::table::{Asked, Backend, Layer, TlsPorts};
use super::{Kind, Listener, Note, ProxyVersion, Refusal, Speaks, Tls, TlsPolicy, names};

/// What `appProtocol` says of backends: how much is understood of it, and whether they have TLS.
const APP_PROTOCOLS: [(&str, Speaks, bool); 11] = [
    ("http", Speaks::Http, false),
    ("https", Speaks::Http, true),
    ("kubernetes.io/ws", Speaks::Http, false),
    ("ws", Speaks::Http, false),
    ("kubernetes.io/wss", Speaks::Http, true),
    ("wss", Speaks::Http, true),
    ("kubernetes.io/h2c", Speaks::H2c, false),
    ("h2c", Speaks::H2c, false),
    ("http2", Speaks::H2c, false),
    ("grpc", Speaks::H2c, false),
    ("grpcs", Speaks::H2c, true),
];

/// The listeners of a Service, with what is to be said of them.
pub(super) struct Listening {
    pub(super) listeners: Vec<Listener>,
    pub(super) notes: Vec<Note>,
}

/// A listener for each port.
pub(super) fn listeners(service: &Service, asked: &Asked, refusals: &mut Vec<Refusal>) -> Listening {
    let mut notes = Vec::new();
    let backend = backend(asked, &mut notes);
    tls_ports(service, asked, refusals);
    let mut listeners = Vec::with_capacity(service.spec.ports.len());
    for (index, port) in service.spec.ports.iter().enumerate() {
        let Some(number) = u16::try_from(port.port).ok().filter(|number| *number > 0) else {
            let what = format!("spec.ports[{index}].port");
            refusals.push(Refusal::new(what, &port.port.to_string(), "a number from 1 to 65535"));
            continue;
        };
        listeners.push(listener(port, number, asked, backend, &mut notes));
    }
    Listening { listeners, notes }
}

fn listener(
    port: &ServicePort,
    number: u16,
    asked: &Asked,
    backend: Option<Backend>,
    notes: &mut Vec<Note>,
) -> Listener {
    let tcp = port.protocol == Protocol::Tcp;
    let Behind { speaks, reencrypt } = if tcp { behind(port, number, asked, backend, notes) } else { Behind::BYTES };
    let tls = asked.certificate.as_ref().filter(|_| tcp && has_tls(port, asked));
    let policy = asked.policy.map_or("", |policy| policy.name);
    if reencrypt && tls.is_none() {
        notes.push(Note::PlainClients { port: number });
    }
    let send_proxy = asked.send_proxy.or(asked.send_proxy_by_aws.then_some(ProxyVersion::V1));
    Listener {
        name: port.name.clone(),
        port: number,
        protocol: port.protocol,
        node_port: u16::try_from(port.node_port).ok().filter(|port| *port > 0),
        speaks,
        tls: tls.map(|names| Tls { certificate: names.clone(), policy: TlsPolicy { name: policy.to_owned() } }),
        reencrypt,
        send_proxy: send_proxy.filter(|_| tcp),
        accept_proxy: tcp && asked.accept_proxy == Some(true),
    }
}

/// What is spoken with backends.
struct Behind {
    speaks: Speaks,
    reencrypt: bool,
}

impl Behind {
    const BYTES: Behind = Behind { speaks: Speaks::Bytes, reencrypt: false };
}

/// The annotation decides; where it asks for HTTP, `appProtocol` tells HTTP/2 from HTTP/1.1. Without it, and with layer 7,
/// `appProtocol` decides alone.
fn behind(port: &ServicePort, number: u16, asked: &Asked, backend: Option<Backend>, notes: &mut Vec<Note>) -> Behind {
    let app = port.app_protocol.as_deref().filter(|app| !app.is_empty());
    let known = app.and_then(|app| APP_PROTOCOLS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(app)));
    let http = known.map_or(Speaks::Http, |(_, speaks, _)| *speaks);
    match (backend, asked.layer) {
        (Some(Backend::Tcp), _) => Behind::BYTES,
        (Some(Backend::Ssl), _) => Behind { speaks: Speaks::Bytes, reencrypt: true },
        (Some(Backend::Http), _) => Behind { speaks: http, reencrypt: false },
        (Some(Backend::Https), _) => Behind { speaks: http, reencrypt: true },
        (None, Some(Layer::Seven)) => match (app, known) {
            (Some(app), None) => {
                notes.push(Note::NotHttp { port: number, app_protocol: app.to_owned() });
                Behind::BYTES
            }
            (_, known) => Behind { speaks: http, reencrypt: known.is_some_and(|(.., tls)| *tls) },
        },
        (None, None | Some(Layer::Four)) => Behind::BYTES,
    }
}

/// A network load balancer carries bytes, as AWS' does, whatever it is asked for.
fn backend(asked: &Asked, notes: &mut Vec<Note>) -> Option<Backend> {
    match (asked.backend, asked.kind) {
        (Some(Backend::Http), Some(Kind::Network)) => {
            notes.push(Note::Layer4 { asked: "http", served: "tcp" });
            Some(Backend::Tcp)
        }
        (Some(Backend::Https), Some(Kind::Network)) => {
            notes.push(Note::Layer4 { asked: "https", served: "ssl" });
            Some(Backend::Ssl)
        }
        (backend, _) => backend,
    }
}

pub(super) fn has_tls(port: &ServicePort, asked: &Asked) -> bool {
    match &asked.tls_ports {
        None | Some(TlsPorts::All) => true,
        Some(TlsPorts::Some(entries)) => entries.iter().any(|entry| means(entry, port)),
    }
}

/// Whether an entry means a port: by its number, or by its name.
fn means(entry: &str, port: &ServicePort) -> bool {
    entry.parse() == Ok(port.port) || entry == port.name
}

/// Every entry is to mean a port: one that does not is a mistake that would leave a port without TLS.
pub(super) fn tls_ports(service: &Service, asked: &Asked, refusals: &mut Vec<Refusal>) {
    let Some(TlsPorts::Some(entries)) = &asked.tls_ports else { return };
    let tcp: Vec<_> = service.spec.ports.iter().filter(|port| port.protocol == Protocol::Tcp).collect();
    let stray: Vec<_> = entries.iter().filter(|entry| !tcp.iter().any(|port| means(entry, port))).collect();
    if stray.is_empty() {
        return;
    }
    let stray: Vec<_> = stray.into_iter().map(String::as_str).collect();
    let known: Vec<_> = tcp.iter().take(16).map(|port| spelled(port)).collect();
    let accepted = format!("numbers or names of TCP ports of the Service: {}; or *", known.join(", "));
    refusals.push(Refusal::new(names::SSL_PORTS, &stray.join(","), accepted));
}

fn spelled(port: &ServicePort) -> String {
    if port.name.is_empty() { port.port.to_string() } else { format!("{} ({})", port.port, port.name) }
}
