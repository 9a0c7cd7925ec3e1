//! How a Pod is reached: a network namespace, a pair of links between it and the Node, and a route to each of its addresses.
//! There is no bridge: the Node is the Pod's only neighbour, and routes.
//!
//! ```text
//!   Node                                        Pod
//!   fl1a2b3c4d5e6 ----------------------------- eth0  10.244.0.7/32, fd00:244::7/128
//!   route 10.244.0.7/32 dev fl1a2b3c4d5e6             default via 169.254.1.1, fe80::1
//! ```
//! Who has which hardware address is told to both sides beforehand, so nobody asks and nothing is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fairlead_kernel::link::{LinkNotice, Links, Prefix, Route};
use fairlead_kernel::netns::{self, Namespace};
use fairlead_kernel::{Error, sysctl};
use ipnet::IpNet;

/// The Node as its Pods see it.
const GATEWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 1, 1));
const GATEWAY6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1));
/// The hardware address of the Node's end of every link.
const NODE_HARDWARE: [u8; 6] = [0xee; 6];
/// All links of ours on the Node begin with this.
const PREFIX: &str = "fl";
/// The link in the Pod.
const INSIDE: &str = "eth0";

/// What a Pod's network is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// The namespace, as `ip netns` lists it.
    pub(crate) namespace: String,
    /// The Node's end of the link.
    pub(crate) link: String,
    hardware: [u8; 6],
}

impl Names {
    /// Those of a Pod whose runner keeps its state in a folder.
    pub(crate) fn of(data: &Path, uid: &str) -> Names {
        let number = hash([data.as_os_str().as_bytes(), uid.as_bytes()]);
        let bytes = number.to_be_bytes();
        Names {
            namespace: format!("{}{:012x}", namespaces(data), number & 0xffff_ffff_ffff),
            link: format!("{PREFIX}{:012x}", number & 0xffff_ffff_ffff),
            // Locally administered MAC address (IEEE 802, second bit of the first octet).
            hardware: [0x02, bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]],
        }
    }

    /// A file that stands for the namespace.
    pub(crate) fn file(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.namespace)
    }
}

/// The file of the network namespace of the Pod with this address, as this machine reaches it: that behind the link its route
/// leads to.
pub fn namespace_of(address: IpAddr) -> Result<Option<PathBuf>, Error> {
    let mut links = Links::open()?;
    let routes = links.routes(address)?;
    let Some(route) = routes.iter().find(|route| route.destination == Prefix::host(address)) else { return Ok(None) };
    let Some(link) = links.list()?.into_iter().find(|link| Some(link.index) == route.link) else { return Ok(None) };
    let Some(number) = link.name.strip_prefix(PREFIX) else { return Ok(None) };
    let ours = |name: &&String| name.starts_with("fl-") && name.rsplit('-').next() == Some(number);
    Ok(netns::names()?.iter().find(ours).map(|name| Path::new("/run/netns").join(name)))
}

/// How the namespaces of a runner begin.
fn namespaces(data: &Path) -> String {
    format!("{PREFIX}-{}-", mark(data))
}

/// Tells what belongs to one runner from what belongs to another.
pub(crate) fn mark(data: &Path) -> String {
    format!("{:06x}", hash([data.as_os_str().as_bytes()]) & 0xff_ffff)
}

