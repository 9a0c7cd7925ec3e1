//! What does a Service of type LoadBalancer ask for? Its fields and annotations as one value, or what is wrong with them.
//! Pure: no clock, no sockets, no files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::{Family, Protocol};
use ipnet::IpNet;

mod facts;
mod good;
mod listeners;
pub mod names;
mod notes;
mod port;
mod read;
mod rules;
mod table;
mod value;

pub use facts::Fact;
pub use good::{good, last_good, recall, without_tls};
pub use notes::{Need, Note, Refusal};
pub use port::PortId;
pub use read::{list, read, relevant};
pub use rules::{Carries, Purpose, Rule};

/// What a Service asks of its load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Whose it is.
    pub service: Arc<Key>,
    /// What it is called where a load balancer needs a name: as clouds make one, from the Service's uid.
    pub name: String,
    /// Families of its addresses, the first first.
    pub families: Vec<Family>,
    /// Who is to reach it.
    pub scheme: Scheme,
    /// Which kind of load balancer of the documents it is.
    pub kind: Kind,
    /// Who carries the bytes. Decides the `ipMode` of its addresses.
    pub path: Path,
    /// Why the kernel cannot carry them; empty: it can.
    pub needs: Vec<Need>,
    /// A listener a port, in the Service's order.
    pub listeners: Vec<Listener>,
    /// Ports of listeners that are not opened because something they need is missing, such as their
    /// certificate.
    pub unserved: Vec<PortId>,
    /// Who may use it.
    pub sources: Sources,
    /// Only endpoints of the Node that answers for the address (`externalTrafficPolicy: Local`).
    pub local: bool,
    /// The port of Nodes that tells whether they have endpoints (`healthCheckNodePort`).
    pub health_check_port: Option<u16>,
    /// Endpoints of all zones, which is so unless the Service says otherwise; or those of the answering Node's zone as long as it
    /// has one.
    pub cross_zone: bool,
    /// Which backend the next connection or request gets.
    pub choice: Choice,
    /// A client stays with its backend so long (`sessionAffinity: ClientIP`).
    pub affinity: Option<Duration>,
    /// How backends are checked.
    pub check: Check,
    /// How long connections may go on with a backend that is to get no more; `None`: they end at once.
    pub drain: Option<Duration>,
    /// After how long without a byte a connection is closed.
    pub idle: Duration,
    /// True if clients of HTTP/1.1 may ask for tunnels with CONNECT.
    pub connect: bool,
    /// After how long a client's connection is ended when that does no harm; HTTP only.
    pub age: Option<Duration>,
    /// Where access logs go.
    pub access_log: Option<AccessLog>,
    /// Kept and shown.
    pub tags: BTreeMap<String, String>,
    /// What of it is served in another way than one might think.
    pub notes: Vec<Note>,
}

/// Who is to reach a load balancer: which pools its address may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Everybody.
    Public,
    /// The inside only: an address of an internal pool.
    Internal,
}

/// Which kind of load balancer of the documents it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What is not a network load balancer.
    Classic,
    /// `service.beta.kubernetes.io/aws-load-balancer-type: nlb`.
    Network,
}

/// Who carries the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The kernel, by the rules of the node proxy: `ipMode: VIP`.
    Kernel,
    /// Threads of this process: `ipMode: Proxy`.
    Userspace,
}

/// One port of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The name of the Service's port, which may be empty.
    pub name: String,
    /// Where it listens.
    pub port: u16,
    /// Over what.
    pub protocol: Protocol,
    /// The node port behind it, if it has one.
    pub node_port: Option<u16>,
    /// How much of the conversation is understood.
    pub speaks: Speaks,
    /// TLS towards clients.
    pub tls: Option<Tls>,
    /// TLS towards backends; they are verified if a CA is configured.
    pub reencrypt: bool,
    /// The PROXY header backends get.
    pub send_proxy: Option<ProxyVersion>,
    /// Whether clients of a trusted range send a PROXY header first.
    pub accept_proxy: bool,
}

/// How much of a conversation is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Bytes.
    Bytes,
    /// HTTP/1.1 and HTTP/2, towards backends HTTP/1.1.
    Http,
    /// HTTP/2 without TLS towards backends (`appProtocol: kubernetes.io/h2c`, `grpc`).
    H2c,
}

/// TLS towards clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// An ARN, or a name: who has the key is looked up where certificates are mapped.
    pub certificate: String,
    /// Versions and suites.
    pub policy: TlsPolicy,
}

/// Which versions and suites of TLS are spoken: the one predefined policy's name, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsPolicy {
    /// As AWS calls it; empty: our default.
    pub name: String,
}

/// Which PROXY header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Who may use a load balancer: a client that is in one of the ranges or groups. Both empty: everybody.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    /// `loadBalancerSourceRanges`.
    pub ranges: Vec<IpNet>,
    /// `extra-security-groups`: names of groups of ranges in the configuration.
    pub groups: Vec<String>,
}

/// Which backend the next connection or request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The next in turn, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest connections or requests in proportion to its weight.
    Least,
    /// The better of two drawn at random.
    TwoChoices,
    /// By the client's address, with few changes when backends come and go (Maglev).
    Hash,
}

/// How backends are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What is asked.
    pub how: How,
    /// Of another port than the traffic's.
    pub port: Option<u16>,
    /// How many good answers in a row make a backend healthy.
    pub healthy: u32,
    /// How many bad ones make it unhealthy.
    pub unhealthy: u32,
    /// How often.
    pub interval: Duration,
    /// How long an answer may take; less than the interval.
    pub timeout: Duration,
}

/// What a check asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// A connection to the backend's port.
    Tcp,
    /// A good answer to a request for this path.
    Http {
        /// Over TLS.
        tls: bool,
        /// What is asked for.
        path: String,
    },
}

/// Where access logs go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLog {
    /// A directory or bucket of the configuration.
    pub bucket: String,
    /// What the names of files in it begin with.
    pub prefix: String,
    /// How often a file is written: every 5 or 60 minutes.
    pub interval: Duration,
}

/// What the reading of a Service depends on besides the Service.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Names of groups that `extra-security-groups` may name.
    pub groups: Vec<String>,
    /// Whether the kernel has SCTP.
    pub sctp: bool,
}

impl Spec {
    /// What a Service asks for that asks for nothing: bytes, carried by the kernel, with every default.
    pub fn plain(service: Arc<Key>, listeners: Vec<Listener>) -> Spec {
        Spec { listeners, ..read::plain(service) }
    }
}

#[cfg(test)]
mod tests;
