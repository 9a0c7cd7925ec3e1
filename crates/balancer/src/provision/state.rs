//! Who has which address, and what must be written so that the API says so. Synchronous, without clock or sockets; the work of a
//! change is in proportion to the change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{Ingress, Node, Service, ServiceType};
use fairlead_cluster::Severity;

use super::FINALIZER;
use super::ports;
use crate::config::{Around, Config};
use crate::pools::{Ledger, Owner, Pool, Wish};
use crate::spec::names::{LAST_GOOD, SSL_CERT};
use crate::spec::{self, Options, Path, PortId, Spec};
use crate::tls::Place;

/// Which Services are ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ours {
    /// The class of load balancers that we are.
    pub class: String,
    /// Whether those without a class are ours, too.
    pub default: bool,
}

impl Ours {
    /// Whether a Service asks for a load balancer of ours.
    pub fn wants(&self, service: &Service) -> bool {
        let class = match service.spec.load_balancer_class.as_deref() {
            None | Some("") => self.default,
            Some(class) => class == self.class,
        };
        class && service.spec.kind == ServiceType::LoadBalancer
    }
}

/// What must be done about a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The Service.
    pub key: Arc<Key>,
    /// As it was when this was decided.
    pub service: Arc<Service>,
    /// What becomes of it.
    pub kept: Kept,
    /// What is to be kept of its annotations; `None`: what is there is right.
    pub good: Option<Good>,
    /// What to say before.
    pub before: Vec<Note>,
    /// What to say when it is done.
    pub after: Vec<Note>,
}

/// What becomes of a Service's load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It stays as it is.
    Same,
    /// It is at these addresses from now on.
    At(Vec<Ingress>),
    /// It is gone: the status is emptied, the finalizer removed.
    Gone,
}

/// What [`LAST_GOOD`] is to say; `None`: there is to be none.
pub type Good = Option<String>;

impl Task {
    /// Whether there is nothing to write.
    pub fn is_idle(&self) -> bool {
        self.kept == Kept::Same && self.good.is_none()
    }
}

/// Something to say about a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How bad it is.
    pub severity: Severity,
    /// In one word; those of cloud-controller-manager.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

impl Note {
    fn normal(reason: &'static str, message: impl Into<String>) -> Note {
        Note { severity: Severity::Normal, reason, message: message.into() }
    }

    fn refused(why: impl std::fmt::Display) -> Note {
        let message = format!("Error syncing load balancer: failed to ensure load balancer: {why}");
        Note { severity: Severity::Warning, reason: "SyncLoadBalancerFailed", message }
    }
}

/// All that is known.
#[derive(Debug)]
pub struct State {
    ours: Ours,
    config: Arc<Config>,
    options: Options,
    ledger: Ledger,
    services: HashMap<Arc<Key>, Known>,
    /// Cluster IPs of all Services, whatever their type.
    cluster_ips: HashMap<Arc<Key>, Box<[IpAddr]>>,
    nodes: HashMap<Arc<str>, Vec<IpAddr>>,
    /// Services that were refused: something may become free for them.
    waiting: HashSet<Arc<Key>>,
}

/// What is known of a Service that asks for a load balancer of ours, or did.
#[derive(Debug)]
struct Known {
    service: Arc<Service>,
    /// Whether it was ours when last looked at.
    was_ours: bool,
    /// What it was told last, so that it is not told again.
    told: Vec<Note>,
    /// What is to be kept of its annotations since they last made sense; `None`: they did not yet.
    good: Option<Good>,
}

impl State {
    /// Knows nothing but pools.
    pub fn new(ours: Ours, config: Arc<Config>, sctp: bool, pools: Vec<Pool>) -> State {
        State {
            ours,
            options: config.options(sctp),
            config,
            ledger: Ledger::new(pools),
            services: HashMap::new(),
            cluster_ips: HashMap::new(),
            nodes: HashMap::new(),
            waiting: HashSet::new(),
        }
    }

    /// The revision at which a Service was seen last.
    pub fn revision(&self, key: &Key) -> Option<u64> {
        self.services.get(key)?.service.metadata.resource_version.parse().ok()
    }

    /// A Service is so now, or gone. Returns the Services that must be looked at because of it.
    pub fn put(&mut self, key: Key, service: Option<Arc<Service>>) -> Vec<Arc<Key>> {
        let key = Arc::new(key);
        let mut concerned = self.put_cluster_ips(&key, service.as_deref());
        let Some(service) = service else {
            self.services.remove(&key);
            self.waiting.remove(&key);
            concerned.extend(self.release(&key));
            return concerned;
        };
        let before = self.services.get(&key);
        let marked = service.metadata.finalizers.iter().any(|name| name == FINALIZER);
        if before.is_none() && !marked && !self.ours.wants(&service) {
            return concerned;
        }
        let same = before.is_some_and(|before| before.service.metadata.uid == service.metadata.uid);
        if same {
            let known = self.services.get_mut(&key).expect("found a line ago");
            known.service = service;
        } else {
            concerned.extend(self.release(&key));
            self.services.insert(key.clone(), Known { service, was_ours: false, told: Vec::new(), good: None });
        }
        concerned.push(key);
        concerned
    }

