//! Everything together: follows the cluster, gives out addresses if that is ours to do, and serves what is given out.
//!
//! ```text
//! configuration --+--> pools --> provision (one process of the cluster) --> status of Services
//! MetalLB's ------'                                                              |
//!                                       Services, slices, Nodes, Secrets --> node --> engine, announce
//! ```

mod balancer;
mod input;
mod logs;
mod members;
mod node;
pub mod page;
mod secrets;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use fairlead_cluster::{Cluster, leader};
use fairlead_runtime::budget::Account;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::metallb::{self, Found};
use crate::pools::{Pool, overlap};
use crate::provision::{self, Ours, Released};

/// The class of load balancers that we are, unless the administrator says otherwise.
pub const CLASS: &str = "fairlead.dev/lb";
/// Namespace and name of the Lease of whoever gives out addresses.
pub const LEASE: (&str, &str) = ("kube-system", "fairlead-balancer");

/// How load balancers are run on this machine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The Node this machine is.
    pub node: String,
    /// Pools and whatever annotations name.
    pub config: Arc<Config>,
    /// The class of load balancers that we are.
    pub class: String,
    /// Whether addresses are given out here.
    pub provisioning: Provisioning,
    /// Whether the kernel has SCTP.
    pub sctp: bool,
    /// Where access logs wait for object stores.
    pub spool: PathBuf,
    /// Where to say how load balancers do; `None`: nowhere.
    pub page: Option<SocketAddr>,
    /// The account of the process, which has its limits and the budgets of all components.
    pub account: Account,
}

/// Who gives out addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provisioning {
    /// This process; there is no other.
    Here,
    /// One of several, whoever holds a Lease.
    Elected,
    /// Another.
    Elsewhere,
}

impl Settings {
    /// Which Services are ours.
    pub fn ours(&self) -> Ours {
        Ours { class: self.class.clone(), default: self.config.default }
    }
}

/// Runs load balancers until told to stop.
pub async fn run(cluster: Cluster, settings: Settings, stop: CancellationToken) {
    let (here, page) = (node::Here::default(), page::Page::new(&settings.node, &settings.config.vpc_ranges));
    page.serves(settings.ours(), &settings.config);
    let served = here.clone();
    let released: Released = Arc::new(move |key| !served.read().unwrap_or_else(PoisonError::into_inner).contains(key));
    let (tell, found) = watch::channel(Arc::new(Found::default()));
    let shown = async {
        if let Some(address) = settings.page {
            page::serve(page.clone(), address, settings.account.clone(), stop.clone()).await;
        }
    };
    let part = node::Part { here, page: page.clone(), found: found.clone() };
    tokio::join!(
        metallb::follow(cluster.clone(), tell, stop.clone()),
        provisioning(&cluster, &settings, (released, found), stop.clone()),
        node::run(cluster.clone(), &settings, part, stop.clone()),
        shown,
    );
}

/// Gives out addresses, if that is ours to do.
async fn provisioning(
    cluster: &Cluster,
    settings: &Settings,
    (released, found): (Released, watch::Receiver<Arc<Found>>),
    stop: CancellationToken,
) {
    let (pools, given) = watch::channel(Arc::from(settings.config.pools.as_slice()));
    let controller = provision::Settings {
        ours: settings.ours(),
        config: settings.config.clone(),
        sctp: settings.sctp,
        host: settings.node.clone(),
        released,
    };
    let work = async |stop: CancellationToken| {
        provision::run(cluster.clone(), controller.clone(), given.clone(), stop).await;
    };
    let provisioned = async {
        match settings.provisioning {
            Provisioning::Here => work(stop.clone()).await,
            Provisioning::Elected => {
                let identity = format!("{}_{}_{}", settings.node, std::process::id(), Timestamp::now().as_nanosecond());
                let lease = leader::Config::new(LEASE.0, LEASE.1, &identity);
                leader::run(cluster.clone(), lease, stop.clone(), work).await;
            }
            Provisioning::Elsewhere => {}
        }
    };
    tokio::join!(provisioned, join_pools(&settings.config.pools, found, pools, stop.clone()));
}

/// Keeps all pools together: the configuration's, then MetalLB's.
async fn join_pools(
    own: &[Pool],
    mut found: watch::Receiver<Arc<Found>>,
    pools: watch::Sender<Arc<[Pool]>>,
    stop: CancellationToken,
) {
    while let Some(Ok(())) = stop.run_until_cancelled(found.changed()).await {
        let (all, problems) = together(own, &found.borrow_and_update().pools);
        for problem in problems {
            tracing::warn!("{problem}");
        }
        pools.send_replace(all.into());
    }
}

/// Our own pools, and those of MetalLB's that do not collide with others.
fn together(own: &[Pool], others: &[Pool]) -> (Vec<Pool>, Vec<String>) {
    let (mut all, mut problems) = (own.to_vec(), Vec::new());
    for other in others {
        if all.iter().any(|pool| pool.name == other.name) {
            problems.push(format!("IPAddressPool {}: there is another pool of that name; it is not used", other.name));
            continue;
        }
        all.push(other.clone());
        let collision = overlap(&all).map(|(one, two)| if one.name == other.name { two } else { one }.name.clone());
        if let Some(with) = collision {
            all.pop();
            problems.push(format!("IPAddressPool {}: it has addresses of the pool {with}; it is not used", other.name));
        }
    }
    (all, problems)
}

#[cfg(test)]
mod tests;
