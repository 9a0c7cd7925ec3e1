//! What is known of a machine: plain values, so that what they mean can be said without one.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use fairlead_proxy::Mode;

/// A machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// We may look at everything.
    pub(super) root: bool,
    /// The release of its kernel.
    pub(super) kernel: String,
    /// Each mode of the proxy, tried in a namespace of its own; the reason where it does not work. Empty: not tried.
    pub(super) modes: Vec<(Mode, Result<(), String>)>,
    pub(super) sctp: bool,
    /// What control groups can limit: `cpu`, `memory`, ...
    pub(super) controllers: Vec<String>,
    /// Kernel parameters that matter, as far as they can be read.
    pub(super) parameters: BTreeMap<&'static str, String>,
    /// What others have in nftables; those of iptables-nft are among them.
    pub(super) tables: Vec<Table>,
    /// Tables of the old interface of iptables, with their family: `ip` or `ip6`.
    pub(super) legacy: Vec<(&'static str, String)>,
    /// Programs that run here, by name.
    pub(super) programs: Vec<(u32, String)>,
    /// Who listens.
    pub(super) listeners: Vec<Listener>,
    /// Node ports of the cluster's Services; `None`: no cluster answers.
    pub(super) node_ports: Option<Vec<NodePort>>,
    /// Servers for names, from /etc/resolv.conf.
    pub(super) nameservers: Vec<IpAddr>,
    pub(super) links: Vec<Link>,
    pub(super) data_dir: DataDir,
    /// How many files a process may have open that asks for as many as it can.
    pub(super) open_files: Option<u64>,
    /// Now, in seconds of the epoch.
    pub(super) now: i64,
}

/// A table of nftables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// `ip`, `inet`, ...
    pub(super) family: &'static str,
    pub(super) name: String,
    pub(super) chains: Vec<Chain>,
}

/// A chain, and what becomes of packets none of its rules decides about, if they enter it by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) name: String,
    /// `input`, `forward`, ...; `None`: others send packets here.
    pub(super) hook: Option<&'static str>,
    pub(super) drops: bool,
}

/// Somebody who listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) protocol: &'static str,
    pub(super) address: SocketAddr,
    /// The program and its number, if that can be seen.
    pub(super) program: Option<(u32, String)>,
}

/// A node port and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodePort {
    pub(super) protocol: String,
    pub(super) port: u16,
    pub(super) service: String,
}

/// An interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) mtu: u32,
    /// The way to everybody else goes through it.
    pub(super) outward: bool,
}

/// Where everything is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DataDir {
    pub(super) path: PathBuf,
    /// Its mode, if it is there.
    pub(super) mode: Option<u32>,
    /// Free bytes of its file system.
    pub(super) free: Option<u64>,
    /// When something in it was last written, in seconds of the epoch.
    pub(super) written: Option<i64>,
}

/// The node ports Services get.
pub(super) const NODE_PORTS: RangeInclusive<u16> = 30000..=32767;

impl Facts {
    /// A parameter as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.parameters.get(name)?.trim().parse().ok()
    }
}

impl Listener {
    /// `python3 (pid 71)`, or that it cannot be seen who.
    pub(super) fn who(&self) -> String {
        match &self.program {
            Some((pid, name)) => format!("{name} (pid {pid})"),
            None => "a program that cannot be seen from here (it may be Fairlead)".to_owned(),
        }
    }

    /// It is one of ours, as far as can be seen.
    pub(super) fn is_ours(&self) -> bool {
        self.is("fairlead")
    }

    /// It is the program of that name. The kernel keeps the first 15 letters.
    pub(super) fn is(&self, name: &str) -> bool {
        self.program.as_ref().is_some_and(|(_, program)| program == name)
    }
}
