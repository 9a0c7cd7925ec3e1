//! Services for the Node of the lab, and the mode that serves them.

use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{
    AddressType, Endpoint, EndpointPort, EndpointSlice, Ingress, Protocol, Service, ServicePort, ServiceType,
    SessionAffinity,
};
use fairlead_kernel::link::Links;
use fairlead_plan::{Change, LocalDetection, Node, Planner};
use fairlead_program::ipvs::LINK;
use fairlead_proxy::{Dataplane, Mode, Settings, dataplane};

use crate::lab::{Lab, NODE, PODS, ip};

/// The virtual addresses checks use.
pub(crate) const VIP: &str = "10.96.0.10";
pub(crate) const VIP6: &str = "fd00:96::10";

/// A mode on the Node of the lab, with what it serves.
pub(crate) struct Cluster<'a> {
    lab: &'a Lab,
    pub(crate) planner: Planner,
    dataplane: Box<dyn Dataplane>,
}

/// What a Service is like, beside its addresses and endpoints.
pub(crate) fn service(change: impl FnOnce(&mut Service)) -> Service {
    let mut service = Service::default();
    service.spec.cluster_ips = vec![VIP.to_owned()];
    service.spec.ports = vec![ServicePort { port: 80, ..ServicePort::default() }];
    change(&mut service);
    service.spec.cluster_ip = service.spec.cluster_ips[0].clone();
    service
}

/// With this protocol instead of TCP.
pub(crate) fn speaks(service: &mut Service, protocol: Protocol) {
    service.spec.ports[0].protocol = protocol;
}

/// With a node port, an external IP and one of a load balancer.
pub(crate) fn exposed(service: &mut Service) {
    service.spec.kind = ServiceType::LoadBalancer;
    service.spec.ports[0].node_port = 30080;
    service.spec.external_ips = vec!["203.0.113.7".to_owned()];
    let ingress = Ingress { ip: "203.0.113.8".to_owned(), ..Ingress::default() };
    service.status.load_balancer.ingress = vec![ingress];
}

pub(crate) fn sticky(service: &mut Service, seconds: i32) {
    service.spec.session_affinity = SessionAffinity::ClientIp;
    service.spec.session_affinity_config.client_ip.timeout_seconds = Some(seconds);
}

/// A slice with some Pods, each with its weight if the text has one: `p1 p2=3`.
fn slices(pods: &str, protocol: Protocol, v6: bool) -> Vec<(String, EndpointSlice)> {
    let one = |word: &str| {
        let (name, weight) = word.split_once('=').unwrap_or((word, ""));
        let (_, v4, address6) = PODS.into_iter().find(|(pod, ..)| *pod == name).unwrap();
        let node = if name == "p3" { "n2" } else { "n1" };
        let endpoint = Endpoint {
            addresses: vec![if v6 { address6 } else { v4 }.to_owned()],
            node_name: Some(node.to_owned()),
            ..Endpoint::default()
        };
        let mut slice = EndpointSlice { endpoints: vec![endpoint], ..EndpointSlice::default() };
        slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), "web".to_owned());
        if !weight.is_empty() {
            slice.metadata.annotations.insert("fairlead.dev/weight".to_owned(), weight.to_owned());
        }
        slice.address_type = if v6 { AddressType::V6 } else { AddressType::V4 };
        slice.ports = vec![EndpointPort { port: Some(8080), protocol: Some(protocol), ..EndpointPort::default() }];
        (format!("{name}-{}", if v6 { 6 } else { 4 }), slice)
    };
    pods.split_whitespace().map(one).collect()
}

fn node(lab: &Lab) -> Node {
    let addresses = lab.node.run(|| {
        let mut links = Links::open().unwrap();
        let ours = links.find(LINK).unwrap().map(|link| link.index);
        let all = links.all_addresses().unwrap().into_iter().filter(|(link, _)| Some(*link) != ours);
        all.map(|(_, prefix)| prefix.address).collect()
    });
    Node {
        name: "n1".to_owned(),
        ips: NODE.map(ip).into(),
        addresses: addresses.unwrap(),
        pod_ranges: ["10.50.1.0/24", "fd50:0:0:1::/64"].map(|range| range.parse().unwrap()).into(),
        detection: LocalDetection::Ranges(["10.50.0.0/16", "fd50::/32"].map(|range| range.parse().unwrap()).into()),
        ..Node::default()
    }
}

