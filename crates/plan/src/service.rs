//! What one Service is on this Node: its frontends, what each does with packets, and its pools. Looks at nothing but the
//! Service, its slices and the Node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{Family, Service, ServicePort, ServiceType, SessionAffinity, TrafficPolicy};
use ipnet::IpNet;

use crate::choice::Choice;
use crate::key::{FrontendKey, PoolKey, PortKey, Scope, family_of};
use crate::node::{Node, Source, contains};
use crate::plan::{Action, Actions, Endpoint, Frontend, FrontendKind, HealthCheck, Pool};
use crate::reason::{About, Note, Reason, Traffic};
use crate::slice::{Member, Slice};

/// The label that gives a Service, or a slice, to another proxy.
const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
/// The label on what belongs to a headless Service.
const HEADLESS: &str = "service.kubernetes.io/headless";
/// How long a client stays with its endpoint when nothing is said.
const DEFAULT_AFFINITY: u32 = 10_800;

/// Everything a Service puts into the plan.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) frontends: BTreeMap<FrontendKey, Arc<Frontend>>,
    pub(crate) pools: BTreeMap<PoolKey, Arc<Pool>>,
    pub(crate) backends: BTreeMap<PortKey, Arc<[Endpoint]>>,
    pub(crate) cluster_ips: BTreeSet<IpAddr>,
    pub(crate) health_check: Option<HealthCheck>,
    pub(crate) notes: Vec<Note>,
}

/// Why neither a Service nor a slice with such labels is ours.
pub(crate) fn label_reason(labels: &BTreeMap<String, String>) -> Option<Reason> {
    if let Some(proxy) = labels.get(PROXY_NAME) {
        return Some(Reason::OtherProxy { proxy: proxy.clone() });
    }
    labels.contains_key(HEADLESS).then_some(Reason::HeadlessLabel)
}

fn skip_reason(service: &Service) -> Option<Reason> {
    match () {
        () if service.spec.kind == ServiceType::ExternalName => Some(Reason::ExternalName),
        () if service.is_headless() => Some(Reason::Headless),
        () if !service.has_cluster_ip() => Some(Reason::NoClusterIp),
        () => label_reason(&service.metadata.labels),
    }
}

/// The topology keys that count.
pub(crate) fn keys<'a>(service: Option<&'a Service>, node: &Node) -> &'a [String] {
    service.filter(|_| node.topology_keys).map_or(&[], |service| &service.spec.topology_keys)
}

/// Plans a Service.
pub(crate) fn plan(key: &Arc<Key>, service: &Service, slices: &[Slice], node: &Node) -> Planned {
    let mut planned = Planned::default();
    if let Some(reason) = skip_reason(service) {
        planned.note(About::Service, reason);
        return planned;
    }
    if !service.spec.topology_keys.is_empty() && !node.topology_keys {
        planned.note(About::Service, Reason::TopologyKeysOff);
    }
    let addresses = Addresses::read(service, &mut planned.notes);
    let mut families = Vec::new();
    for family in &node.families {
        let Some(cluster_ip) = addresses.cluster_ip(*family) else { continue };
        families.push(*family);
        planned.cluster_ips.insert(cluster_ip);
        let inside = Inside { key, service, slices, node, family: *family, cluster_ip, addresses: &addresses };
        inside.plan(&mut planned);
    }
    planned.health_check = health_check(key, service, slices, &families, &mut planned.notes);
    for slice in slices {
        let left_out = slice.left_out.iter().cloned();
        planned.notes.extend(left_out.map(|reason| Note { about: About::Slice(slice.name.to_string()), reason }));
    }
    planned
}

impl Planned {
    fn note(&mut self, about: About, reason: Reason) {
        self.notes.push(Note { about, reason });
    }
}

/// The addresses of a Service, read.
#[derive(Default)]
struct Addresses {
    cluster: Vec<IpAddr>,
    external: Vec<IpAddr>,
    load_balancer: Vec<IpAddr>,
    ranges: Vec<IpNet>,
}

