//! What may reach load balancers' addresses and node ports of this machine, and what not? A [`Guard`] says it as data; [`Table`]
//! keeps it in tables of nftables of its own, named `fairlead-lb`.
//!
//! * An address that is made this machine's answers only at the ports that are served there, and to ping: the machine's own
//!   servers, such as sshd, are not at a load balancer's address.
//!   That holds for packets of the machine itself, too, before a node proxy translates them: a port that is not served is not open to it.
//! * Who may use a port at an address, or a node port, is decided before the node proxy translates it. Pods and the machine itself
//!   always may.
//! * The kernel does not answer ARP for the addresses: only a living announcer does.

mod layout;
mod program;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairlead_api::view::Protocol;
use ipnet::IpNet;

pub use program::Program;
pub use table::{Table, cleanup};

/// What may reach this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// All addresses of load balancers, whichever Node answers for them.
    pub addresses: BTreeSet<IpAddr>,
    /// All that is served at them, by the kernel or by threads. Whatever else is asked for there is refused.
    pub listeners: BTreeSet<Frontend>,
    /// Who may use what. What no rule is about is open to everybody; what several are about is open to who is in one of them.
    pub rules: Vec<Rule>,
    /// The ranges of the cluster's Pods, which may use everything.
    pub pods: Vec<IpNet>,
}

/// A port at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frontend {
    /// The address.
    pub address: IpAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
}

/// Who may use something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it is about.
    pub to: Target,
    /// Who may.
    pub from: Vec<IpNet>,
    /// Why, for people: `kubernetes.io/rule/nlb/client=...`.
    pub description: String,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A port at an address of a load balancer.
    Frontend(Frontend),
    /// A port at all addresses of this machine that are none of a load balancer.
    NodePort(Protocol, u16),
    /// Word that a packet of a connection to this node port was too long for somebody on its way (ICMP 3,4).
    TooLong(u16),
}
