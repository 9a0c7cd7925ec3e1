//! The server under load: ours, or a peer with its store.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::SERVER_CORE;
use crate::http::{Client, Target};
use crate::process::Running;

/// A server that answers.
#[derive(Debug)]
pub struct Server {
    /// How the table calls it.
    pub name: &'static str,
    /// Where it is.
    pub target: Target,
    /// From the start of the first process to the first `/readyz` that was 200.
    pub started: Duration,
    processes: Vec<Running>,
    data: TempDir,
}

/// The binaries of a peer.
#[derive(Debug)]
pub struct Peer {
    apiserver: PathBuf,
    etcd: PathBuf,
}

impl Peer {
    /// Named by `KUBE_APISERVER` and `ETCD`.
    pub fn from_environment() -> Option<Peer> {
        let path = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.exists());
        Some(Peer { apiserver: path("KUBE_APISERVER")?, etcd: path("ETCD")? })
    }
}

const TOKEN: &str = "bench-token";
const RANGES: &str = "10.0.0.0/16,fd00:10::/108";

impl Server {
    /// Our own.
    pub fn fairlead(program: &Path) -> anyhow::Result<Server> {
        Server::fairlead_with(program, &[])
    }

    /// Our own, with more flags.
    pub fn fairlead_with(program: &Path, more: &[(&str, &str)]) -> anyhow::Result<Server> {
        let data = tempfile::tempdir()?;
        let (port, tokens) = (free_port()?, token_file(data.path())?);
        let state = data.path().join("data").display().to_string();
        let mut arguments = vec!["server".to_owned()];
        arguments.extend(flags(&[
            ("data-dir", &state),
            ("bind-address", "127.0.0.1"),
            ("secure-port", &port.to_string()),
            ("authorization-mode", "AlwaysAllow"),
            ("token-auth-file", &tokens),
            ("service-cluster-ip-range", RANGES),
        ]));
        arguments.extend(flags(more));
        let since = Instant::now();
        let process = Running::start(program, &arguments, SERVER_CORE, data.path())?;
        Server::ready("fairlead", port, since, vec![process], data)
    }

    /// A peer: its store first, both on the core that ours has.
    pub fn peer(peer: &Peer) -> anyhow::Result<Server> {
        let data = tempfile::tempdir()?;
        let (client, other, port) = (free_port()?, free_port()?, free_port()?);
        let (store, members) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{other}"));
        let state = data.path().join("etcd").display().to_string();
        let arguments = flags(&[
            ("data-dir", &state),
            ("listen-client-urls", &store),
            ("advertise-client-urls", &store),
            ("listen-peer-urls", &members),
            ("initial-advertise-peer-urls", &members),
            ("initial-cluster", &format!("default={members}")),
        ]);
        let since = Instant::now();
        let etcd = Running::start(&peer.etcd, &arguments, SERVER_CORE, data.path())?;
        let (key, public) = (data.path().join("key.pem"), data.path().join("key.pub"));
        let pair = rcgen::KeyPair::generate()?;
        fs::write(&key, pair.serialize_pem())?;
        fs::write(&public, pair.public_key_pem())?;
        let (key, public) = (key.display().to_string(), public.display().to_string());
        let certificates = data.path().join("certificates").display().to_string();
        let tokens = token_file(data.path())?;
        let arguments = flags(&[
            ("etcd-servers", &store),
            ("bind-address", "127.0.0.1"),
            ("secure-port", &port.to_string()),
            ("cert-dir", &certificates),
            ("authorization-mode", "AlwaysAllow"),
            ("token-auth-file", &tokens),
            ("service-cluster-ip-range", RANGES),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            ("service-account-key-file", &public),
            ("service-account-signing-key-file", &key),
            ("disable-admission-plugins", "ServiceAccount"),
        ]);
        let apiserver = Running::start(&peer.apiserver, &arguments, SERVER_CORE, data.path())?;
        Server::ready("kube-apiserver + etcd", port, since, vec![apiserver, etcd], data)
    }

    fn ready(
        name: &'static str,
        port: u16,
        since: Instant,
        mut processes: Vec<Running>,
        data: TempDir,
    ) -> anyhow::Result<Server> {
        let target = Target { port, token: TOKEN.to_owned() };
        while !answers(&target) {
            for process in &mut processes {
                process.check().with_context(|| said(data.path()))?;
            }
            ensure!(since.elapsed() < START, "{name} is not ready after {START:?}\n{}", said(data.path()));
            thread::sleep(Duration::from_millis(2));
        }
        Ok(Server { name, target, started: since.elapsed(), processes, data })
    }

    /// Its folder, which goes with it.
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// Time its processes have been on a core.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        self.processes.iter().map(Running::cpu).sum()
    }

    /// Memory its processes hold, in bytes.
    pub fn resident(&self) -> anyhow::Result<u64> {
        self.processes.iter().map(Running::resident).sum()
    }
}

/// A server that is not ready by then never will be.
const START: Duration = Duration::from_secs(60);

fn answers(target: &Target) -> bool {
    let answer = Client::connect(target).and_then(|mut client| client.request("GET", "/readyz", b""));
    answer.is_ok_and(|answer| answer.code == 200)
}

fn flags(given: &[(&str, &str)]) -> Vec<String> {
    given.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

/// A port nobody listens on now.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn token_file(folder: &Path) -> anyhow::Result<String> {
    let path = folder.join("tokens.csv");
    fs::write(&path, format!("{TOKEN},bench,1,\"system:masters\"\n"))?;
    Ok(path.display().to_string())
}

/// The last words of the programs.
fn said(folder: &Path) -> String {
    let mut said = String::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "log") {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let lines: Vec<&str> = text.lines().rev().take(5).collect();
            said.push_str(&format!("{}:\n", entry.file_name().to_string_lossy()));
            lines.iter().rev().for_each(|line| said.push_str(&format!("  {line}\n")));
        }
    }
    said
}
