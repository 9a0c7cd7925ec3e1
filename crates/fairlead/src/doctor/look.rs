//! Looks at this machine. Nothing of it is changed: what must be tried is tried in a network namespace that is gone afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fairlead_api::Look;
use fairlead_api::kinds;
use fairlead_cluster::Selection;
use fairlead_kernel::iptables::{Iptables, Version};
use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::nft::{self, Connection, Hook, Policy};
use fairlead_kernel::{disk, sysctl};
use fairlead_proxy::{Mode, Settings};
use serde_json::Value;

use super::facts::{Chain, DataDir, Facts, Link, NodePort, Table};
use super::sockets;
use crate::door;

/// How long a cluster may take to tell its node ports.
const PATIENCE: Duration = Duration::from_secs(3);
/// What tables of ours are called, or begin with.
const OURS: &str = "fairlead";

const PARAMETERS: &[&str] = &[
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.conf.all.route_localnet",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.bridge.bridge-nf-call-iptables",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_count",
];

/// Everything about this machine.
pub(super) fn machine(root: bool, data_dir: &Path) -> anyhow::Result<Facts> {
    Ok(Facts {
        root,
        kernel: sysctl::read("kernel.osrelease").unwrap_or_default(),
        modes: if root { modes() } else { Vec::new() },
        sctp: fairlead_balancer::sctp::is_there(),
        controllers: controllers(),
        parameters: parameters(),
        tables: if root { tables()? } else { Vec::new() },
        legacy: legacy(),
        programs: sockets::programs(),
        listeners: sockets::listeners()?,
        node_ports: None,
        nameservers: nameservers(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default()),
        links: links()?,
        data_dir: data(data_dir),
        open_files: open_files(&fs::read_to_string("/proc/self/limits").unwrap_or_default()),
        now: seconds(SystemTime::now()),
    })
}

/// Node ports of Services; `None`: there is no cluster, or it does not answer.
pub(super) async fn node_ports(kubeconfig: Option<&Path>) -> Option<Vec<NodePort>> {
    let ask = async {
        let cluster = door::open(kubeconfig).await.ok()?;
        cluster.list(&Selection::all(&kinds::SERVICE)).await.ok()
    };
    let list = tokio::time::timeout(PATIENCE, ask).await.ok()??;
    let services = list.objects.iter().filter_map(|one| serde_json::from_slice::<Value>(&one.json).ok());
    Some(services.flat_map(|service| ports_of(&service)).collect())
}

fn ports_of(service: &Value) -> Vec<NodePort> {
    let meta = service.at("metadata");
    let name = format!("{}/{}", meta.text("namespace"), meta.text("name"));
    let port = |port: &Value| {
        let number = u16::try_from(port.at("nodePort").as_u64()?).ok().filter(|number| *number > 0)?;
        Some(NodePort { protocol: port.text("protocol").to_owned(), port: number, service: name.clone() })
    };
    service.at("spec").list("ports").iter().filter_map(port).collect()
}

/// Every mode, tried where it touches nothing.
fn modes() -> Vec<(Mode, Result<(), String>)> {
    let settings = Settings::default();
    let attempt = |mode: Mode| {
        let tried = Namespace::unnamed()
            .and_then(|namespace| namespace.run(|| fairlead_proxy::dataplane(mode, &settings).map(drop)));
        match tried {
            Ok(tried) => tried.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    Mode::ALL.into_iter().map(|mode| (mode, attempt(mode))).collect()
}

fn controllers() -> Vec<String> {
    let text = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn parameters() -> BTreeMap<&'static str, String> {
    PARAMETERS.iter().filter_map(|name| Some((*name, sysctl::read(name).ok()?))).collect()
}

/// Tables of the old interface of iptables.
fn legacy() -> Vec<(&'static str, String)> {
    let families = [("ip", Version::V4), ("ip6", Version::V6)];
    let of = |(family, version)| Iptables::legacy_tables(version).into_iter().map(move |name| (family, name));
    families.into_iter().flat_map(of).collect()
}

/// Tables of nftables that are not ours.
fn tables() -> Result<Vec<Table>, fairlead_kernel::Error> {
    let mut kernel = Connection::open()?;
    let theirs = kernel.tables()?.into_iter().map(|listed| listed.value).filter(|table| !table.name.starts_with(OURS));
    let mut tables = Vec::new();
    for table in theirs {
        // Who removes a table meanwhile has none.
        let Ok(chains) = kernel.chains(&table) else { continue };
        let chains = chains.iter().map(|chain| seen(&chain.value)).collect();
        tables.push(Table { family: table.family.as_str(), name: table.name, chains });
    }
    Ok(tables)
}

fn seen(chain: &nft::Chain) -> Chain {
    let hook = chain.base.as_ref().map(|base| match base.hook {
        Hook::Prerouting => "prerouting",
        Hook::Input => "input",
        Hook::Forward => "forward",
        Hook::Output => "output",
        Hook::Postrouting => "postrouting",
    });
    let drops = chain.base.as_ref().is_some_and(|base| base.policy == Policy::Drop);
    Chain { name: chain.name.clone(), hook, drops }
}

fn nameservers(resolv: &str) -> Vec<IpAddr> {
    resolv.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok()).collect()
}

fn links() -> Result<Vec<Link>, fairlead_kernel::Error> {
    let mut kernel = Links::open()?;
    let mut outward = Vec::new();
    for like in [IpAddr::from([0, 0, 0, 0]), IpAddr::from([0u16; 8])] {
        let routes = kernel.routes(like)?.into_iter().filter(|route| route.destination.length == 0);
        outward.extend(routes.filter_map(|route| route.link));
    }
    let up = kernel.list()?.into_iter().filter(|link| link.up && link.name != "lo");
    Ok(up
        .map(|link| Link { outward: outward.contains(&link.index), name: link.name, kind: link.kind, mtu: link.mtu })
        .collect())
}

fn data(path: &Path) -> DataDir {
    // What is not there yet will be on the file system of what is above it.
    let there = path.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let written = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max();
    DataDir {
        path: path.to_owned(),
        mode: fs::metadata(path).ok().map(|data| data.permissions().mode() & 0o777),
        free: disk::free(there).ok(),
        written: written.map(seconds),
    }
}

/// The hard limit, behind the soft one: parts that carry connections raise the soft one to it. `None`: there is none.
pub(super) fn open_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|passed| i64::try_from(passed.as_secs()).ok()).unwrap_or_default()
}
