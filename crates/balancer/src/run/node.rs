//! The loop of this Node: follows Services, EndpointSlices, this Node and certificates, and keeps listeners and announcements as
//! they should be. The work of a change is in proportion to the change.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Node, Service};
use fairlead_api::{kinds, load_balancer};
use fairlead_cluster::{Cluster, Mirror, Seen, Selection, Watched};
use fairlead_plan::{Change, PlanChange, Planner};
use fairlead_runtime::budget::Account;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::balancer::{Balancer, Shared};
use super::input::{self, Advertised};
use super::members;
use super::page::Page;
use super::secrets::Store;
use crate::announce::{self, Announcer, Input};
use crate::backends::Backends;
use crate::config::{Around, Limits};
use crate::engine::{Engine, Options};
use crate::metallb::Found;
use crate::provision::Ours;
use crate::tls::Place;

/// How often certificates in files are looked at.
const FILES: Duration = Duration::from_secs(5);
/// What changes within so long is told the announcer together.
const TOGETHER: Duration = Duration::from_millis(3);
/// How long connections may go on when we are told to stop.
const LAST: Duration = Duration::from_secs(5);

/// The Services that are served here at the moment.
pub(super) type Here = Arc<RwLock<BTreeSet<Arc<Key>>>>;

/// Serves load balancers on this Node until told to stop.
pub(super) async fn run(cluster: Cluster, settings: &Settings, part: Part, stop: CancellationToken) {
    let cluster = cluster.managed_by("fairlead-balancer");
    let times = settings.config.heartbeats;
    let (announcer, task) = Announcer::new(announce::Settings { node: settings.node.clone(), times });
    part.page.follow(announcer.clone());
    let announced = async {
        if let Err(error) = task.run(cluster.clone(), stop.clone()).await {
            tracing::warn!("addresses of load balancers are not announced by this machine: {error}; run it as root");
        }
    };
    tokio::join!(announced, follow(&cluster, settings, part, announcer, stop.clone()));
}

/// What this part has in common with others.
pub(super) struct Part {
    pub(super) here: Here,
    pub(super) page: Page,
    pub(super) found: watch::Receiver<Arc<Found>>,
}

async fn follow(cluster: &Cluster, settings: &Settings, part: Part, announcer: Announcer, stop: CancellationToken) {
    let balanced = Selection::all(&kinds::SERVICE).with_fields("spec.type=LoadBalancer");
    let mut services = Watched::<Service>::new(cluster, balanced);
    let mut slices = Watched::<EndpointSlice>::new(cluster, Selection::all(&kinds::ENDPOINT_SLICE));
    let mut nodes = Mirror::builder(cluster).with::<Node>().build();
    let mut secrets = Store::new(cluster, settings.provisioning);
    let mut found = part.found.clone();
    let mut balancers = Balancers::new(settings, part);
    let mut announcing = false;
    let mut files = interval_at(Instant::now() + FILES, FILES);
    files.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // Nothing is announced, and nothing given up, before everything is known.
        let known = services.listed() && slices.listed() && nodes.synced();
        let due = balancers.changed.filter(|_| known);
        tokio::select! {
            () = stop.cancelled() => break,
            seen = services.next() => {
                balancers.saw_services(seen, &secrets);
                secrets.want(|| balancers.secrets());
            }
            seen = slices.next() => balancers.plan(seen.into_iter().map(|(key, slice)| Change::Slice(key, slice)).collect()),
            _ = nodes.next() => balancers.saw_node(nodes.get::<Node>("", &settings.node).map(|node| &**node)),
            () = secrets.next() => balancers.look_again(&secrets),
            _ = files.tick() => balancers.look_at_files(&secrets),
            Ok(()) = found.changed() => balancers.advertise(found.borrow_and_update().clone()),
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                let input = balancers.input(nodes.all::<Node>().cloned().collect());
                // A cluster without load balancers needs no heartbeats.
                announcing |= !input.wanted.is_empty();
                if announcing {
                    announcer.tell(input);
                }
            }
        }
    }
    balancers.shutdown().await;
}

