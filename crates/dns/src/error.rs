//! Why names cannot be served.

use std::net::SocketAddr;

use crate::corefile::Mistake;

/// Why names cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Corefile makes no sense.
    #[error("{}", told(.0))]
    Corefile(Vec<Mistake>),
    /// A file cannot be read.
    #[error("{file}: {error}")]
    File {
        /// Which.
        file: String,
        /// What came of it.
        error: std::io::Error,
    },
    /// A file names nobody to ask.
    #[error("{0}: no `nameserver` to forward to")]
    NoNameserver(String),
    /// An address cannot be had.
    #[error("cannot listen at {address}: {error}{}", advice(.error))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What came of it.
        error: std::io::Error,
    },
    /// The names of a cluster are to be served, and there is none.
    #[error("the plugin `kubernetes` needs a cluster: say which with --kubeconfig, or --manifests")]
    NoCluster,
    /// Questions come back.
    #[error("{0}")]
    Loop(String),
    /// Something of the operating system.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What came of it.
        error: std::io::Error,
    },
}

fn told(mistakes: &[Mistake]) -> String {
    let lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    lines.join("\n")
}

/// What to do about it, where that is not plain.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "; run it as root, or with CAP_NET_BIND_SERVICE, or take a higher port",
        std::io::ErrorKind::AddrInUse => "; another server is there, such as systemd-resolved or dnsmasq",
        _ => "",
    }
}
