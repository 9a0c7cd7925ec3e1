//! What does a client learn who asks for a Service by name? Its resolver's settings, and the answers to what it would ask, asked
//! from where the client is.

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_explain::{Dns, DnsReply, Evidence, From, Objects, Resolver};
use fairlead_kernel::mount::read_within;
use fairlead_kernel::netns::Namespace;
use fairlead_pods::resolv;
use fairlead_zone::Name;
use fairlead_zone::message::{self, Edns, Message, QR, Rcode};

use super::Ask;
use super::gather::{Client, blocking};

/// How long an answer is waited for, and how often it is asked for.
const PATIENCE: Duration = Duration::from_millis(1000);
const TRIES: usize = 2;
/// More names a resolver does not try.
const MOST_NAMES: usize = 32;
/// The longest resolv.conf that is read.
const LONGEST: u64 = 64 << 10;
const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// What resolvers do without being told.
const USUAL_NDOTS: usize = 1;

/// Looks at the client's resolver, and asks.
pub(super) async fn look(objects: &Objects, ask: &Ask, client: &Client, evidence: &mut Evidence) {
    if matches!(ask.question.from, From::Outside(_)) {
        return;
    }
    let resolver = match &client.pod {
        Some(_) => {
            let namespace = client.namespace.clone();
            blocking(move || namespace.as_deref().and_then(of_processes)).await
        }
        None => Some(Resolver { servers: cluster_dns(objects), search: Vec::new(), ndots: USUAL_NDOTS }),
    };
    let Some(resolver) = resolver else { return };
    let host = ask.question.host.clone();
    let name = host.unwrap_or_else(|| whole(&ask.question.service, domain(&resolver)));
    if client.pod.is_some() {
        evidence.resolver = Some(resolver.clone());
    }
    let Some(server) = resolver.servers.first().map(|ip| SocketAddr::new(*ip, 53)) else { return };
    let (tried, domain) = (candidates(&name, &resolver), domain(&resolver).to_owned());
    let inside = client.namespace.clone();
    let answers = blocking(move || {
        let questions = || walk(&tried, &domain, server);
        match inside {
            None => questions(),
            Some(file) => Namespace::at(&file).and_then(|it| it.run(questions)).unwrap_or_default(),
        }
    });
    evidence.dns = Some(Dns { name, server: Some(server), tried: answers.await });
}

/// Where the cluster's names are answered: at the Service of that name.
pub(crate) fn cluster_dns(objects: &Objects) -> Vec<IpAddr> {
    let service = objects.service(&Key::new("kube-system", "kube-dns"));
    service.map(|it| it.spec.cluster_ips.iter().filter_map(|text| ip::parse(text)).collect()).unwrap_or_default()
}

/// The resolv.conf that processes in a network namespace see, if they do not see that of the machine. It is theirs: what is there
/// may be anything.
fn of_processes(namespace: &Path) -> Option<Resolver> {
    let mounts = |who: &str| std::fs::metadata(format!("/proc/{who}/ns/mnt")).ok().map(|it| (it.dev(), it.ino()));
    let own = mounts("self");
    let processes = Namespace::at(namespace).ok()?.processes().ok()?;
    let apart = processes.iter().find(|pid| mounts(&pid.to_string()) != own)?;
    let root = File::open(format!("/proc/{apart}/root")).ok()?;
    let text = read_within(&root, Path::new("/etc/resolv.conf"), LONGEST).ok()?;
    let read = resolv::parse(&String::from_utf8(text).ok()?);
    let ndots = read.options.iter().find_map(|option| option.strip_prefix("ndots:")?.parse().ok());
    let servers = read.nameservers.iter().filter_map(|text| ip::parse(text)).collect();
    Some(Resolver { servers, search: read.searches, ndots: ndots.unwrap_or(USUAL_NDOTS) })
}

fn whole(service: &Key, domain: &str) -> String {
    format!("{}.{}.svc.{domain}", service.name, service.namespace)
}

/// The domain of the cluster, as the search path has it.
fn domain(resolver: &Resolver) -> &str {
    let entry = resolver.search.iter().find_map(|entry| entry.strip_prefix("svc."));
    entry.unwrap_or("cluster.local").trim_end_matches('.')
}

/// What a resolver asks for in turn.
pub(crate) fn candidates(name: &str, resolver: &Resolver) -> Vec<String> {
    let as_it_is = name.trim_end_matches('.').to_owned();
    if name.ends_with('.') {
        return vec![as_it_is];
    }
    let searched = resolver.search.iter().filter(|domain| *domain != ".").map(|domain| format!("{name}.{domain}"));
    let mut all: Vec<String> = searched.take(MOST_NAMES).collect();
    let first = name.matches('.').count() >= resolver.ndots;
    all.insert(if first { 0 } else { all.len() }, as_it_is);
    all
}