/// FNV-1a: always the same, whoever built the program, since names must be found again.
fn hash<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let bytes = parts.into_iter().flat_map(|part| part.iter().copied().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Makes a Pod's network. What was left of one of that name is removed first.
pub(crate) fn plug(names: &Names, addresses: &[IpAddr], mtu: Option<u32>) -> Result<(), Error> {
    unplug(names)?;
    let namespace = Namespace::create(&names.namespace)?;
    let wired = wire(&namespace, names, addresses, mtu);
    if wired.is_err() {
        // The first mistake is the one to report.
        let _ = unplug(names);
    }
    wired
}

fn wire(namespace: &Namespace, names: &Names, addresses: &[IpAddr], mtu: Option<u32>) -> Result<(), Error> {
    namespace.run(parameters)?;
    let mut links = Links::open()?;
    links.add_veth(&names.link, INSIDE, Some(namespace.as_fd()))?;
    let index = links.index(&names.link)?;
    links.set_hardware_address(index, NODE_HARDWARE)?;
    // Nobody else is on this link to ask whether an address is taken, or to be believed about routes.
    for (parameter, value) in [("accept_dad", "0"), ("accept_ra", "0")] {
        let _ = sysctl::write(&format!("net.ipv6.conf.{}.{parameter}", names.link), value);
    }
    mtu.map_or(Ok(()), |mtu| links.set_mtu(index, mtu))?;
    links.set_up(index)?;
    namespace.run(|| inside(names, addresses, mtu))??;
    lead_to(&mut links, index, names, addresses)
}

/// The Node's way to a Pod.
fn lead_to(links: &mut Links, index: u32, names: &Names, addresses: &[IpAddr]) -> Result<(), Error> {
    for address in addresses {
        links.add_neighbour(index, *address, names.hardware)?;
        let destination = Prefix::host(*address);
        links.add_route(&Route { destination, gateway: None, link: Some(index), source: None })?;
    }
    Ok(())
}

/// Makes again what was removed of the network of a Pod that runs: its link, the routes to it, and
/// its addresses and routes.
pub(crate) fn mend(names: &Names, addresses: &[IpAddr], mtu: Option<u32>) -> Result<(), Error> {
    let mut links = Links::open()?;
    let namespace = Namespace::named(&names.namespace)?;
    match links.find(&names.link)? {
        Some(link) => {
            links.set_up(link.index)?;
            let give = || -> Result<(), Error> {
                let mut links = Links::open()?;
                let index = links.index(INSIDE)?;
                links.set_up(index)?;
                give_addresses(&mut links, index, addresses)
            };
            namespace.run(give)??;
            lead_to(&mut links, link.index, names, addresses)
        }
        None => wire(&namespace, names, addresses, mtu),
    }
}

/// The network of a Pod that runs.
#[derive(Debug, Clone)]
pub(crate) struct Plugged {
    pub(crate) names: Names,
    pub(crate) addresses: Vec<IpAddr>,
}

/// Returns true if a notice may mean that the network of a Pod is not whole any more.
pub(crate) fn concerns_pods(notice: &LinkNotice, ranges: &[IpNet]) -> bool {
    match notice {
        LinkNotice::Link(name) => is_ours(name),
        LinkNotice::RouteDeleted(destination) => {
            *destination == Prefix::host(destination.address)
                && ranges.iter().any(|range| range.contains(&destination.address))
        }
        LinkNotice::Address(..) => false,
        LinkNotice::Lost => true,
    }
}

/// Makes again what was removed of the networks of Pods on the Node's side. Returns the Pods' links
/// that were not whole, each with the error that keeps it from being made again.
pub(crate) fn mend_all<'a>(
    plugged: impl Iterator<Item = &'a Plugged>,
    mtu: Option<u32>,
) -> Result<Vec<(String, Option<Error>)>, Error> {
    let mut links = Links::open()?;
    let up: BTreeMap<String, u32> =
        links.list()?.into_iter().filter(|link| link.up).map(|link| (link.name, link.index)).collect();
    let mut routes = BTreeSet::new();
    for any in [unspecified(GATEWAY), unspecified(GATEWAY6)] {
        let there = links.routes(any)?.into_iter();
        routes
            .extend(there.filter_map(|route| Some((route.destination.address, route.destination.length, route.link?))));
    }
    let is_whole = |plugged: &Plugged| {
        up.get(&plugged.names.link).is_some_and(|index| {
            let mut hosts = plugged.addresses.iter().map(|address| Prefix::host(*address));
            hosts.all(|host| routes.contains(&(host.address, host.length, *index)))
        })
    };
    let broken = plugged.filter(|plugged| !is_whole(plugged));
    let mended = broken.map(|plugged| {
        let error = mend(&plugged.names, &plugged.addresses, mtu).err();
        (plugged.names.link.clone(), error)
    });
    Ok(mended.collect())
}