impl Addresses {
    fn read(service: &Service, notes: &mut Vec<Note>) -> Addresses {
        let mut note = |reason| notes.push(Note { about: About::Service, reason });
        let mut read = |field, text: &str| {
            let ip = ip::parse(text);
            if ip.is_none() && !text.trim().is_empty() {
                note(Reason::InvalidAddress { field, text: text.to_owned() });
            }
            ip
        };
        let cluster = cluster_ips(service).into_iter().filter_map(|text| read("clusterIPs", text)).collect();
        let external = service.spec.external_ips.iter().filter_map(|text| read("externalIPs", text)).collect();
        let ingress = service.status.load_balancer.ingress.iter();
        let ingress: Vec<_> = ingress
            .filter_map(|ingress| Some((read("status.loadBalancer.ingress", &ingress.ip)?, ingress.ip_mode.as_deref())))
            .collect();
        let mut addresses = Addresses { cluster, external, ..Addresses::default() };
        for (address, mode) in ingress {
            match mode {
                None | Some("VIP") => addresses.load_balancer.push(address),
                Some(mode) => note(Reason::LeftToLoadBalancer { address, mode: mode.to_owned() }),
            }
        }
        for text in service.spec.load_balancer_source_ranges.iter().map(|text| text.trim()) {
            match ip::cidr::parse(text) {
                Some(range) => addresses.ranges.push(range.trunc()),
                None => note(Reason::InvalidRange { text: text.to_owned() }),
            }
        }
        for address in addresses.external.iter().chain(&addresses.load_balancer).copied() {
            let family = family_of(address);
            if addresses.cluster_ip(family).is_none() {
                note(Reason::NoClusterIpOfFamily { address, family });
            }
        }
        addresses
    }

    fn cluster_ip(&self, family: Family) -> Option<IpAddr> {
        self.cluster.iter().copied().find(|ip| family_of(*ip) == family)
    }
}

/// Old servers fill in only the first.
fn cluster_ips(service: &Service) -> Vec<&str> {
    let all = &service.spec.cluster_ips;
    if all.is_empty() { vec![&service.spec.cluster_ip] } else { all.iter().map(String::as_str).collect() }
}

/// One family of a Service.
struct Inside<'a> {
    key: &'a Arc<Key>,
    service: &'a Service,
    slices: &'a [Slice],
    node: &'a Node,
    family: Family,
    cluster_ip: IpAddr,
    addresses: &'a Addresses,
}

/// The two policies of a Service.
#[derive(Clone, Copy)]
struct Policies {
    internal: Scope,
    external: Scope,
}

