//! What is measured, as a process of its own in the Node's namespace.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fairlead_api::source::Key;
use fairlead_bench_kit::process::Running;
use fairlead_plan::{Change, Node, Planner};
use fairlead_proxy::Dataplane;
use fairlead_proxy::userspace::{Options, Userspace};
use serde_json::json;

use crate::world::{NODE, SERVERS, VIP, World};

/// The port for traffic, and the one for connections that are only held; servers listen on 8000 more.
pub(crate) const PORTS: [u16; 2] = [80, 81];
/// How many threads each may have.
const THREADS: usize = 2;

/// Who carries.
#[derive(Debug)]
pub(crate) enum Subject {
    /// Mode userspace, in a process of this very program.
    Ours,
    /// HAProxy.
    HaProxy(HaProxy),
}

/// HAProxy, and how it is set up.
#[derive(Debug)]
pub(crate) struct HaProxy {
    pub(crate) program: PathBuf,
    /// Everything through pipes as large as ours, instead of what it finds worth while.
    pub(crate) always_splices: bool,
}

impl Subject {
    /// Starts it.
    pub(crate) fn start(&self, world: &World, folder: &Path) -> anyhow::Result<Running> {
        let child = match self {
            Subject::Ours => start_ours(world)?,
            Subject::HaProxy(peer) => start_haproxy(peer, world, folder)?,
        };
        let running = Running::of(child);
        let end = Instant::now() + Duration::from_secs(10);
        while world.client.run(|| TcpStream::connect((VIP, PORTS[1])))?.is_err() {
            ensure!(Instant::now() < end, "{self:?} does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }
}

fn start_ours(world: &World) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--carry").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = world.node.run(|| command.spawn())??;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("its output")?).read_line(&mut line)?;
    ensure!(line == "ready\n", "the proxy did not start: {line}");
    Ok(child)
}

/// Runs as the proxy until its input ends, in the namespace it was started in.
pub(crate) fn carry() -> anyhow::Result<()> {
    let mut planner = Planner::new(node()?);
    planner.apply([service()?, slice()?]);
    let mut mode = Userspace::open(Options { workers: Some(THREADS), ..Options::default() })?;
    mode.load(planner.plan())?;
    println!("ready");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn node() -> anyhow::Result<Node> {
    let ip: IpAddr = NODE.parse()?;
    let families = BTreeSet::from([fairlead_plan::Family::V4]);
    Ok(Node { name: "n1".to_owned(), ips: vec![ip], addresses: [ip].into(), families, ..Node::default() })
}

fn service() -> anyhow::Result<Change> {
    let ports = PORTS.map(|port| json!({"name": format!("p{port}"), "port": port}));
    let object =
        json!({"metadata": {"name": "web", "namespace": "default"}, "spec": {"clusterIP": VIP, "ports": ports}});
    Ok(Change::Service(Key::new("default", "web"), Some(Arc::new(serde_json::from_value(object)?))))
}

fn slice() -> anyhow::Result<Change> {
    let ports = PORTS.map(|port| json!({"name": format!("p{port}"), "port": 8000 + port}));
    let object = json!({
        "metadata": {"name": "web-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": ports,
        "endpoints": SERVERS.map(|address| json!({"addresses": [address]})),
    });
    Ok(Change::Slice(Key::new("default", "web-1"), Some(Arc::new(serde_json::from_value(object)?))))
}

/// Packets are led to HAProxy by the shortest rules there can be, in the same places as ours.
fn start_haproxy(peer: &HaProxy, world: &World, folder: &Path) -> anyhow::Result<Child> {
    let file = folder.join("haproxy.cfg");
    fs::write(&file, configuration(peer.always_splices))?;
    let rules = folder.join("rules.nft");
    fs::write(&rules, script())?;
    let loaded = world.node.run(|| Command::new("nft").arg("-f").arg(&rules).status())?.context("run nft")?;
    if !loaded.success() {
        bail!("nft does not take the rules for HAProxy");
    }
    let mut command = Command::new(&peer.program);
    command.arg("-f").arg(&file).arg("-db").stdin(Stdio::null()).stdout(Stdio::null());
    world.node.run(|| command.spawn())?.with_context(|| format!("start {}", peer.program.display()))
}

fn script() -> String {
    let lead = |port: u16| format!("ip daddr {VIP} tcp dport {port} dnat to {NODE}:{}\n", 9000 + port);
    let lead = PORTS.map(lead).concat();
    format!(
        "flush ruleset
        table ip peer {{
        chain guards {{ ip daddr {VIP} accept
        }}
        chain filter-prerouting {{ type filter hook prerouting priority -110; ct state new goto guards
        }}
        chain filter-output {{ type filter hook output priority -110; ct state new goto guards
        }}
        chain nat-prerouting {{ type nat hook prerouting priority -100; {lead} }}
        chain nat-output {{ type nat hook output priority -100; {lead} }}
        chain nat-postrouting {{ type nat hook postrouting priority 100; meta mark & 0x4000 != 0 masquerade
        }}
        }}\n"
    )
}

/// As many threads as ours, and as many connections as descriptors allow.
fn configuration(always_splices: bool) -> String {
    let (pipes, splice) = match always_splices {
        true => ("tune.pipesize 1048576", "option splice-request\n option splice-response"),
        false => ("", "option splice-auto"),
    };
    let mut text = format!(
        "global\n nbthread {THREADS}\n maxconn 7900\n {pipes}\ndefaults\n mode tcp\n {splice}\n balance roundrobin\n \
         timeout connect 5s\n timeout client 1m\n timeout server 1m\n backlog 4096\n"
    );
    for port in PORTS {
        text.push_str(&format!("listen p{port}\n bind {NODE}:{}\n", 9000 + port));
        for (at, server) in SERVERS.iter().enumerate() {
            text.push_str(&format!(" server s{at} {server}:{}\n", 8000 + port));
        }
    }
    text
}
