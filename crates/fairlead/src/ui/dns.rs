//! What a Pod's resolver would ask for a name, what it is answered, and why it is not.

use std::net::SocketAddr;

use fairlead_api::source::Key;
use fairlead_api::{Failure, kinds};
use fairlead_explain::{Objects, Resolver};
use fairlead_pods::resolv::{self, DnsSettings};
use fairlead_server::pages::Question;
use fairlead_zone::message::{Message, Rcode, Record};
use fairlead_zone::{Change, Name, Options, Zone, rtype};
use serde_json::{Value, json};

use super::{Ui, absent, or, to_the_end};
use crate::config::Config;
use crate::explain::names;

#[cfg(test)]
mod tests;

/// The types that can be asked for.
const TYPES: &[(&str, u16)] = &[
    ("A", rtype::A),
    ("AAAA", rtype::AAAA),
    ("CNAME", rtype::CNAME),
    ("SRV", rtype::SRV),
    ("PTR", rtype::PTR),
    ("TXT", rtype::TXT),
    ("NS", rtype::NS),
    ("SOA", rtype::SOA),
    ("MX", rtype::MX),
];
/// What resolvers do without being told.
const USUAL_NDOTS: usize = 1;
/// The file that says whom this machine asks for names.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// How resolvers of Pods are set up.
pub(super) struct Resolvers {
    settings: DnsSettings,
}

impl Resolvers {
    pub(super) fn of(config: &Config) -> Resolvers {
        let node = config.node.as_ref();
        let usual = DnsSettings::default();
        let domain = node.map(|node| node.domain.to_string().trim_end_matches('.').to_owned());
        Resolvers {
            settings: DnsSettings {
                cluster_dns: node.map(|node| node.dns.clone()).unwrap_or_default(),
                cluster_domain: domain.unwrap_or_else(|| usual.cluster_domain.clone()),
                host: std::fs::read_to_string(RESOLV_CONF).ok(),
                ..usual
            },
        }
    }

    /// The domain of the cluster's names.
    pub(super) fn domain(&self) -> &str {
        &self.settings.cluster_domain
    }

    /// That of a Pod.
    fn of_pod(&self, pod: &Value) -> Resolver {
        let made = resolv::of(pod, &self.settings);
        let ndots = made.options.iter().find_map(|option| option.strip_prefix("ndots:")?.parse().ok());
        let servers = made.nameservers.iter().filter_map(|text| text.parse().ok()).collect();
        Resolver { servers, search: made.searches, ndots: ndots.unwrap_or(USUAL_NDOTS) }
    }

    /// That of somebody who asks the cluster's DNS for whole names.
    fn plain(&self, objects: &Objects) -> Resolver {
        let servers = match &self.settings.cluster_dns[..] {
            [] => names::cluster_dns(objects),
            known => known.to_vec(),
        };
        Resolver { servers, search: Vec::new(), ndots: USUAL_NDOTS }
    }
}

/// Asks as somebody would.
pub(super) async fn answer(ui: &Ui, question: &Question<'_>) -> Result<Value, Failure> {
    let name = question.text("name");
    if name.is_empty() || name.len() > fairlead_zone::MAX_NAME {
        return Err(Failure::bad_request("name: say which name is looked for"));
    }
    let rtype = rtype_of(or(question.text("type"), "A"))?;
    let board = ui.board.open().await?;
    let resolver = match sender(question.text("from"))? {
        Some(key) => ui.dns.of_pod(&ui.cluster.get(&kinds::POD, &key.namespace, &key.name).await?),
        None => ui.dns.plain(&board.objects()),
    };
    let server = resolver.servers.first().map(|ip| SocketAddr::new(*ip, 53)).ok_or_else(no_dns)?;
    let candidates = names::candidates(name, &resolver);
    let walked = async move { tokio::task::spawn_blocking(move || walk(&candidates, rtype, server)).await };
    let asked = to_the_end(ui.place().await?, walked).await?;
    let asked = asked.map_err(|error| Failure::internal(error.to_string()))?;
    let (objects, domain) = (board.objects(), ui.dns.domain());
    let found = asked.iter().position(|one| matches!(&one.reply, Ok(message) if !message.answer.is_empty()));
    let tried: Vec<Value> = asked.iter().map(|one| one.json(rtype, &objects, domain)).collect();
    Ok(json!({"server": server.to_string(), "tried": tried, "answer": found}))
}

fn no_dns() -> Failure {
    absent("no DNS of the cluster is known here: `fairlead up` answers for its names, or `fairlead dns`")
}

fn rtype_of(text: &str) -> Result<u16, Failure> {
    let known = TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let names = || TYPES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    known.map(|(_, number)| *number).ok_or_else(|| Failure::bad_request(format!("type: want one of {}", names())))
}

/// The Pod that asks; `None`: a Node does.
fn sender(text: &str) -> Result<Option<Key>, Failure> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        ["" | "node"] => Ok(None),
        ["pod" | "pods" | "po", name] if !name.is_empty() => Ok(Some(Key::new("default", name))),
        ["pod" | "pods" | "po", namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Ok(Some(Key::new(namespace, name)))
        }
        _ => Err(Failure::bad_request("from: want pod/NAMESPACE/NAME or node")),
    }
}