/// All load balancers of this Node.
struct Balancers {
    ours: Ours,
    node: String,
    shared: Shared,
    planner: Planner,
    /// Made when the first load balancer needs it.
    engine: Option<Arc<Engine>>,
    zone: Option<String>,
    account: Account,
    all: HashMap<Arc<Key>, Balancer>,
    here: Here,
    page: Page,
    files: Vec<Option<(std::time::SystemTime, u64)>>,
    advertised: Advertised,
    /// When the announcer must be told what changed.
    changed: Option<Instant>,
}

impl Balancers {
    fn new(settings: &Settings, Part { here, page, found }: Part) -> Balancers {
        let shared = Shared::new(settings.config.clone(), settings.sctp, settings.spool.clone());
        let found = found.borrow().clone();
        let plan_node = fairlead_plan::Node { name: settings.node.clone(), ..fairlead_plan::Node::default() };
        Balancers {
            ours: settings.ours(),
            node: settings.node.clone(),
            files: shared.certificates.files(),
            shared,
            planner: Planner::new(plan_node),
            engine: None,
            zone: None,
            account: settings.account.clone(),
            all: HashMap::new(),
            here,
            page,
            advertised: Advertised { found, interfaces: settings.config.interfaces.clone() },
            changed: None,
        }
    }

    /// What the announcer has to know.
    fn input(&mut self, nodes: Vec<Arc<Node>>) -> Input {
        self.changed = None;
        input::input(self.all.values(), &self.planner, nodes, &self.advertised, &self.shared.config)
    }

    /// The announcer is told soon; what else changes until then is told together.
    fn news(&mut self) {
        self.changed.get_or_insert_with(|| Instant::now() + TOGETHER);
    }

    fn advertise(&mut self, found: Arc<Found>) {
        self.advertised.found = found;
        self.news();
    }

    fn saw_services(&mut self, seen: Vec<Seen<Service>>, secrets: &Store) {
        for (key, service) in seen {
            let wanted =
                |service: &Arc<Service>| self.ours.wants(service) && service.metadata.deletion_timestamp.is_none();
            match service.filter(wanted) {
                Some(service) => self.put(Arc::new(key), service, secrets),
                None => self.remove(&key),
            }
        }
    }

    fn put(&mut self, key: Arc<Key>, service: Arc<Service>, secrets: &Store) {
        let mut balancer = match self.all.remove(&key) {
            Some(known) => known.update(service),
            None => Balancer::new(key.clone(), service),
        };
        balancer.read(&self.shared, around(secrets));
        let planned = members::planned(&balancer.service, &balancer.addresses);
        self.all.insert(key.clone(), balancer);
        self.plan(vec![Change::Service((*key).clone(), Some(Arc::new(planned)))]);
        self.listen(&key, secrets);
    }

