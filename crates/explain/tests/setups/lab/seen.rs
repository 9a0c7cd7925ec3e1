//! What controllers make of a lab's objects, and what is seen of it on machines.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::value::Value;
use fairlead_api::view::{EndpointSlice, Node, Protocol, Service, to_json};
use fairlead_endpoints::hints::{Hinted, Zones};
use fairlead_endpoints::slices::{self, Input, MAX_ENDPOINTS};
use fairlead_explain::{Balancer, Decided, Dns, DnsReply, Evidence, Forwarding, From, Objects, Pod, Rules};
use fairlead_plan::{Change as PlanChange, Ingress, LocalDetection, Packet, Planner, Scope, decide};

use super::{Lab, component};

impl Lab {
    /// What the controller would write.
    pub(super) fn slices(&self) -> Vec<Value> {
        let pods: Vec<(Key, fairlead_api::view::Pod)> = self.all("Pod");
        let nodes: BTreeMap<String, Node> =
            self.all::<Node>("Node").into_iter().map(|(key, node)| (key.name.into(), node)).collect();
        let mut made = Vec::new();
        for (key, service) in self.all::<Service>("Service") {
            let selected: Vec<_> = pods
                .iter()
                .filter(|(pod, view)| pod.namespace == key.namespace && service.selects(&view.metadata.labels))
                .map(|(_, pod)| pod)
                .collect();
            let input = Input {
                service: &service,
                pods: &selected,
                nodes: &|name| nodes.get(name),
                slices: &[],
                max_endpoints: MAX_ENDPOINTS,
                trigger_time: None,
                zones: &Zones::of(nodes.values()),
                hinted: &Hinted::default(),
            };
            for (at, mut slice) in slices::reconcile(&input).changes.create.into_iter().enumerate() {
                slice.metadata.name = format!("{}-{at}", key.name);
                made.push(Value::from(to_json(&slice)));
            }
        }
        made
    }

    fn client(&self) -> (String, IpAddr, Ingress) {
        let pod = |key: &Key| self.all::<Pod>("Pod").into_iter().find(|(other, _)| other == key).map(|(_, pod)| pod);
        let at = |text: &str| text.parse().expect("an address");
        let known = match &self.question.from {
            From::Pod(key) => pod(key).and_then(|pod| {
                let address = pod.view.addresses().next().and_then(ip::parse)?;
                Some((pod.view.spec.node_name.clone(), address, Ingress::Interface("fl1".to_owned())))
            }),
            From::Outside(address) => {
                Some(("n1".to_owned(), address.unwrap_or(at("198.51.100.9")), Ingress::Interface("eth0".to_owned())))
            }
            From::Node(_) | From::Cluster => None,
        };
        known.unwrap_or_else(|| ("n1".to_owned(), at("192.0.2.1"), Ingress::Output))
    }

    /// What is seen when all is looked at.
    pub(super) fn evidence(&self, objects: &Objects) -> Evidence {
        let mut evidence = Evidence {
            sockets: self.sockets.clone(),
            proxy: Some(component("the proxy of Node n1")),
            controller: Some(component("the EndpointSlice controller")),
            balancer: Some(Balancer {
                alive: true,
                classes: vec![String::new(), "fairlead.dev/lb".to_owned()],
                pools: Some(vec!["192.0.2.64/28".to_owned()]),
            }),
            forwarding: Some(Forwarding { v4: Some(true), v6: Some(true) }),
            foreign: Some(Vec::new()),
            ..Evidence::default()
        };
        let Some(service) = objects.service(&self.question.service) else { return evidence };
        evidence.dns = Some(self.dns(service, objects));
        let planner = self.planner(objects);
        let plan = planner.plan();
        let (node, src, from) = self.client();
        let decided = |(dst, port, protocol): (IpAddr, u16, Protocol)| {
            let packet = Packet { src, dst, port, protocol, from: from.clone() };
            Decided { node: node.clone(), decision: decide(plan, &packet), packet }
        };
        evidence.decisions.extend(self.destination(service).map(decided));
        evidence.others.extend(self.further(service).into_iter().map(decided));
        let own = plan.frontends().filter(|frontend| *frontend.port.service == self.question.service);
        let frontends = own.map(|frontend| {
            let pools = [Scope::Cluster, Scope::Local].map(|scope| plan.pool_of(frontend, scope));
            let endpoints = pools.into_iter().flatten().flat_map(|pool| pool.endpoints.iter());
            (frontend.key, Some(endpoints.map(|endpoint| SocketAddr::new(endpoint.ip, endpoint.port)).collect()))
        });
        evidence.rules = Some(Rules { mode: "nftables".to_owned(), frontends: frontends.collect() });
        evidence
    }

