//! The servers: ours, Knot, CoreDNS, and one that gives back what it gets.

use std::env;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::Context;
use fairlead_bench_kit::SERVER_CORE;
use fairlead_bench_kit::http::{Client, Target};
use fairlead_bench_kit::load::{self, Limit};
use fairlead_bench_kit::process::Running;
use fairlead_bench_kit::server::Server;
use serde_json::json;

use crate::records;

/// Somebody else's server.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    Knot(PathBuf),
    CoreDns(PathBuf),
}

/// A server that runs, with its records.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) at: SocketAddr,
    pub(crate) running: Running,
    /// What it has its records from.
    _source: Option<Server>,
}

/// The peers that are here.
pub(crate) fn peers() -> Vec<Peer> {
    let knot = crate::find("knotd").map(Peer::Knot);
    let core_dns = env::var_os("COREDNS").map(PathBuf::from).filter(|path| path.exists()).map(Peer::CoreDns);
    knot.into_iter().chain(core_dns).collect()
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Ours, with the Services from a file.
pub(crate) fn fairlead(program: &Path, services: usize, folder: &Path) -> anyhow::Result<Subject> {
    let (manifests, at) = (folder.join("manifests.yaml"), at(5301));
    fs::write(&manifests, records::manifests(services))?;
    let mut arguments = vec!["dns".to_owned(), "--manifests".to_owned(), manifests.display().to_string()];
    arguments.extend(["--corefile".to_owned(), corefile(folder, "fairlead", at.port(), "")?]);
    let running = Running::start(program, &arguments, SERVER_CORE, folder)?;
    Ok(Subject { name: "fairlead", at, running, _source: None })
}

/// Ours, with the Services of an API server.
pub(crate) fn fairlead_of(program: &Path, target: &Target, folder: &Path) -> anyhow::Result<Subject> {
    let at = at(5305);
    let mut arguments = vec!["dns".to_owned(), "--kubeconfig".to_owned(), kubeconfig(folder, target)?];
    arguments.extend(["--corefile".to_owned(), corefile(folder, "fairlead-of", at.port(), "")?]);
    let running = Running::start(program, &arguments, SERVER_CORE, folder)?;
    Ok(Subject { name: "fairlead", at, running, _source: None })
}

/// One that gives back what it gets, a datagram at a time.
pub(crate) fn bare(folder: &Path) -> anyhow::Result<Subject> {
    let at = at(5304);
    let program = env::current_exe().context("our own program")?;
    let running = Running::start(&program, &["--echo".to_owned(), at.to_string()], SERVER_CORE, folder)?;
    Ok(Subject { name: "echo", at, running, _source: None })
}

/// Gives back what comes.
pub(crate) fn echo(at: SocketAddr) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(at)?;
    let mut buffer = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        socket.send_to(&buffer[..length], from)?;
    }
}

impl Peer {
    /// Starts it with the same records.
    pub(crate) fn start(&self, fairlead: &Path, services: usize, folder: &Path) -> anyhow::Result<Subject> {
        match self {
            Peer::Knot(program) => knot(program, services, folder),
            Peer::CoreDns(program) => core_dns(program, fairlead, services, folder),
        }
    }
}

fn knot(program: &Path, services: usize, folder: &Path) -> anyhow::Result<Subject> {
    let (zone, config, at) = (folder.join("cluster.local.zone"), folder.join("knot.conf"), at(5302));
    fs::write(&zone, records::zone(services))?;
    let text = format!(
        "server:\n  rundir: \"{folder}\"\n  listen: {ip}@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n\
         log:\n  - target: stderr\n    any: warning\n\
         database:\n  storage: \"{folder}\"\n\
         zone:\n  - domain: cluster.local\n    storage: \"{folder}\"\n    file: \"{zone}\"\n    semantic-checks: off\n",
        folder = folder.display(),
        ip = at.ip(),
        port = at.port(),
        zone = zone.display()
    );
    fs::write(&config, text)?;
    let arguments = ["-c".to_owned(), config.display().to_string()];
    let running = Running::start(program, &arguments, SERVER_CORE, folder)?;
    Ok(Subject { name: "knot", at, running, _source: None })
}

/// It knows no other source of Services than an API server.
fn core_dns(program: &Path, fairlead: &Path, services: usize, folder: &Path) -> anyhow::Result<Subject> {
    let source = Server::fairlead_with(fairlead, &[("store", "memory")])?;
    fill(&source.target, services)?;
    let at = at(5303);
    let more = format!("kubeconfig {}", kubeconfig(folder, &source.target)?);
    let arguments = ["-conf".to_owned(), corefile(folder, "coredns", at.port(), &more)?];
    let running = Running::start(program, &arguments, SERVER_CORE, folder)?;
    Ok(Subject { name: "coredns", at, running, _source: Some(source) })
}

/// Makes all Services in an API server.
pub(crate) fn fill(target: &Target, services: usize) -> anyhow::Result<()> {
    let mut client = Client::connect(target)?;
    for namespace in records::namespaces() {
        client.expect("POST", "/api/v1/namespaces", namespace.to_string().as_bytes())?;
    }
    load::run(target, 8, Limit { time: std::time::Duration::MAX, count: services }, create)?;
    Ok(())
}

/// Makes one Service.
pub(crate) fn create(client: &mut Client, service: usize) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{}/services", records::namespace(service));
    client.expect("POST", &path, records::object(service).to_string().as_bytes()).map(drop)
}

/// kubeadm's Corefile, at ports of its own.
fn corefile(folder: &Path, name: &str, port: u16, more: &str) -> anyhow::Result<String> {
    let (health, ready, metrics) = (port + 10_000, port + 20_000, port + 30_000);
    let text = format!(
        ".:{port} {{\n    bind 127.0.0.1\n    errors\n    health 127.0.0.1:{health} {{\n        lameduck 5s\n    }}\n    \
         ready 127.0.0.1:{ready}\n    kubernetes cluster.local in-addr.arpa ip6.arpa {{\n        {more}\n        pods insecure\n        \
         fallthrough in-addr.arpa ip6.arpa\n        ttl 30\n    }}\n    prometheus 127.0.0.1:{metrics}\n    \
         forward . 127.0.0.1:9 {{\n        max_concurrent 1000\n    }}\n    cache 30 {{\n        disable success cluster.local\n        \
         disable denial cluster.local\n    }}\n    loop\n    reload\n    loadbalance\n}}\n"
    );
    let path = folder.join(format!("Corefile-{name}"));
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}

fn kubeconfig(folder: &Path, target: &Target) -> anyhow::Result<String> {
    let server = format!("https://127.0.0.1:{}", target.port);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": server, "insecure-skip-tls-verify": true}}],
        "users": [{"name": "bench", "user": {"token": target.token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    });
    let path = folder.join("kubeconfig");
    fs::write(&path, config.to_string())?;
    Ok(path.display().to_string())
}