/// Asks until there is an answer. For names outside of the cluster the server asks others, and their silence is not its own.
fn walk(names: &[String], domain: &str, server: SocketAddr) -> Vec<(String, DnsReply)> {
    let mut tried = Vec::new();
    for name in names {
        let ours = name.ends_with(&format!(".{domain}"));
        let reply = match addresses(name, server) {
            DnsReply::Silence(why) if !ours && names.len() > 1 => DnsReply::Failure(why),
            reply => reply,
        };
        let ends = !matches!(reply, DnsReply::NxDomain | DnsReply::NoData | DnsReply::Failure(_));
        tried.push((name.clone(), reply));
        if ends {
            break;
        }
    }
    tried
}

/// The addresses of both families.
fn addresses(name: &str, server: SocketAddr) -> DnsReply {
    let v4 = query(name, A, server);
    if matches!(v4, DnsReply::Silence(_) | DnsReply::NxDomain | DnsReply::Alias(_)) {
        return v4;
    }
    match (v4, query(name, AAAA, server)) {
        (DnsReply::Addresses(mut all), DnsReply::Addresses(more)) => {
            all.extend(more);
            DnsReply::Addresses(all)
        }
        (found @ DnsReply::Addresses(_), _) => found,
        (_, found @ DnsReply::Addresses(_)) => found,
        (other, _) => other,
    }
}

fn query(name: &str, rtype: u16, server: SocketAddr) -> DnsReply {
    let Ok(name) = name.parse::<Name>() else { return DnsReply::Failure("it is no name".to_owned()) };
    let mut last = String::new();
    for _ in 0..TRIES {
        match exchange(&name, rtype, server) {
            Ok(message) => return reply(&message),
            Err(error) => last = error.to_string(),
        }
    }
    DnsReply::Silence(last)
}

/// Asks a server once. Whatever comes that is no answer, it is waited for no longer.
pub(crate) fn exchange(name: &Name, rtype: u16, server: SocketAddr) -> io::Result<Message> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    let until = Instant::now() + PATIENCE;
    // The kernel chose the port at random, and nobody else can send to a socket that is connected.
    let id = socket.local_addr()?.port();
    socket.send(&message::query(id, name, rtype, Some(Edns::default())))?;
    let mut buffer = [0; 4096];
    loop {
        let no_answer = || io::Error::new(io::ErrorKind::TimedOut, "no answer");
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(no_answer());
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut buffer).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => no_answer(),
            _ => error,
        })?;
        let read = Message::parse(&buffer[..length]);
        if let Some(message) = read.ok().filter(|message| message.id == id && message.flags & QR != 0) {
            return Ok(message);
        }
    }
}

fn reply(message: &Message) -> DnsReply {
    let address = |record: &message::Record| match (record.rtype, &*record.rdata) {
        (A, data) => <[u8; 4]>::try_from(data).ok().map(IpAddr::from),
        (AAAA, data) => <[u8; 16]>::try_from(data).ok().map(IpAddr::from),
        _ => None,
    };
    let found: Vec<IpAddr> = message.answer.iter().filter_map(address).collect();
    if !found.is_empty() {
        return DnsReply::Addresses(found);
    }
    let alias = message.answer.iter().rev().find(|record| record.rtype == CNAME).and_then(message::Record::target);
    match (alias, message.rcode) {
        (Some(alias), _) => DnsReply::Alias(alias.to_string().trim_end_matches('.').to_owned()),
        (None, Rcode::NO_ERROR) => DnsReply::NoData,
        (None, Rcode::NX_DOMAIN) => DnsReply::NxDomain,
        (None, other) => DnsReply::Failure(other.as_str().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_does_not_put_the_end_of_waiting_off() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        let (told, ended) = std::sync::mpsc::channel();
        let junk = std::thread::spawn(move || {
            let mut question = [0; 512];
            let (length, client) = server.recv_from(&mut question).unwrap();
            for _ in 0..30 {
                if ended.recv_timeout(PATIENCE / 10).is_ok() {
                    return;
                }
                let _ = server.send_to(b"junk", client);
            }
            // Who still waits is answered.
            question[2] |= 0x80;
            let _ = server.send_to(&question[..length], client);
        });
        let said = exchange(&"web.shop.svc.cluster.local".parse().unwrap(), A, at);
        let _ = told.send(());
        junk.join().unwrap();
        assert_eq!(said.err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
    }

    #[test]
    fn a_resolver_tries_names_as_its_settings_say() {
        let search = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"].map(str::to_owned).to_vec();
        let pod = Resolver { servers: Vec::new(), search, ndots: 5 };
        let plain = Resolver { ndots: 1, ..Resolver::default() };
        let cases: [(&str, &Resolver, &[&str]); 4] = [
            ("web", &pod, &["web.shop.svc.cluster.local", "web.svc.cluster.local", "web.cluster.local", "web"]),
            ("web.", &pod, &["web"]),
            (
                "a.b.c.d.e.f",
                &Resolver { search: vec!["x".to_owned()], ..pod.clone() },
                &["a.b.c.d.e.f", "a.b.c.d.e.f.x"],
            ),
            ("web.shop.svc.cluster.local", &plain, &["web.shop.svc.cluster.local"]),
        ];
        for (name, resolver, expected) in cases {
            assert_eq!(candidates(name, resolver), expected, "{name}");
        }
        assert_eq!(domain(&pod), "cluster.local");
    }
}
