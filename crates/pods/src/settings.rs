//! What the runner of a Node is told.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use crate::images::Images;
use crate::resolv::DnsSettings;
use crate::users::UserRange;

/// How Pods run on this Node.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the Node.
    pub node: String,
    /// Where Pods' state and logs are kept; only root may look into it.
    pub data: PathBuf,
    /// How the shim is called: a program and its first arguments.
    pub shim: Vec<OsString>,
    /// Where Pods ask for names.
    pub dns: DnsSettings,
    /// Ranges of the addresses of all Pods of the cluster. What leaves them has the address of the Node; none: nothing has.
    pub pod_ranges: Vec<IpNet>,
    /// The certificate authority of the API, for Pods that call it, where the cluster has no ConfigMap `kube-root-ca.crt`.
    pub ca: Option<String>,
    /// Users of Pods. Each Pod has one of its own, and the group of the same number, unless it says
    /// `runAsUser` and `runAsGroup`.
    pub users: UserRange,
    /// Images that the config file maps.
    pub images: Images,
    /// User and group of Pods that a version without [`Settings::users`] has started.
    pub nobody: (u32, u32),
    /// A log file of so many bytes is full.
    pub log_size: u64,
    /// So many log files of a container are kept, the present one included.
    pub log_files: u32,
    /// The largest packet of Pods, where it is not the usual one: between machines there may be room for less.
    pub mtu: Option<u32>,
    /// How often files that come from the API are looked at.
    pub refresh: Duration,
    /// Time between two measurements of the local storage of a Pod that has limits for it.
    pub measure: Duration,
    /// Time a container without a readiness probe has to listen on one of the ports it declares. It
    /// is ready when it does, or when this time is over.
    pub listen_wait: Duration,
    /// How long a Pod that goes may wait for its connections to end before it is told to.
    pub drain: Duration,
}

impl Settings {
    /// The usual ones.
    pub fn new(node: impl Into<String>, data: impl Into<PathBuf>) -> Settings {
        Settings {
            node: node.into(),
            data: data.into(),
            // The program that runs, whatever has become of its file.
            shim: ["/proc/self/exe", "shim"].map(OsString::from).to_vec(),
            dns: DnsSettings::default(),
            pod_ranges: Vec::new(),
            ca: None,
            users: UserRange::default(),
            images: Images::default(),
            nobody: (65534, 65534),
            log_size: 10 << 20,
            log_files: 5,
            mtu: None,
            refresh: Duration::from_secs(60),
            measure: Duration::from_secs(10),
            listen_wait: Duration::from_secs(1),
            drain: Duration::from_secs(10),
        }
    }
}
