//! What a node proxy runs with. Names and defaults are kube-proxy's; where a default depends on the mode, it stands here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use fairlead_plan::NodePortAddresses;
use ipnet::{IpNet, Ipv4Net};

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

/// What mode userspace runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Userspace {
    /// Local ports it may take (`--proxy-port-range`); `None`: the kernel chooses.
    pub ports: Option<RangeInclusive<u16>>,
    /// How long an idle UDP flow is kept (`--udp-timeout`).
    pub udp_idle: Duration,
}

impl Default for Userspace {
    fn default() -> Userspace {
        // kube-proxy had 250 ms, in which a name server that asks others often cannot answer. What bounds the flows here is
        // their number, so they may be long.
        Userspace { ports: None, udp_idle: Duration::from_secs(60) }
    }
}

/// What a node proxy runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The mode; `None` takes nftables where the kernel has it, else iptables.
    pub mode: Option<Mode>,
    /// The name of the Node this is.
    pub node: String,
    /// Addresses that stand in the place of what the Node object says, each for its family (`--bind-address`); the family of
    /// the first is the primary one. Of a family without one the Node object is asked.
    pub node_ips: Vec<IpAddr>,
    /// How packets of Pods are known.
    pub detection: Detection,
    /// Where node ports are served; `None`: as is usual in the mode, see [`Settings::node_ports_in`].
    pub node_port_addresses: Option<NodePortAddresses>,
    /// Whether mode iptables serves node ports on 127.0.0.0/8 too; see [`Settings::localhost_in`].
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
    /// Whether a port of the two that cannot be bound is a reason to end.
    pub bind_hard_fail: bool,
    /// How unlikely the kernel ends us when memory runs out; `None` leaves it as it is.
    pub oom_score_adj: Option<i16>,
    /// What the kernel's memory of flows is set to.
    pub conntrack: Conntrack,
    /// What mode IPVS runs with.
    pub ipvs: Ipvs,
    /// What mode userspace runs with.
    pub userspace: Userspace,
}

impl Settings {
    /// Where node ports are served in a mode: as asked for, else on the primary addresses in mode nftables and on all in others.
    pub fn node_ports_in(&self, mode: Mode) -> NodePortAddresses {
        match (&self.node_port_addresses, mode) {
            (Some(asked), _) => asked.clone(),
            (None, Mode::Nftables) => NodePortAddresses::Primary,
            (None, _) => NodePortAddresses::Ranges(Vec::new()),
        }
    }

    /// Whether node ports are served on 127.0.0.0/8 in a mode: in mode iptables unless that is switched off or
    /// [`Settings::node_port_addresses`] leave them out, in others only if those name loopback addresses, and in mode IPVS never.
    pub fn localhost_in(&self, mode: Mode) -> bool {
        let loopback = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
        let ranges: Vec<Ipv4Net> = match &self.node_port_addresses {
            Some(NodePortAddresses::Primary) => return false,
            Some(NodePortAddresses::Ranges(ranges)) => ranges.iter().filter_map(of_version_4).collect(),
            None => Vec::new(),
        };
        if mode == Mode::Iptables {
            let covered = |range: &Ipv4Net| range.contains(&loopback) || loopback.contains(range);
            return self.localhost_node_ports && (ranges.is_empty() || ranges.iter().any(covered));
        }
        // IPVS sends nothing on that is from a loopback address.
        mode != Mode::Ipvs && ranges.iter().any(|range| loopback.contains(range))
    }
}

fn of_version_4(range: &IpNet) -> Option<Ipv4Net> {
    match range {
        IpNet::V4(range) => Some(*range),
        IpNet::V6(_) => None,
    }
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
            bind_hard_fail: false,
            oom_score_adj: Some(-999),
            conntrack: Conntrack::default(),
            ipvs: Ipvs::default(),
            userspace: Userspace::default(),
        }
    }
}
