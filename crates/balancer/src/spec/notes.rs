//! Why a Service is served as it is, or is not: what the kernel cannot do, what differs from what one might think, refusals.

use std::fmt;

use super::PortId;
use crate::tls::policy::Unspoken;

/// What of a load balancer the kernel cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// Decryption of what clients send.
    Tls,
    /// Encryption of what backends get.
    Reencrypt,
    /// HTTP.
    Http,
    /// PROXY headers for backends.
    SendProxy,
    /// PROXY headers of a front.
    AcceptProxy,
    /// Access logs.
    AccessLog,
    /// A limit to how long a connection may be idle.
    Idle,
    /// Draining within a time.
    Drain,
    /// Checks of backends.
    Check,
    /// A choice among backends that is not the kernel's.
    Choice,
    /// Only the endpoints of a zone.
    Zone,
    /// Groups beside ranges of the Service: the node proxy knows the ranges alone, and would drop members of the groups.
    Sources,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Tls => "TLS",
            Need::Reencrypt => "TLS to backends",
            Need::Http => "HTTP",
            Need::SendProxy => "the PROXY header",
            Need::AcceptProxy => "PROXY headers of a front",
            Need::AccessLog => "the access log",
            Need::Idle => "the idle timeout",
            Need::Drain => "connection draining",
            Need::Check => "the health check",
            Need::Choice => "the choice of backends",
            Need::Zone => "the limit to a zone",
            Need::Sources => "groups beside source ranges",
        })
    }
}

/// What of a Service is served in another way than one might think.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The policy has versions or suites of TLS that are not spoken here.
    Policy {
        /// Its name.
        policy: &'static str,
        /// What is not spoken.
        unspoken: Unspoken,
    },
    /// The policy asks for a validated library.
    NotValidated {
        /// Its name.
        policy: &'static str,
    },
    /// An annotation that means nothing without another.
    NoEffect {
        /// The annotation.
        annotation: &'static str,
        /// What it needs.
        without: &'static str,
    },
    /// HTTP was asked of a network load balancer, which carries bytes.
    Layer4 {
        /// The protocol asked for.
        asked: &'static str,
        /// The one spoken.
        served: &'static str,
    },
    /// A port without HTTP of a Service that asks for HTTP.
    NotHttp {
        /// The port.
        port: u16,
        /// What it says is spoken there.
        app_protocol: String,
    },
    /// A port where clients speak without TLS, and backends with it.
    PlainClients {
        /// The port.
        port: u16,
    },
    /// An annotation for load balancers that means nothing here.
    Ignored {
        /// Its name.
        annotation: String,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Policy { policy, unspoken } => write!(f, "{policy}: {unspoken}"),
            Note::NotValidated { policy } => {
                write!(
                    f,
                    "{policy}: its versions and suites are served, by a library that is not validated for FIPS 140"
                )
            }
            Note::NoEffect { annotation, without } => write!(f, "{annotation} has no effect without {without}"),
            Note::Layer4 { asked, served } => {
                write!(f, "a network load balancer carries bytes: backend protocol {asked} is served as {served}")
            }
            Note::NotHttp { port, app_protocol } => {
                write!(f, "port {port} carries bytes: its appProtocol {app_protocol:?} is not HTTP")
            }
            Note::PlainClients { port } => {
                write!(f, "port {port}: clients speak without TLS, which begins here, towards the backends")
            }
            Note::Ignored { annotation } => write!(f, "{annotation} means nothing to Fairlead"),
        }
    }
}

/// Why a Service is not served as it asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which annotation or field.
    pub what: String,
    /// What it says; the beginning, if it is long.
    pub value: String,
    /// What it may say.
    pub accepted: String,
    /// The ports that are not served because of it, if the rest of the Service could do without
    /// them; empty if the refusal is about the Service as a whole.
    pub ports: Vec<PortId>,
}

/// How much of a value a refusal repeats: it is to fit into an Event.
const SHOWN: usize = 80;

impl Refusal {
    /// A refusal of what an annotation or field says.
    pub fn new(what: impl Into<String>, value: &str, accepted: impl Into<String>) -> Refusal {
        let value = match value.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}...", &value[..end]),
            None => value.to_owned(),
        };
        Refusal { what: what.into(), value, accepted: accepted.into(), ports: Vec::new() }
    }

    /// Says what the refusal does to a Service of which `served` are served all the same, and `all`
    /// are all its ports.
    pub fn explained(&self, served: &[PortId], all: &[PortId]) -> String {
        let concerned = if self.ports.is_empty() { all } else { &self.ports };
        let (open, closed): (Vec<PortId>, Vec<PortId>) = concerned.iter().partition(|port| served.contains(port));
        let mut text = String::new();
        if let [first, ..] = closed[..]
            && (!self.ports.is_empty() || !served.is_empty())
        {
            let ports = if closed.len() == 1 {
                format!("port {first} is")
            } else {
                format!("ports {} are", PortId::list(&closed))
            };
            text = format!("{ports} not served: ");
        }
        if !open.is_empty() && !self.ports.is_empty() {
            let ports = if open.len() == 1 {
                format!("port {} is", open[0])
            } else {
                format!("ports {} are", PortId::list(&open))
            };
            text = format!("{text}{ports} served as before: ");
        }
        format!("{text}{self}")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { what, value, accepted, .. } = self;
        write!(f, "{what}: {value:?} is not accepted: {accepted}")
    }
}
