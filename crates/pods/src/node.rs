//! What the Pods of a Node share: its settings, the ways to the API, who has which address, and where things are kept.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairlead_api::Look;
use fairlead_api::kinds;
use fairlead_api::view::{Meta, Service};
use fairlead_cluster::{Cluster, Recorder, Reference, Severity};
use fairlead_kernel::sysctl;
use ipnet::IpNet;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::addresses::{Full, Pool};
use crate::container::Run;
use crate::images::{Image, Store};
use crate::metrics::Metrics;
use crate::network::Plugged;
use crate::settings::Settings;
use crate::shim::launch;
use crate::unit::Unit;
use crate::users::UserPool;

/// What all Pods of a Node share.
pub(crate) struct Node {
    pub(crate) settings: Settings,
    pub(crate) cluster: Cluster,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    /// This Node as the API has it; null until it is known.
    pub(crate) object: watch::Receiver<Arc<Value>>,
    pub(crate) services: mpsc::Sender<Ask>,
    pub(crate) slots: Mutex<BTreeMap<String, Arc<Slot>>>,
    /// Starts at a time: a machine that begins with a hundred Pods must not start a hundred processes at once.
    pub(crate) starts: Semaphore,
    pool: Mutex<Pool>,
    users: Mutex<UserPool>,
    /// Networks of Pods that run, by uid. The lock is held while links are mended, so that none is
    /// made again that is just removed.
    pub(crate) plugged: Arc<tokio::sync::Mutex<BTreeMap<String, Plugged>>>,
}

/// At most so many containers are started at once.
const STARTS: usize = 8;

/// Somebody wants the Services of a namespace.
pub(crate) struct Ask {
    pub(crate) namespace: String,
    pub(crate) answer: oneshot::Sender<Vec<Arc<Service>>>,
}

/// A Pod as others than its worker see it.
#[derive(Debug)]
pub(crate) struct Slot {
    shown: Mutex<Shown>,
}

/// What can be seen of a Pod.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) pod: Arc<Value>,
    pub(crate) units: Vec<Unit>,
    /// Cancelled when the present run of the container ends.
    pub(crate) ends: BTreeMap<String, CancellationToken>,
    /// A file that stands for its network namespace; `None`: the Node's.
    pub(crate) network: Option<PathBuf>,
}

impl Slot {
    pub(crate) fn new(shown: Shown) -> Slot {
        Slot { shown: Mutex::new(shown) }
    }

    pub(crate) fn show(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut lock(&self.shown));
    }

    pub(crate) fn shown(&self) -> Shown {
        lock(&self.shown).clone()
    }
}