    fn planner(&self, objects: &Objects) -> Planner {
        let (name, ..) = self.client();
        let node = objects.node(&name).map(|node| fairlead_plan::Node::of(node)).unwrap_or_default();
        let pods = ["10.244.0.0/16", "fd00:244::/48"].map(|range| range.parse().expect("a range"));
        let mut planner = Planner::new(fairlead_plan::Node {
            name,
            detection: LocalDetection::Ranges(pods.to_vec()),
            guard_cluster_ips: true,
            service_ranges: vec!["10.96.0.0/16".parse().expect("a range")],
            topology_keys: true,
            ..node
        });
        let services = objects.services().map(|(key, service)| PlanChange::Service(key.clone(), Some(service.clone())));
        let slices = objects.slices().map(|(key, slice)| PlanChange::Slice(key.clone(), Some(slice.clone())));
        let labels = objects
            .nodes()
            .map(|node| PlanChange::Labels(node.metadata.name.clone(), Some(node.metadata.labels.clone())));
        planner.apply(services.chain(slices).chain(labels).collect::<Vec<_>>());
        planner
    }

    /// Where the client's packet goes.
    fn destination(&self, service: &Service) -> Option<(IpAddr, u16, Protocol)> {
        let spec = &service.spec;
        let asked = self.question.port.as_ref();
        let fits = |text: &String, port: &&fairlead_api::view::ServicePort| {
            port.name == *text || port.port.to_string() == *text || port.node_port.to_string() == *text
        };
        let port = spec.ports.iter().find(|port| asked.is_none_or(|text| fits(text, port)))?;
        let number = |number: i32| u16::try_from(number).ok();
        if !matches!(self.question.from, From::Outside(_)) {
            return Some((ip::parse(&spec.cluster_ip)?, number(port.port)?, port.protocol));
        }
        let ingress = service.status.load_balancer.ingress.iter().map(|place| &place.ip);
        let address = ingress.chain(&spec.external_ips).find_map(|text| ip::parse(text));
        match address {
            Some(address) => Some((address, number(port.port)?, port.protocol)),
            None => Some(("192.0.2.1".parse().ok()?, number(port.node_port)?, port.protocol)),
        }
    }

    /// The addresses outside that a client inside does not use.
    fn further(&self, service: &Service) -> Vec<(IpAddr, u16, Protocol)> {
        let inside = !matches!(self.question.from, From::Outside(_));
        let addresses = service.spec.external_ips.iter().filter(|_| inside).filter_map(|text| ip::parse(text));
        let ports =
            || service.spec.ports.iter().filter_map(|port| Some((u16::try_from(port.port).ok()?, port.protocol)));
        addresses.flat_map(|ip| ports().map(move |(port, protocol)| (ip, port, protocol))).collect()
    }

    fn dns(&self, service: &Service, objects: &Objects) -> Dns {
        let Key { namespace, name } = &self.question.service;
        let whole = format!("{name}.{namespace}.svc.cluster.local.");
        let slices: Vec<&Arc<EndpointSlice>> = objects.slices_of(&self.question.service).collect();
        let reply = if service.spec.external_name.is_empty() {
            let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
            let ready = endpoints.filter(|endpoint| endpoint.conditions.ready != Some(false));
            let addresses: Vec<&String> = match service.is_headless() {
                true => ready.flat_map(|endpoint| &endpoint.addresses).collect(),
                false => service.spec.cluster_ips.iter().collect(),
            };
            let addresses: Vec<IpAddr> = addresses.into_iter().filter_map(|text| ip::parse(text)).collect();
            if addresses.is_empty() { DnsReply::NxDomain } else { DnsReply::Addresses(addresses) }
        } else {
            DnsReply::Alias(service.spec.external_name.clone())
        };
        let server = Some(SocketAddr::new("10.96.0.10".parse().expect("an address"), 53));
        Dns { name: self.question.host.clone().unwrap_or_else(|| whole.clone()), server, tried: vec![(whole, reply)] }
    }
}