    /// A Node is so now, or gone. Returns the Services that must be looked at because of it.
    pub fn put_node(&mut self, name: &str, node: Option<&Node>) -> Vec<Arc<Key>> {
        let owner = Owner::Node(name.into());
        let addresses = node.map(|node| node.status.addresses.iter().filter_map(|address| ip::parse(&address.address)));
        let new: Vec<IpAddr> = addresses.into_iter().flatten().collect();
        let old = match node {
            Some(_) => self.nodes.insert(name.into(), new.clone()),
            None => self.nodes.remove(name),
        };
        let mut concerned = self.reserve(&owner, &old.unwrap_or_default(), &new);
        let several = self.nodes.len() > 1;
        if self.ledger.set_several_nodes(several) {
            concerned.extend(self.waiting.iter().cloned());
        }
        concerned
    }

    /// There are other pools now. Returns all Services.
    pub fn set_pools(&mut self, pools: Vec<Pool>) -> Vec<Arc<Key>> {
        self.ledger = Ledger::new(pools);
        self.ledger.set_several_nodes(self.nodes.len() > 1);
        for (name, addresses) in &self.nodes {
            addresses.iter().for_each(|ip| self.ledger.reserve(*ip, Owner::Node(name.clone())));
        }
        for (key, addresses) in &self.cluster_ips {
            addresses.iter().for_each(|ip| self.ledger.reserve(*ip, Owner::ClusterIp(key.clone())));
        }
        self.claim()
    }

    /// All Services in the order in which they must be decided when nothing is given out yet: who has an address comes first,
    /// then who is older.
    pub fn claim(&self) -> Vec<Arc<Key>> {
        let mut all: Vec<&Arc<Key>> = self.services.keys().collect();
        all.sort_by_cached_key(|key| {
            let service = &self.services[*key].service;
            let fresh = service.status.load_balancer.ingress.is_empty();
            (fresh, service.metadata.creation_timestamp.clone(), (**key).clone())
        });
        all.into_iter().cloned().collect()
    }

    /// Returns the Services that may show certificates from Secrets of these namespaces, and all
    /// that were refused: what they name may be there by now.
    pub fn look_at_certificates(&self, namespaces: &BTreeSet<String>) -> Vec<Arc<Key>> {
        let everywhere = self.config.certificates.values().any(|place| match place {
            Place::Secret { namespace: Some(namespace), .. } => namespaces.contains(namespace),
            Place::Secret { namespace: None, .. } | Place::Files { .. } => false,
        });
        let shows = |(key, known): &(&Arc<Key>, &Known)| {
            known.service.metadata.annotations.contains_key(SSL_CERT)
                && (everywhere || namespaces.contains(&*key.namespace))
                && !self.waiting.contains(*key)
        };
        let shown = self.services.iter().filter(shows).map(|(key, _)| key.clone());
        shown.chain(self.waiting.iter().cloned()).collect()
    }

    /// What must be done about a Service; `None`: it is none of our business.
    pub fn decide(&mut self, key: &Arc<Key>, around: Around<'_>) -> Option<Task> {
        let service = self.services.get(key)?.service.clone();
        if self.ours.wants(&service) && service.metadata.deletion_timestamp.is_none() {
            return Some(self.ensure(key, service, around));
        }
        self.remove(key, service)
    }

    /// A task is done. Returns the Services that must be looked at because of it.
    pub fn wrote(&mut self, task: &Task) -> Vec<Arc<Key>> {
        let Some(known) = self.services.get_mut(&task.key) else { return Vec::new() };
        // Who is refused has been told why, and is not told again.
        if !task.after.is_empty() {
            known.told.retain(|note| note.severity == Severity::Warning);
        }
        if task.kept != Kept::Gone {
            return Vec::new();
        }
        if !self.ours.wants(&known.service) || known.service.metadata.deletion_timestamp.is_some() {
            self.services.remove(&task.key);
            self.waiting.remove(&task.key);
        }
        self.release(&task.key)
    }