    fn remove(&mut self, key: &Key) {
        if let Some(mut gone) = self.all.remove(key) {
            if let Some(engine) = &self.engine {
                gone.stop(engine);
            }
            self.planner.apply([Change::Service(key.clone(), None)]);
            self.page.forget(key);
            self.news();
        }
        self.here.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Listeners of a Service as they should be.
    fn listen(&mut self, key: &Arc<Key>, secrets: &Store) {
        let Some(mut balancer) = self.all.remove(key) else { return };
        if balancer.is_proxied() {
            self.start();
        }
        if let Some(engine) = self.engine.clone() {
            let addresses = balancer.addresses.clone();
            let planner = &self.planner;
            balancer.listen(&engine, &self.shared, around(secrets), |listener| {
                let backends = Backends::new();
                backends.set(&members::backends(planner, listener, &addresses));
                Arc::new(backends)
            });
        }
        if !balancer.addresses.is_empty() {
            self.here.write().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        }
        self.page.put(&balancer, &self.planner);
        self.all.insert(key.clone(), balancer);
        self.news();
    }

    /// Takes changes into the plan, and hands what follows from them to the listeners they concern.
    fn plan(&mut self, changes: Vec<Change>) {
        let change = self.planner.apply(changes);
        for key in concerned(&change) {
            let Some(balancer) = self.all.get(&key) else { continue };
            if input::depends_on_endpoints(balancer) {
                self.changed.get_or_insert_with(|| Instant::now() + TOGETHER);
            }
            for served in balancer.listeners.values() {
                let serving = &served.serving;
                serving.backends.set(&members::backends(&self.planner, &serving.listener, &serving.addresses));
            }
            self.page.put(balancer, &self.planner);
        }
    }

    fn saw_node(&mut self, node: Option<&Node>) {
        let mut plan_node = node.map(fairlead_plan::Node::of).unwrap_or_default();
        plan_node.name.clone_from(&self.node);
        self.zone = node.and_then(|node| node.zone()).map(str::to_owned);
        self.plan(vec![Change::Node(Box::new(plan_node))]);
        self.news();
    }

    /// The Secrets that load balancers name for their certificates.
    fn secrets(&self) -> BTreeSet<Key> {
        let named = |balancer: &Balancer| -> Vec<Key> {
            let annotations = &balancer.service.metadata.annotations;
            let names = load_balancer::certificates(|name| annotations.get(name).map(String::as_str));
            names.iter().filter_map(|name| self.secret(&balancer.key.namespace, name)).collect()
        };
        self.all.values().flat_map(named).collect()
    }

    /// The Secret that a Service of a namespace means by a name.
    fn secret(&self, namespace: &str, name: &str) -> Option<Key> {
        match self.shared.config.certificates.get(name) {
            Some(Place::Files { .. }) => None,
            Some(Place::Secret { namespace: its, name }) => {
                Some(Key::new(its.as_deref().unwrap_or(namespace), &**name))
            }
            None => {
                let (its, name) = name.split_once('/').unwrap_or((namespace, name));
                (its == namespace && !name.contains([':', '/'])).then(|| Key::new(its, name))
            }
        }
    }

    /// Certificates changed: whoever has one, or lacks one, looks again.
    fn look_again(&mut self, secrets: &Store) {
        let has_tls = |balancer: &Balancer| {
            let spec = balancer.spec.as_ref();
            !balancer.refused.is_empty()
                || spec.is_some_and(|spec| spec.listeners.iter().any(|listener| listener.tls.is_some()))
        };
        let concerned: Vec<Arc<Key>> =
            self.all.values().filter(|balancer| has_tls(balancer)).map(|balancer| balancer.key.clone()).collect();
        for key in concerned {
            if let Some(balancer) = self.all.get_mut(&key) {
                balancer.read(&self.shared, around(secrets));
            }
            self.listen(&key, secrets);
        }
    }

    fn look_at_files(&mut self, secrets: &Store) {
        let files = self.shared.certificates.files();
        if files != self.files {
            self.files = files;
            self.look_again(secrets);
        }
    }

    /// Starts the threads, if they do not run yet.
    fn start(&mut self) {
        if self.engine.is_some() {
            return;
        }
        let Limits { connections, backend_connections, buffers, least_rate } = self.shared.config.limits;
        let options = Options {
            connections,
            backend_connections,
            buffers,
            least_rate,
            zone: self.zone.clone(),
            account: self.account.clone(),
            ..Options::default()
        };
        match Engine::start(options) {
            Ok(engine) => {
                let engine = Arc::new(engine);
                self.page.watch(engine.clone());
                self.engine = Some(engine);
            }
            Err(error) => tracing::error!("load balancers that need threads of ours are not served: {error}"),
        }
    }

    async fn shutdown(mut self) {
        self.page.close();
        if let Some(engine) = self.engine.take().and_then(Arc::into_inner) {
            engine.shutdown(LAST).await;
        }
        self.shared.logs.stop().await;
    }
}

fn around(secrets: &Store) -> Around<'_> {
    Around { secrets, now: Timestamp::now() }
}

/// The Services whose endpoints are others now.
fn concerned(change: &PlanChange) -> BTreeSet<Arc<Key>> {
    let pools = change.pools.iter().map(|delta| delta.key.port.service.clone());
    let backends = change.backends.iter().map(|delta| delta.key.service.clone());
    let frontends = change.frontends.iter().filter_map(|delta| delta.new.as_ref().or(delta.old.as_ref()));
    pools.chain(backends).chain(frontends.map(|frontend| frontend.port.service.clone())).collect()
}