/// A name that was asked for.
struct Asked {
    name: String,
    reply: Result<Message, String>,
}

/// Asks for one name after the other until there is an answer.
fn walk(names: &[String], rtype: u16, server: SocketAddr) -> Vec<Asked> {
    let mut asked = Vec::new();
    for name in names {
        let reply = match name.parse::<Name>() {
            Ok(name) => {
                names::exchange(&name, rtype, server).map_err(|error| format!("{server} does not answer: {error}"))
            }
            Err(error) => Err(format!("it is no name: {error}")),
        };
        let ends = reply.as_ref().map_or(true, |message| !message.answer.is_empty());
        asked.push(Asked { name: format!("{}.", name.trim_end_matches('.')), reply });
        if ends {
            break;
        }
    }
    asked
}

impl Asked {
    fn json(&self, rtype: u16, objects: &Objects, domain: &str) -> Value {
        let (code, answers, why) = match &self.reply {
            Ok(message) => {
                let why = if message.answer.is_empty() { why(&self.name, rtype, objects, domain) } else { None };
                (code(message.rcode), message.answer.iter().map(record).collect(), why.unwrap_or_default())
            }
            Err(why) => ("NOANSWER".to_owned(), Vec::new(), why.clone()),
        };
        json!({"name": self.name, "type": type_name(rtype), "code": code, "answers": answers, "why": why})
    }
}

fn code(rcode: Rcode) -> String {
    match rcode.as_str() {
        "OTHER" => format!("RCODE{}", rcode.0),
        known => known.to_owned(),
    }
}

fn type_name(rtype: u16) -> String {
    let known = TYPES.iter().find(|(_, number)| *number == rtype);
    known.map_or_else(|| format!("TYPE{rtype}"), |(name, _)| (*name).to_owned())
}

fn record(record: &Record) -> Value {
    json!({
        "name": record.name.to_string(), "type": type_name(record.rtype), "ttl": record.ttl, "data": data(record),
    })
}

/// The data of a record as zone files write it.
fn data(record: &Record) -> String {
    let bytes = &*record.rdata;
    let name = |bytes: &[u8]| Name::from_wire(bytes).ok().map(|name| name.to_string());
    let short = |at: usize| bytes.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    let text = match (record.rtype, bytes.len()) {
        (rtype::A, 4) => <[u8; 4]>::try_from(bytes).ok().map(|ip| std::net::Ipv4Addr::from(ip).to_string()),
        (rtype::AAAA, 16) => <[u8; 16]>::try_from(bytes).ok().map(|ip| std::net::Ipv6Addr::from(ip).to_string()),
        (rtype::SRV, 7..) => name(&bytes[6..]).map(|to| format!("{} {} {} {to}", short(0), short(2), short(4))),
        (rtype::MX, 3..) => name(&bytes[2..]).map(|to| format!("{} {to}", short(0))),
        (rtype::TXT, _) => Some(texts(bytes)),
        _ => record.target().map(|target| target.to_string()),
    };
    text.unwrap_or_else(|| {
        format!("\\# {} {}", bytes.len(), bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    })
}

/// Pieces, each with its length before it.
fn texts(mut bytes: &[u8]) -> String {
    let mut pieces = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (piece, after) = rest.split_at((*length as usize).min(rest.len()));
        pieces.push(format!("{:?}", String::from_utf8_lossy(piece)));
        bytes = after;
    }
    pieces.join(" ")
}

/// Why a name of the cluster has no records: its zone is made of what concerns the name alone.
fn why(name: &str, rtype: u16, objects: &Objects, domain: &str) -> Option<String> {
    let name: Name = name.parse().ok()?;
    let mut zone = Zone::new(Options { zones: vec![domain.parse().ok()?], ..Options::default() });
    let namespaces =
        objects.namespaces().map(|one| Change::Namespace(Key::new("", &*one.metadata.name), Some(one.clone())));
    zone.apply(namespaces.collect::<Vec<_>>());
    if let Some(key) = service_of(&name.to_string(), domain).filter(|key| objects.service(key).is_some()) {
        let slices = objects.slices_of(&key);
        let slices =
            slices.map(|one| Change::EndpointSlice(Key::new(&*key.namespace, &*one.metadata.name), Some(one.clone())));
        let service = Change::Service(key.clone(), objects.service(&key).cloned());
        zone.apply(slices.chain([service]).collect::<Vec<_>>());
    }
    zone.why(&fairlead_zone::Question::new(&name, rtype)).map(|why| why.to_string())
}

/// The Service a name of the cluster is about: `web.shop.svc.cluster.local.` and what is below it.
fn service_of(name: &str, domain: &str) -> Option<Key> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let before = name.strip_suffix(&format!(".svc.{}", domain.trim_end_matches('.').to_ascii_lowercase()))?;
    let mut labels = before.rsplit('.');
    let (namespace, service) = (labels.next()?, labels.next()?);
    Some(Key::new(namespace, service))
}
