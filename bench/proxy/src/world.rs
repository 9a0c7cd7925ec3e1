//! Three hosts: the node, a client, and one that stands for all endpoints.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use fairlead_bench_kit::server::Server;
use fairlead_kernel::netns::Namespace;

/// The node's address towards the client.
pub(crate) const NODE: &str = "10.50.1.1";
/// Where endpoints listen.
pub(crate) const PORT: u16 = 8080;

/// For how long an endpoint may say nothing.
const PATIENCE: Duration = Duration::from_millis(50);

/// The hosts, and the API server on the node.
pub(crate) struct World {
    pub(crate) server: Server,
    client: Namespace,
    /// The first endpoint nobody had yet.
    fresh: Cell<u32>,
}

impl World {
    /// Makes the hosts. The calling thread, and every process it starts, is on the node from then on.
    pub(crate) fn new(fairlead: &Path) -> anyhow::Result<World> {
        let (node, client, endpoints) = (Namespace::unnamed()?, Namespace::unnamed()?, Namespace::unnamed()?);
        node.enter()?;
        wire(&client, "client", "10.50.1.1/24")?;
        wire(&endpoints, "endpoints", "10.50.2.1/24")?;
        run("ip link set lo up")?;
        run("ip route add 10.16.0.0/12 via 10.50.2.2")?;
        fairlead_kernel::sysctl::write("net.ipv4.ip_forward", "1")?;
        inside(
            &client,
            &["ip address add 10.50.1.2/24 dev uplink", "ip link set uplink up", "ip route add default via 10.50.1.1"],
        )?;
        inside(
            &endpoints,
            &[
                "ip link set lo up",
                "ip address add 10.50.2.2/24 dev uplink",
                "ip link set uplink up",
                "ip route add default via 10.50.2.1",
                "ip route add local 10.16.0.0/12 dev lo",
            ],
        )?;
        answer(&endpoints)?;
        let server = Server::fairlead_with(fairlead, &[("store", "memory")])?;
        Ok(World { server, client, fresh: Cell::new(0) })
    }

    /// So many endpoints nobody had yet.
    pub(crate) fn take_endpoints(&self, count: u32) -> u32 {
        self.fresh.replace(self.fresh.get() + count)
    }

    /// Does something where the client is.
    pub(crate) fn as_client<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        Ok(self.client.run(work)?)
    }
}

/// Puts a link between the node and a host, which calls it `uplink`.
fn wire(host: &Namespace, name: &str, address: &str) -> anyhow::Result<()> {
    let mut links = fairlead_kernel::link::Links::open()?;
    links.add_veth(name, "uplink", Some(std::os::fd::AsFd::as_fd(host)))?;
    run(&format!("ip address add {address} dev {name}"))?;
    run(&format!("ip link set {name} up"))
}

fn inside(host: &Namespace, commands: &[&str]) -> anyhow::Result<()> {
    host.run(|| commands.iter().try_for_each(|command| run(command)))?
}

/// Runs a command where the calling thread is.
pub(crate) fn run(command: &str) -> anyhow::Result<()> {
    let mut words = command.split_whitespace();
    let program = words.next().context("a command")?;
    let status = Command::new(program).args(words).status().with_context(|| command.to_owned())?;
    ensure!(status.success(), "{command}: {status}");
    Ok(())
}

/// Tells everybody who connects which address that was.
fn answer(host: &Namespace) -> anyhow::Result<()> {
    let listener = host.run(|| TcpListener::bind(("0.0.0.0", PORT)))??;
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if let Ok(address) = stream.local_addr() {
                let _ = stream.write_all(address.ip().to_string().as_bytes());
            }
        }
    });
    Ok(())
}

/// Connects and hears which endpoint it was. To be called where the client is. Who waits for a Service to come must not wait for
/// a packet that was lost before it came.
pub(crate) fn ask(at: SocketAddr) -> Option<IpAddr> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.parse().ok()
}