impl Inside<'_> {
    fn plan(&self, planned: &mut Planned) {
        let allowed = self.allowed();
        for port in &self.service.spec.ports {
            let Some(number) = port_number(port.port) else {
                planned.note(About::Service, Reason::InvalidPort { number: port.port });
                continue;
            };
            let key = self.port_key(port);
            let frontends = self.frontends(port, number);
            let choice = Choice::of(&self.members(port), self.node, keys(Some(self.service), self.node));
            let external = frontends.iter().any(|(_, kind)| *kind != FrontendKind::ClusterIp);
            let rules = Rules { choice: &choice, policies: self.policies(), node: self.node, family: self.family };
            rules.note(&key, external, planned);
            let mut used = BTreeSet::new();
            for (frontend, kind) in frontends {
                let actions = rules.actions(kind);
                used.extend([Scope::Cluster, Scope::Local].into_iter().filter(|scope| actions.uses(*scope)));
                let allowed = allowed.clone().filter(|_| kind == FrontendKind::LoadBalancerIp);
                let made = Frontend { key: frontend, kind, port: key.clone(), allowed, actions };
                // The kinds come in their order: what is a cluster IP is not an external IP as well.
                planned.frontends.entry(frontend).or_insert_with(|| Arc::new(made));
            }
            let pools = used.into_iter().map(|scope| self.pool(&key, &choice, scope));
            planned.pools.extend(pools.map(|pool| (pool.key.clone(), Arc::new(pool))));
            planned.backends.insert(key, choice.all);
        }
    }

    fn port_key(&self, port: &ServicePort) -> PortKey {
        let name = Arc::from(port.name.as_str());
        PortKey { service: self.key.clone(), name, protocol: port.protocol, family: self.family }
    }

    fn policies(&self) -> Policies {
        let scope =
            |policy, counts| if counts && policy == TrafficPolicy::Local { Scope::Local } else { Scope::Cluster };
        let spec = &self.service.spec;
        Policies {
            internal: scope(spec.internal_traffic_policy, true),
            external: scope(spec.external_traffic_policy, is_reached_from_outside(self.service)),
        }
    }

    /// What a port is reached at.
    fn frontends(&self, port: &ServicePort, number: u16) -> Vec<(FrontendKey, FrontendKind)> {
        let protocol = port.protocol;
        let at = |kind| move |ip: &IpAddr| (FrontendKey::Address { ip: *ip, protocol, port: number }, kind);
        let ours = |ip: &&IpAddr| family_of(**ip) == self.family;
        let mut frontends = vec![at(FrontendKind::ClusterIp)(&self.cluster_ip)];
        if let Some(port) = port_number(port.node_port) {
            frontends.push((FrontendKey::NodePort { family: self.family, protocol, port }, FrontendKind::NodePort));
        }
        // A port that the load balancer says it does not serve, for want of its certificate for
        // example, must not be open here in the clear. kube-proxy, which knows nothing of it, is
        // kept from it by the balancer's guard.
        let ingress = &self.service.status.load_balancer.ingress;
        let unserved = |ip: &IpAddr| {
            ingress.iter().any(|one| one.unserved(port.port, protocol).is_some() && ip::parse(&one.ip) == Some(*ip))
        };
        let served = self.addresses.load_balancer.iter().filter(ours).filter(|ip| !unserved(ip));
        frontends.extend(served.map(at(FrontendKind::LoadBalancerIp)));
        frontends.extend(self.addresses.external.iter().filter(ours).map(at(FrontendKind::ExternalIp)));
        frontends
    }

    /// Who may use load balancer IPs. Where the Node itself may, so may its own packets to an address that some load
    /// balancers put on the Node: they carry that address as their source.
    fn allowed(&self) -> Option<Arc<[IpNet]>> {
        let ours = self.addresses.ranges.iter().copied().filter(|range| family_of(range.addr()) == self.family);
        let mut allowed: Vec<IpNet> = ours.collect();
        if allowed.is_empty() || allowed.iter().any(|range| range.prefix_len() == 0) {
            return None;
        }
        if self.node.ips.iter().any(|ip| contains(&allowed, *ip)) {
            let load_balancer = self.addresses.load_balancer.iter().filter(|ip| family_of(**ip) == self.family);
            allowed.extend(load_balancer.map(|ip| IpNet::from(*ip)));
        }
        allowed.sort_unstable();
        allowed.dedup();
        Some(allowed.into())
    }

    /// Endpoints of a port from all slices, in order and none twice. While an endpoint moves from one slice to another, or
    /// an address from one Pod to the next, it may be seen in two: the one in the better state counts.
    fn members(&self, port: &ServicePort) -> Vec<Member> {
        let mut members = Vec::new();
        for slice in self.slices.iter().filter(|slice| slice.family == Some(self.family)) {
            let Some(number) = slice.port(&port.name, port.protocol) else { continue };
            let numbered = slice
                .members
                .iter()
                .map(|member| Member { endpoint: Endpoint { port: number, ..member.endpoint }, ..*member });
            members.extend(numbered);
        }
        members.sort_by_key(|Member { endpoint, .. }| {
            (endpoint.ip, endpoint.port, endpoint.terminating, !endpoint.ready, !endpoint.serving)
        });
        members.dedup_by_key(|Member { endpoint, .. }| (endpoint.ip, endpoint.port));
        members
    }

    fn pool(&self, port: &PortKey, choice: &Choice, scope: Scope) -> Pool {
        let endpoints = match scope {
            Scope::Cluster => choice.cluster.clone(),
            Scope::Local => choice.local.clone(),
        };
        Pool { key: PoolKey { port: port.clone(), scope }, endpoints, affinity: affinity(self.service) }
    }
}

/// What packets to the frontends of a port meet.
struct Rules<'a> {
    choice: &'a Choice,
    policies: Policies,
    node: &'a Node,
    family: Family,
}

