//! The loop of this Node: follows Services, EndpointSlices, this Node and certificates, and keeps listeners and announcements as
//! they should be. The work of a change is in proportion to the change.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Node, Service};
use fairlead_cluster::{Cluster, Mirror, Seen, Selection, Watched};
use fairlead_plan::{Change, PlanChange, Planner};
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::Settings;
use super::balancer::{Balancer, Shared};
use super::members;
use super::page::Page;
use crate::backends::Backends;
use crate::config::Around;
use crate::engine::{Engine, Options};
use crate::provision::{Ours, certificates};
use crate::tls::Secret;

/// How often certificates in files are looked at.
const FILES: Duration = Duration::from_secs(5);
/// How long connections may go on when we are told to stop.
const LAST: Duration = Duration::from_secs(5);

/// The Services that are served here at the moment.
pub(super) type Here = Arc<RwLock<BTreeSet<Arc<Key>>>>;

/// Serves load balancers on this Node until told to stop.
pub(super) async fn run(cluster: Cluster, settings: &Settings, here: Here, page: Page, stop: CancellationToken) {
    let cluster = cluster.managed_by("fairlead-balancer");
    let balanced = Selection::all(&kinds::SERVICE).with_fields("spec.type=LoadBalancer");
    let itself = Selection::all(&kinds::NODE).with_fields(format!("metadata.name={}", settings.node));
    let mut services = Watched::<Service>::new(&cluster, balanced);
    let mut slices = Watched::<EndpointSlice>::new(&cluster, Selection::all(&kinds::ENDPOINT_SLICE));
    let mut node = Mirror::builder(&cluster).with_only::<Node>(itself).build();
    let mut secrets = Mirror::builder(&cluster).with_only::<Secret>(certificates()).build();
    let mut balancers = Balancers::new(settings, here, page);
    let mut files = interval_at(Instant::now() + FILES, FILES);
    files.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            seen = services.next() => balancers.saw_services(seen, &secrets),
            seen = slices.next() => balancers.plan(seen.into_iter().map(|(key, slice)| Change::Slice(key, slice)).collect()),
            _ = node.next() => balancers.saw_node(node.get::<Node>("", &settings.node).map(|node| &**node)),
            _ = secrets.next() => balancers.look_again(&secrets),
            _ = files.tick() => balancers.look_at_files(&secrets),
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
    all: HashMap<Arc<Key>, Balancer>,
    here: Here,
    page: Page,
    files: Vec<Option<(std::time::SystemTime, u64)>>,
}

impl Balancers {
    fn new(settings: &Settings, here: Here, page: Page) -> Balancers {
        let shared = Shared::new(settings.config.clone(), settings.sctp);
        let plan_node = fairlead_plan::Node { name: settings.node.clone(), ..fairlead_plan::Node::default() };
        Balancers {
            ours: settings.ours(),
            node: settings.node.clone(),
            files: shared.certificates.files(),
            shared,
            planner: Planner::new(plan_node),
            engine: None,
            zone: None,
            all: HashMap::new(),
            here,
            page,
        }
    }

    fn saw_services(&mut self, seen: Vec<Seen<Service>>, secrets: &Mirror) {
        for (key, service) in seen {
            let wanted =
                |service: &Arc<Service>| self.ours.wants(service) && service.metadata.deletion_timestamp.is_none();
            match service.filter(wanted) {
                Some(service) => self.put(Arc::new(key), service, secrets),
                None => self.remove(&key),
            }
        }
    }

    fn put(&mut self, key: Arc<Key>, service: Arc<Service>, secrets: &Mirror) {
        let mut balancer = match self.all.remove(&key) {
            Some(known) => Balancer { service, ..known },
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
        }
        self.here.write().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Listeners of a Service as they should be.
    fn listen(&mut self, key: &Arc<Key>, secrets: &Mirror) {
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
    }

    /// Takes changes into the plan, and hands what follows from them to the listeners they concern.
    fn plan(&mut self, changes: Vec<Change>) {
        let change = self.planner.apply(changes);
        for key in concerned(&change) {
            let Some(balancer) = self.all.get(&key) else { continue };
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
    }

    /// Certificates changed: whoever has one, or lacks one, looks again.
    fn look_again(&mut self, secrets: &Mirror) {
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

    fn look_at_files(&mut self, secrets: &Mirror) {
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
        match Engine::start(Options { zone: self.zone.clone(), ..Options::default() }) {
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
    }
}

fn around(secrets: &Mirror) -> Around<'_> {
    Around { secrets, now: Timestamp::now() }
}

/// The Services whose endpoints are others now.
fn concerned(change: &PlanChange) -> BTreeSet<Arc<Key>> {
    let pools = change.pools.iter().map(|delta| delta.key.port.service.clone());
    let backends = change.backends.iter().map(|delta| delta.key.service.clone());
    let frontends = change.frontends.iter().filter_map(|delta| delta.new.as_ref().or(delta.old.as_ref()));
    pools.chain(backends).chain(frontends.map(|frontend| frontend.port.service.clone())).collect()
}