/// What programs in a Pod expect of the kernel. A kernel without one of them has Pods all the same.
fn parameters() {
    let wanted = [
        ("net.ipv6.conf.default.accept_dad", "0"),
        ("net.ipv6.conf.all.accept_dad", "0"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        // A namespace of its own has no port that must be kept from anybody.
        ("net.ipv4.ip_unprivileged_port_start", "0"),
        ("net.ipv4.ping_group_range", "0 2147483647"),
    ];
    for (name, value) in wanted {
        if let Err(error) = sysctl::write(name, value) {
            tracing::debug!(%error, "a Pod does without");
        }
    }
}

fn inside(names: &Names, addresses: &[IpAddr], mtu: Option<u32>) -> Result<(), Error> {
    let mut links = Links::open()?;
    let lo = links.index("lo")?;
    links.set_up(lo)?;
    let index = links.index(INSIDE)?;
    links.set_hardware_address(index, names.hardware)?;
    mtu.map_or(Ok(()), |mtu| links.set_mtu(index, mtu))?;
    links.set_up(index)?;
    give_addresses(&mut links, index, addresses)
}

/// Gives the link in a Pod its addresses, and the Pod its routes. Fine if it has them.
fn give_addresses(links: &mut Links, index: u32, addresses: &[IpAddr]) -> Result<(), Error> {
    for address in addresses {
        links.add_address(index, Prefix::host(*address))?;
        let gateway = if address.is_ipv4() { GATEWAY } else { GATEWAY6 };
        links.add_neighbour(index, gateway, NODE_HARDWARE)?;
        if gateway.is_ipv4() {
            let destination = Prefix::host(gateway);
            links.add_route(&Route { destination, gateway: None, link: Some(index), source: None })?;
        }
        let everywhere = Prefix { address: unspecified(*address), length: 0 };
        let route =
            Route { destination: everywhere, gateway: Some(gateway), link: Some(index), source: Some(*address) };
        links.add_route(&route)?;
    }
    Ok(())
}

fn unspecified(like: IpAddr) -> IpAddr {
    if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Removes a Pod's network. Fine if there is none.
pub(crate) fn unplug(names: &Names) -> Result<(), Error> {
    // With the link go its peer and the routes; the namespace itself goes with its last process.
    remove_link(&names.link)?;
    netns::delete(&names.namespace)
}

fn remove_link(name: &str) -> Result<(), Error> {
    let mut links = Links::open()?;
    match links.find(name)? {
        Some(link) => match links.delete(link.index) {
            Err(error) if error.is_not_found() => Ok(()),
            done => done,
        },
        None => Ok(()),
    }
}

/// Removes all networks of a runner, and says which.
pub(crate) fn unplug_all(data: &Path) -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    let mut links = Links::open()?;
    for link in links.list()?.into_iter().filter(|link| is_ours(&link.name) && link.kind == "veth") {
        remove_link(&link.name)?;
        removed.push(format!("link {}", link.name));
    }
    for name in netns::names()?.into_iter().filter(|name| name.starts_with(&namespaces(data))) {
        netns::delete(&name)?;
        removed.push(format!("network namespace {name}"));
    }
    Ok(removed)
}

/// `fl` and twelve digits.
fn is_ours(link: &str) -> bool {
    let digits = link.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Lets the Node pass packets on. Routers do not believe other routers by default: where this machine learnt its routes that way,
/// it goes on doing so.
pub fn forward() -> Vec<Error> {
    let mut problems = Vec::new();
    let mut set = |name: &str, value: &str| problems.extend(sysctl::ensure(name, value).err());
    set("net.ipv4.ip_forward", "1");
    if Path::new("/proc/sys/net/ipv6/conf/all/forwarding").exists()
        && sysctl::read("net.ipv6.conf.all.forwarding").is_ok_and(|value| value == "0")
    {
        let links = std::fs::read_dir("/proc/sys/net/ipv6/conf").into_iter().flatten().flatten();
        for link in links.filter_map(|entry| entry.file_name().into_string().ok()) {
            let name = format!("net.ipv6.conf.{}.accept_ra", link.replace('.', "/"));
            if sysctl::read(&name).is_ok_and(|value| value == "1") {
                set(&name, "2");
            }
        }
        set("net.ipv6.conf.all.forwarding", "1");
    }
    problems
}