    fn ensure(&mut self, key: &Arc<Key>, service: Arc<Service>, around: Around<'_>) -> Task {
        let read = self.config.read(&service, &self.options, around);
        let refused = match &read {
            Ok(reading) => reading.unserved.clone(),
            Err(refused) => refused.clone(),
        };
        let good = self.good(key, &service, refused.is_empty());
        let served = self.served(key, &service, read.as_ref().ok().map(|reading| &reading.spec), around);
        let ports = ports::errors(&service, &refused, &served);
        let all = PortId::all(&service);
        let refusals: Vec<Note> = refused.iter().map(|one| Note::refused(one.explained(&served, &all))).collect();
        let read = read.map(|reading| reading.spec).map_err(|_| refusals.clone());
        let (before, kept, after) = match read.and_then(|spec| self.addresses(key, &service, spec)) {
            Ok((spec, addresses)) => {
                if refusals.is_empty() {
                    self.waiting.remove(key);
                } else {
                    self.waiting.insert(key.clone());
                }
                let at = |ip: &IpAddr| Ingress { ports: ports.clone(), ..ingress(*ip, spec.path) };
                let ingress: Vec<Ingress> = addresses.iter().map(at).collect();
                let has = &service.status.load_balancer.ingress;
                let there = *has == ingress;
                let marked = service.metadata.finalizers.iter().any(|name| name == FINALIZER);
                // A port that is not served any more is no load balancer that was ensured.
                let is_news = if refusals.is_empty() { !there } else { !same_places(has, &ingress) };
                let mut before = refusals;
                let mut after = Vec::new();
                if is_news {
                    before.push(Note::normal("EnsuringLoadBalancer", "Ensuring load balancer"));
                    after.push(Note::normal("EnsuredLoadBalancer", self.ensured(&addresses)));
                    after.extend(spec.notes.iter().map(|note| Note::normal("LoadBalancerNote", note.to_string())));
                }
                (before, if there && marked { Kept::Same } else { Kept::At(ingress) }, after)
            }
            Err(refusals) => {
                self.waiting.insert(key.clone());
                self.hold(key, &service);
                (refusals, ports::told(&service, ports), Vec::new())
            }
        };
        let known = self.services.get_mut(key).expect("it is being decided");
        known.was_ours = true;
        let told = std::mem::replace(&mut known.told, before.clone());
        let before = before.into_iter().filter(|note| !told.contains(note)).collect();
        Task { key: key.clone(), service, kept, good, before, after }
    }

    /// What is to be kept of the annotations of a Service, if that is not there: these if they make sense, else those that last did.
    fn good(&mut self, key: &Arc<Key>, service: &Service, makes_sense: bool) -> Option<Good> {
        let known = self.services.get_mut(key)?;
        let good = match makes_sense {
            true => {
                known.good = Some(spec::last_good(service));
                Some(spec::good(service))
            }
            false => known.good.clone(),
        };
        good.filter(|good| good.as_ref() != service.metadata.annotations.get(LAST_GOOD))
    }

    /// Returns the ports that a Node serves which begins to serve now: those of what is asked for,
    /// and those that were served when that last made sense, by the annotations of then.
    fn served(&self, key: &Key, service: &Service, spec: Option<&Spec>, around: Around<'_>) -> Vec<PortId> {
        if let Some(spec) = spec.filter(|spec| spec.unserved.is_empty()) {
            return spec.served_ports();
        }
        let mut then = service.clone();
        if let Some(Some(good)) = self.services.get(key).and_then(|known| known.good.as_ref()) {
            then.metadata.annotations.insert(LAST_GOOD.to_owned(), good.clone());
        }
        let read = |service: &Service| self.config.read(service, &self.options, around).map(|reading| reading.spec);
        let before = spec::recall(&then, read);
        match (spec.cloned(), before) {
            (Some(mut spec), before) => {
                before.iter().for_each(|before| spec.keep_served(before));
                spec.served_ports()
            }
            (None, Some(before)) => before.served_ports(),
            (None, None) if service.status.load_balancer.ingress.is_empty() => Vec::new(),
            (None, None) => spec::without_tls(service),
        }
    }

    /// Where a Service gets what it asks for, or why it does not.
    fn addresses(&mut self, key: &Arc<Key>, service: &Service, spec: Spec) -> Result<(Spec, Vec<IpAddr>), Vec<Note>> {
        let wish = Wish::read(key.clone(), service, spec.scheme);
        let given = wish.and_then(|wish| self.ledger.assign(&wish));
        given.map(|addresses| (spec, addresses)).map_err(|refusal| vec![Note::refused(refusal)])
    }

    fn ensured(&self, addresses: &[IpAddr]) -> String {
        let one = |ip: &IpAddr| match self.ledger.pool_of(*ip) {
            Some(pool) => format!("{ip} from pool {:?}", pool.name),
            None => ip.to_string(),
        };
        let all: Vec<String> = addresses.iter().map(one).collect();
        format!("Ensured load balancer: {}", all.join(", "))
    }