impl Rules<'_> {
    fn actions(&self, kind: FrontendKind) -> Actions {
        match kind {
            FrontendKind::ClusterIp => Actions::by(|source| self.internal(source)),
            _ => Actions::by(|source| self.external(source)),
        }
    }

    /// To a cluster IP: who is known not to be a Pod gets the Node's address, so that answers come back this way.
    fn internal(&self, source: Source) -> Action {
        let pod = matches!(source, Source::Pod | Source::OtherPod);
        self.forward(self.policies.internal, self.node.masquerade_all || self.node.detects(self.family) && !pod)
    }

    /// To any other address. Policy Local is for those outside: for Pods and this Node it is as if they went out to the load
    /// balancer, which would find a Node that can serve them.
    fn external(&self, source: Source) -> Action {
        match (self.policies.external, source) {
            (Scope::Cluster, _) => self.forward(Scope::Cluster, true),
            (Scope::Local, Source::Outside) => self.forward(Scope::Local, false),
            (Scope::Local, Source::Pod) => self.forward(Scope::Cluster, false),
            // An answer to these would not come back through this Node by itself.
            (Scope::Local, Source::OtherPod | Source::Node) => self.forward(Scope::Cluster, true),
        }
    }

    fn forward(&self, scope: Scope, masquerade: bool) -> Action {
        match scope {
            Scope::Cluster if !self.choice.cluster.is_empty() => Action::Forward { scope, masquerade },
            Scope::Local if !self.choice.local.is_empty() => Action::Forward { scope, masquerade },
            Scope::Local if self.choice.anywhere => Action::Drop,
            _ => Action::Reject,
        }
    }

    /// Says what fell back, of what is used.
    fn note(&self, key: &PortKey, external: bool, planned: &mut Planned) {
        let mut note = |reason| planned.notes.push(Note { about: About::Port(key.clone()), reason });
        let Policies { internal, external: policy } = self.policies;
        let local = internal == Scope::Local || external && policy == Scope::Local;
        if internal == Scope::Cluster || external {
            self.choice.cluster_notes.iter().cloned().for_each(&mut note);
        }
        if local {
            self.choice.local_notes.iter().cloned().for_each(&mut note);
        }
        if !self.choice.anywhere {
            return note(Reason::NoEndpoints { known: self.choice.all.len(), draining: self.choice.drained() });
        }
        if self.choice.local.is_empty() {
            if internal == Scope::Local {
                note(Reason::NoLocalEndpoints { traffic: Traffic::Internal });
            }
            if external && policy == Scope::Local {
                note(Reason::NoLocalEndpoints { traffic: Traffic::External });
            }
        }
    }
}

/// Whether the external traffic policy of a Service means anything.
fn is_reached_from_outside(service: &Service) -> bool {
    match service.spec.kind {
        ServiceType::NodePort | ServiceType::LoadBalancer => true,
        ServiceType::ClusterIp => !service.spec.external_ips.is_empty(),
        ServiceType::ExternalName => false,
    }
}

fn affinity(service: &Service) -> Option<u32> {
    let seconds = service.spec.session_affinity_config.client_ip.timeout_seconds;
    let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    (service.spec.session_affinity == SessionAffinity::ClientIp).then(|| seconds.unwrap_or(DEFAULT_AFFINITY))
}

fn health_check(
    key: &Arc<Key>,
    service: &Service,
    slices: &[Slice],
    families: &[Family],
    notes: &mut Vec<Note>,
) -> Option<HealthCheck> {
    let spec = &service.spec;
    let local = spec.external_traffic_policy == TrafficPolicy::Local;
    if spec.kind != ServiceType::LoadBalancer || !local || families.is_empty() {
        return None;
    }
    let Some(port) = port_number(spec.health_check_node_port) else {
        notes.push(Note { about: About::Service, reason: Reason::NoHealthCheckPort });
        return None;
    };
    let counted = |family: &Family| (*family, local_ready(slices, *family));
    Some(HealthCheck { service: key.clone(), port, local_endpoints: families.iter().map(counted).collect() })
}

/// How many addresses on this Node are ready, whatever their ports.
fn local_ready(slices: &[Slice], family: Family) -> usize {
    let usable = slices.iter().filter(|slice| slice.family == Some(family) && !slice.ports.is_empty());
    let endpoints = usable.flat_map(|slice| &slice.members).map(|member| member.endpoint);
    let addresses: BTreeSet<IpAddr> = endpoints.filter(|it| it.local && it.ready).map(|it| it.ip).collect();
    addresses.len()
}

fn port_number(number: i32) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| *number > 0)
}
