//! What a node proxy runs with. Names and defaults are kube-proxy's; where a default depends on the mode, it stands here.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairlead_plan::NodePortAddresses;
use ipnet::IpNet;

/// How packets are made to go where they should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Maps of nftables.
    Nftables,
    /// Chains of iptables.
    Iptables,
    /// The kernel's load balancer.
    Ipvs,
    /// A process of ours carries the bytes.
    Userspace,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 4] = [Mode::Nftables, Mode::Iptables, Mode::Ipvs, Mode::Userspace];

    /// As `--proxy-mode` names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Nftables => "nftables",
            Mode::Iptables => "iptables",
            Mode::Ipvs => "ipvs",
            Mode::Userspace => "userspace",
        }
    }
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How packets of Pods are known (`--detect-local-mode`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// By these ranges. None: not at all.
    ClusterCidr(Vec<IpNet>),
    /// By the ranges of the Node object.
    NodeCidr,
    /// By the bridge they come in on.
    Bridge(String),
    /// By how the name of the interface they come in on begins.
    InterfacePrefix(String),
}

/// What the kernel's memory of flows is set to. `None` leaves a parameter as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conntrack {
    /// Entries for each processor core (`--conntrack-max-per-core`).
    pub max_per_core: Option<u32>,
    /// Entries at least (`--conntrack-min`).
    pub min: Option<u32>,
    /// How long an idle TCP connection is remembered.
    pub tcp_established: Option<Duration>,
    /// How long one of which one side has closed is.
    pub tcp_close_wait: Option<Duration>,
    /// Whether packets outside of the window are let through.
    pub tcp_be_liberal: bool,
    /// How long an unanswered UDP flow is remembered.
    pub udp: Option<Duration>,
    /// How long an answered one is.
    pub udp_stream: Option<Duration>,
}

impl Default for Conntrack {
    fn default() -> Conntrack {
        Conntrack {
            max_per_core: Some(32 * 1024),
            min: Some(128 * 1024),
            tcp_established: Some(Duration::from_secs(24 * 3600)),
            tcp_close_wait: Some(Duration::from_secs(3600)),
            tcp_be_liberal: false,
            udp: None,
            udp_stream: None,
        }
    }
}

/// What mode IPVS runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipvs {
    /// Who gets the next connection (`--ipvs-scheduler`).
    pub scheduler: String,
    /// Whether the Node keeps quiet about addresses of the dummy link (`--ipvs-strict-arp`).
    pub strict_arp: bool,
    /// Services in these ranges are left alone (`--ipvs-exclude-cidrs`).
    pub exclude: Vec<IpNet>,
    /// Time limits of the kernel's balancer: TCP, TCP after FIN, UDP.
    pub timeouts: [Option<Duration>; 3],
}

impl Default for Ipvs {
    fn default() -> Ipvs {
        Ipvs { scheduler: "rr".to_owned(), strict_arp: false, exclude: Vec::new(), timeouts: [None; 3] }
    }
}

/// What a node proxy runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The mode; `None` takes nftables where the kernel has it, else iptables.
    pub mode: Option<Mode>,
    /// The name of the Node this is.
    pub node: String,
    /// Its addresses, if the Node object is not to be asked (`--bind-address`).
    pub node_ips: Vec<IpAddr>,
    /// How packets of Pods are known.
    pub detection: Detection,
    /// Where node ports are served; `None`: as is usual in the mode.
    pub node_port_addresses: Option<NodePortAddresses>,
    /// Whether mode iptables serves node ports on 127.0.0.0/8 too.
    pub localhost_node_ports: bool,
    /// Whether everything sent to a cluster IP gets the Node's address.
    pub masquerade_all: bool,
    /// The bit of the mark that says that a packet is to be masqueraded.
    pub masquerade_bit: u8,
    /// How often the kernel is looked at even though nothing happens.
    pub sync_period: Duration,
    /// The least time between two changes of the kernel; `None`: as is good for the mode.
    pub min_sync_period: Option<Duration>,
    /// The gate ServiceTopology.
    pub topology_keys: bool,
    /// Where `/healthz` and `/livez` are.
    pub healthz: Option<SocketAddr>,
    /// Where `/metrics` and the like are.
    pub metrics: Option<SocketAddr>,
    /// What the kernel's memory of flows is set to.
    pub conntrack: Conntrack,
    /// What mode IPVS runs with.
    pub ipvs: Ipvs,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mode: None,
            node: String::new(),
            node_ips: Vec::new(),
            detection: Detection::ClusterCidr(Vec::new()),
            node_port_addresses: None,
            localhost_node_ports: true,
            masquerade_all: false,
            masquerade_bit: 14,
            sync_period: Duration::from_secs(30),
            min_sync_period: None,
            topology_keys: false,
            healthz: Some(SocketAddr::from(([0, 0, 0, 0], 10256))),
            metrics: Some(SocketAddr::from(([127, 0, 0, 1], 10249))),
            conntrack: Conntrack::default(),
            ipvs: Ipvs::default(),
        }
    }
}