    /// A Service that is refused keeps what it has: nobody else gets it.
    fn hold(&mut self, key: &Arc<Key>, service: &Service) {
        let has: Vec<IpAddr> =
            service.status.load_balancer.ingress.iter().filter_map(|one| ip::parse(&one.ip)).collect();
        let Some(pool) = has.first().and_then(|ip| self.ledger.pool_of(*ip)) else { return };
        if !self.ledger.addresses(key).is_empty() {
            return;
        }
        let scheme = pool.scheme;
        let mut plain = service.clone();
        plain.metadata.annotations.clear();
        plain.spec.load_balancer_ip.clear();
        if let Ok(wish) = Wish::read(key.clone(), &plain, scheme) {
            let families = has.iter().map(|ip| fairlead_plan::family_of(*ip)).collect();
            // If somebody else has it by now, there is nothing to keep.
            let _ = self.ledger.assign(&Wish { addresses: Some(("status", has)), families, ..wish });
        }
    }

    /// A Service that does not want a load balancer of ours, or not any more.
    fn remove(&mut self, key: &Arc<Key>, service: Arc<Service>) -> Option<Task> {
        let known = self.services.get_mut(key)?;
        let marked = service.metadata.finalizers.iter().any(|name| name == FINALIZER);
        let statused = !service.status.load_balancer.ingress.is_empty();
        let balanced = service.spec.kind == ServiceType::LoadBalancer;
        // Of a Service that has lost its type nobody knows whose it was, but for its addresses.
        let of_ours = |one: &Ingress| ip::parse(&one.ip).is_some_and(|ip| self.ledger.pool_of(ip).is_some());
        let was_ours = known.was_ours
            || self.ours.wants(&service)
            || (!balanced && (self.ours.default || service.status.load_balancer.ingress.iter().any(of_ours)));
        let needed = was_ours && (marked || (statused && service.metadata.deletion_timestamp.is_none()));
        let good = service.metadata.annotations.contains_key(LAST_GOOD).then_some(None);
        if !needed {
            self.services.remove(key);
            self.waiting.remove(key);
            // Those who wait for it are looked at with the next change; it was never served.
            self.release(key);
            return None;
        }
        let before = vec![Note::normal("DeletingLoadBalancer", "Deleting load balancer")];
        let told = std::mem::replace(&mut known.told, before.clone());
        let before = if told == before { Vec::new() } else { before };
        let after = vec![Note::normal("DeletedLoadBalancer", "Deleted load balancer")];
        Some(Task { key: key.clone(), service, kept: Kept::Gone, good, before, after })
    }

    /// A Service needs no address any more. Returns those who wait for one.
    fn release(&mut self, key: &Key) -> Vec<Arc<Key>> {
        if self.ledger.release(key).is_empty() { Vec::new() } else { self.waiting.iter().cloned().collect() }
    }

    fn put_cluster_ips(&mut self, key: &Arc<Key>, service: Option<&Service>) -> Vec<Arc<Key>> {
        let spec = service.map(|service| &service.spec);
        let all = spec.map(|spec| spec.cluster_ips.iter().chain([&spec.cluster_ip]).filter_map(|text| ip::parse(text)));
        let new: BTreeSet<IpAddr> = all.into_iter().flatten().collect();
        let new: Box<[IpAddr]> = new.into_iter().collect();
        let old = match new.is_empty() {
            true => self.cluster_ips.remove(key),
            false if self.cluster_ips.get(key) == Some(&new) => return Vec::new(),
            false => self.cluster_ips.insert(key.clone(), new.clone()),
        };
        self.reserve(&Owner::ClusterIp(key.clone()), &old.unwrap_or_default(), &new)
    }

    /// Somebody has these addresses instead of those. Returns the Services that must be looked at because of it.
    fn reserve(&mut self, owner: &Owner, old: &[IpAddr], new: &[IpAddr]) -> Vec<Arc<Key>> {
        let mut concerned = Vec::new();
        for ip in new.iter().filter(|ip| !old.contains(ip)) {
            self.ledger.reserve(*ip, owner.clone());
            concerned.extend(self.ledger.holders(*ip).cloned());
        }
        let mut gone = old.iter().filter(|ip| !new.contains(ip)).peekable();
        let freed = gone.peek().is_some();
        gone.for_each(|ip| self.ledger.unreserve(*ip, owner));
        if freed && !self.waiting.is_empty() {
            concerned.extend(self.waiting.iter().cloned());
        }
        concerned
    }
}

/// True if two states of a Service differ in what they say of ports at most.
fn same_places(one: &[Ingress], other: &[Ingress]) -> bool {
    let place = |ingress: &Ingress| (ingress.ip.clone(), ingress.ip_mode.clone());
    one.iter().map(place).eq(other.iter().map(place))
}

fn ingress(ip: IpAddr, path: Path) -> Ingress {
    let mode = match path {
        Path::Kernel => "VIP",
        Path::Userspace => "Proxy",
    };
    Ingress { ip: ip.to_string(), ip_mode: Some(mode.to_owned()), ..Ingress::default() }
}
