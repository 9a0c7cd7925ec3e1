//! A client, a Node and servers, each in a network namespace of its own, with routed links between them.

use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd;

use anyhow::Context;
use fairlead_kernel::link::{Links, Prefix, Route};
use fairlead_kernel::netns::Namespace;

/// The addresses of the servers.
pub(crate) const SERVERS: [&str; 3] = ["10.50.1.11", "10.50.1.12", "10.50.1.13"];
/// The Node's address.
pub(crate) const NODE: &str = "10.50.0.1";
/// What clients connect to.
pub(crate) const VIP: &str = "10.96.0.10";

/// The namespaces.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) client: Namespace,
    pub(crate) node: Namespace,
    pub(crate) servers: Namespace,
}

impl World {
    /// Makes them; they are gone with this value and what runs in them.
    pub(crate) fn new() -> anyhow::Result<World> {
        let make = || Namespace::unnamed().context("make a network namespace: this needs root");
        let world = World { client: make()?, node: make()?, servers: make()? };
        for namespace in [&world.client, &world.node, &world.servers] {
            namespace.run(prepare)??;
        }
        world.node.run(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))??;
        world.wire("client", &world.client, &["10.50.1.5"])?;
        world.wire("servers", &world.servers, &SERVERS)?;
        Ok(world)
    }

    fn wire(&self, name: &str, pod: &Namespace, addresses: &[&str]) -> anyhow::Result<()> {
        let gateway: IpAddr = NODE.parse()?;
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse()).collect::<Result<_, _>>()?;
        self.node.run(|| -> anyhow::Result<()> {
            let mut links = Links::open()?;
            links.add_veth(name, "eth0", Some(pod.as_fd()))?;
            let link = links.index(name)?;
            links.set_up(link)?;
            links.add_address(link, Prefix::host(gateway))?;
            for address in &addresses {
                links.add_route(&route(Prefix::host(*address), None, link))?;
            }
            Ok(())
        })??;
        pod.run(|| -> anyhow::Result<()> {
            let mut links = Links::open()?;
            let link = links.index("eth0")?;
            links.set_up(link)?;
            for address in &addresses {
                links.add_address(link, Prefix::host(*address))?;
            }
            links.add_route(&route(Prefix::host(gateway), None, link))?;
            let all = Prefix { address: "0.0.0.0".parse()?, length: 0 };
            links.add_route(&route(all, Some(gateway), link))?;
            Ok(())
        })?
    }
}

fn route(destination: Prefix, gateway: Option<IpAddr>, link: u32) -> Route {
    Route { destination, gateway, link: Some(link), source: None }
}

/// So many short connections would use up ports and places in the memory of flows.
fn prepare() -> anyhow::Result<()> {
    let mut links = Links::open()?;
    let lo = links.index("lo")?;
    links.set_up(lo)?;
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", "10000 65000")?;
    fs::write("/proc/sys/net/ipv4/tcp_tw_reuse", "1")?;
    // Some others send at a pace they measure, which would be what is measured here.
    fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno")?;
    // Only there once something remembers flows.
    let _ = fs::write("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait", "1");
    Ok(())
}