/// A lock that outlives a panic of another thread: what it guards is replaced whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    pub(crate) fn new(
        settings: Settings,
        cluster: Cluster,
        (recorder, metrics): (Recorder, Metrics),
        object: watch::Receiver<Arc<Value>>,
        services: mpsc::Sender<Ask>,
    ) -> Node {
        Node {
            settings,
            cluster,
            recorder,
            metrics,
            object,
            services,
            slots: Mutex::default(),
            starts: Semaphore::new(STARTS),
            pool: Mutex::default(),
            users: Mutex::default(),
            plugged: Arc::default(),
        }
    }

    /// Returns what a name of an image means here, if anything.
    pub(crate) fn image(&self, name: &str) -> Option<Image> {
        self.settings.images.find(name, &Store::new(&self.settings.data))
    }

    /// Where the state of Pods is.
    pub(crate) fn states(data: &Path) -> PathBuf {
        data.join("state")
    }

    /// Where the state of a Pod is.
    pub(crate) fn folder(&self, uid: &str) -> PathBuf {
        Node::states(&self.settings.data).join(uid)
    }

    /// A run of a container.
    pub(crate) fn run(&self, uid: &str, container: &str, number: u32) -> Run {
        Run { folder: self.folder(uid).join("runs").join(container).join(number.to_string()) }
    }

    /// The folder of a Pod's logs.
    pub(crate) fn logs(&self, pod: &Value) -> PathBuf {
        let meta = pod.at("metadata");
        let name = format!("{}_{}_{}", meta.text("namespace"), meta.text("name"), meta.text("uid"));
        self.settings.data.join("logs").join(name)
    }

    /// The log of a run.
    pub(crate) fn log(&self, pod: &Value, container: &str, number: u32) -> PathBuf {
        self.logs(pod).join(container).join(format!("{number}.log"))
    }

    /// Tells of something that happened to a Pod.
    pub(crate) fn tell(&self, pod: &Value, severity: Severity, reason: &'static str, message: impl Into<String>) {
        let meta: Meta = serde_json::from_value(pod.at("metadata").clone()).unwrap_or_default();
        self.recorder.record(Reference::to(&kinds::POD, &meta), severity, reason, message);
    }

    /// The addresses of this Node, one of each family at most, IPv4 first.
    pub(crate) fn addresses(&self) -> Vec<String> {
        let object = self.object.borrow().clone();
        let internal =
            object.at("status").list("addresses").iter().filter(|address| address.text("type") == "InternalIP");
        let known: Vec<IpAddr> = internal.filter_map(|address| address.text("address").parse().ok()).collect();
        let first = |v4: bool| known.iter().find(|address| address.is_ipv4() == v4).map(IpAddr::to_string);
        [first(true), first(false)].into_iter().flatten().collect()
    }

    /// The ranges of this Node's Pods.
    pub(crate) fn ranges(&self) -> Vec<IpNet> {
        ranges(&self.object.borrow())
    }

    /// The Services a Pod of a namespace hears of.
    pub(crate) async fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        let (answer, services) = oneshot::channel();
        let ask = Ask { namespace: namespace.to_owned(), answer };
        match self.services.send(ask).await {
            Ok(()) => services.await.unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// New addresses for a Pod.
    pub(crate) fn take_addresses(&self) -> Result<Vec<IpAddr>, Full> {
        let mut pool = lock(&self.pool);
        let taken = pool.take(&self.ranges())?;
        let last: Vec<IpAddr> = pool.last().collect();
        // The first Pod of a machine finds no directory yet.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.settings.data);
        let written =
            made.and_then(|()| launch::replace(&self.last_addresses(), &serde_json::to_vec(&last).unwrap_or_default()));
        if let Err(error) = written {
            tracing::warn!(%error, "the last addresses given to Pods are not remembered; after a restart one may come again soon");
        }
        Ok(taken)
    }

    /// Addresses that Pods have, and the last that were given out before.
    pub(crate) fn know_addresses(&self, used: &[IpAddr], ranges: &[IpNet]) {
        let mut pool = lock(&self.pool);
        pool.keep(used);
        let last =
            fs::read(self.last_addresses()).ok().and_then(|text| serde_json::from_slice::<Vec<IpAddr>>(&text).ok());
        pool.go_on_after(&last.unwrap_or_default(), ranges);
    }

    pub(crate) fn release_addresses(&self, addresses: &[IpAddr]) {
        lock(&self.pool).release(addresses);
    }

    /// Returns a user for a Pod. `None`: all are in use.
    pub(crate) fn take_user(&self, uid: &str) -> Option<u32> {
        lock(&self.users).take(self.settings.users, uid)
    }

    /// Records the user of a Pod that an earlier runner started.
    pub(crate) fn keep_user(&self, user: u32) {
        lock(&self.users).keep(user);
    }

    /// Gives back the user of a Pod of which nothing is left.
    pub(crate) fn release_user(&self, user: u32) {
        lock(&self.users).release(user);
    }

    fn last_addresses(&self) -> PathBuf {
        self.settings.data.join("addresses.json")
    }
}

/// The ranges a Node has for its Pods.
pub(crate) fn ranges(node: &Value) -> Vec<IpNet> {
    let spec = node.at("spec");
    let all = spec.texts("podCIDRs");
    let all = if all.is_empty() { spec.text_opt("podCIDR").into_iter().collect() } else { all };
    let usable = |range: &IpNet| range.addr().is_ipv4() || has_ipv6();
    all.into_iter().filter_map(|range| range.parse().ok()).filter(usable).collect()
}

/// Whether this machine speaks IPv6: one that does not has Pods without it.
fn has_ipv6() -> bool {
    sysctl::read("net.ipv6.conf.all.disable_ipv6").is_ok_and(|value| value == "0")
}