pub(crate) fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    // Everything is looked at whenever it is asked for.
    let mut settings = Settings { sync_period: std::time::Duration::ZERO, ..Settings::default() };
    change(&mut settings);
    settings
}

impl<'a> Cluster<'a> {
    /// Serves one Service, `web`, with some Pods.
    pub(crate) fn new(lab: &'a Lab, mode: Mode, service: Service, pods: &str) -> Cluster<'a> {
        Cluster::with(lab, mode, &settings(|_| {}), service, pods)
    }

    pub(crate) fn ipvs(lab: &'a Lab, service: Service, pods: &str) -> Cluster<'a> {
        Cluster::new(lab, Mode::Ipvs, service, pods)
    }

    pub(crate) fn with(lab: &'a Lab, mode: Mode, settings: &Settings, service: Service, pods: &str) -> Cluster<'a> {
        let dataplane = lab.node.run(|| dataplane(mode, settings).unwrap()).unwrap();
        let mut cluster = Cluster { lab, planner: Planner::new(node(lab)), dataplane };
        cluster.planner.apply(cluster.changes(Some(service), pods));
        cluster.load();
        cluster
    }

    fn changes(&self, service: Option<Service>, pods: &str) -> Vec<Change> {
        let name = Key::new("default", "web");
        let mut changes = Vec::new();
        let spec = service.as_ref().map(|service| service.spec.clone());
        if let Some(service) = service {
            changes.push(Change::Service(name, Some(Arc::new(service))));
        }
        let frontend = self.planner.plan().frontends().next().map(|frontend| frontend.key.protocol());
        let protocol = spec.map(|spec| spec.ports[0].protocol).or(frontend).unwrap_or(Protocol::Tcp);
        for v6 in [false, true] {
            let mut slices = slices(pods, protocol, v6);
            for (name, ..) in PODS {
                let key = format!("{name}-{}", if v6 { 6 } else { 4 });
                let slice = slices.iter().position(|(other, _)| *other == key).map(|at| Arc::new(slices.remove(at).1));
                changes.push(Change::Slice(Key::new("default", key), slice));
            }
        }
        changes
    }

    /// Other Pods serve from now on.
    pub(crate) fn pods(&mut self, pods: &str) {
        let changes = self.changes(None, pods);
        self.apply(changes);
    }

    /// The Service is another.
    pub(crate) fn service(&mut self, service: Option<Service>) {
        self.apply(vec![Change::Service(Key::new("default", "web"), service.map(Arc::new))]);
    }

    fn apply(&mut self, changes: Vec<Change>) {
        let change = self.planner.apply(changes);
        self.dataplane.apply(self.planner.plan(), &change).unwrap();
    }

    pub(crate) fn load(&mut self) {
        let (dataplane, plan) = (&mut self.dataplane, self.planner.plan());
        // Kernel parameters are those of the namespace of the thread.
        self.lab.node.run(|| dataplane.load(plan)).unwrap().unwrap();
    }

    /// What is said to be wrong, which is then put right.
    pub(crate) fn repair(&mut self) -> Option<String> {
        let wrong = self.dataplane.drift(self.planner.plan()).unwrap();
        if wrong.is_some() {
            self.load();
        }
        wrong
    }

    pub(crate) fn counters(&mut self) -> fairlead_proxy::Counters {
        self.dataplane.counters(self.planner.plan()).unwrap()
    }

    /// The program ends, and another run of it takes over.
    pub(crate) fn restart(self, mode: Mode) -> Cluster<'a> {
        let Cluster { lab, planner, dataplane: old } = self;
        drop(old);
        let dataplane = lab.node.run(|| dataplane(mode, &settings(|_| {})).unwrap()).unwrap();
        let mut cluster = Cluster { lab, planner, dataplane };
        cluster.load();
        cluster
    }
}
