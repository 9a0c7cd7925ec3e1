//! The objects of a scenario, and the planners of the Nodes that see them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::Look;
use fairlead_api::source::Key;
use fairlead_api::view;
use fairlead_plan::{Change, LocalDetection, Node, NodePortAddresses, Planner};
use serde_json::{Value, json};

use crate::cluster::{NODES, ZONES, ip, node_ips, pod_ip, pod_ranges};

/// A mode of the reference proxy: they differ in defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Nftables,
    Iptables,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Nftables => "nftables",
            Mode::Iptables => "iptables",
        }
    }
}

pub(crate) struct World {
    objects: BTreeMap<(String, String), Value>,
    nodes: BTreeMap<&'static str, (Planner, Vec<Change>)>,
    /// Nodes whose planner sees nothing for now.
    blind: BTreeSet<&'static str>,
    /// Pods that are down, and ports Pods listen on.
    pub(crate) down: BTreeSet<String>,
    pub(crate) listening: BTreeMap<String, Vec<i64>>,
    labels: BTreeMap<&'static str, Value>,
    settings: Node,
}

impl World {
    pub(crate) fn new(options: &Value, mode: Mode) -> World {
        let settings = settings(options, mode);
        let labels = NODES
            .iter()
            .zip(ZONES)
            .map(|(node, zone)| (*node, json!({"kubernetes.io/hostname": node, "topology.kubernetes.io/zone": zone})));
        let mut world = World {
            objects: BTreeMap::new(),
            nodes: NODES.into_iter().map(|node| (node, (Planner::default(), Vec::new()))).collect(),
            blind: BTreeSet::new(),
            down: BTreeSet::new(),
            listening: BTreeMap::new(),
            labels: labels.collect(),
            settings,
        };
        for node in NODES {
            let detection = (options.text("detect-local-mode") == "NodeCIDR").then(|| {
                LocalDetection::Ranges(pod_ranges(node).map(|range| range.parse().expect("a range")).to_vec())
            });
            let change = Change::Node(Box::new(world.node(node, detection)));
            world.nodes.get_mut(node).expect("a Node").0.apply([change]);
        }
        world
    }

    /// What the proxy of a Node knows of it.
    fn node(&self, name: &str, detection: Option<LocalDetection>) -> Node {
        let [primary, primary6] = [false, true].map(|v6| node_ips(name, v6)[0].to_string());
        let addresses = [primary, primary6].map(|address| json!({"type": "InternalIP", "address": address}));
        let object = json!({
            "metadata": {"name": name, "labels": self.labels[name]},
            "spec": {"podCIDRs": pod_ranges(name)},
            "status": {"addresses": addresses},
        });
        let object: view::Node = serde_json::from_value(object).expect("a Node");
        let told = Node::of(&object);
        let mut addresses: BTreeSet<IpAddr> = [false, true].into_iter().flat_map(|v6| node_ips(name, v6)).collect();
        addresses.insert(ip("127.0.0.1"));
        addresses.insert(ip("::1"));
        Node {
            name: told.name,
            labels: told.labels,
            ips: told.ips,
            pod_ranges: told.pod_ranges,
            addresses,
            detection: detection.unwrap_or_else(|| self.settings.detection.clone()),
            ..self.settings.clone()
        }
    }

    pub(crate) fn plan(&self, node: &str) -> &fairlead_plan::Plan {
        self.nodes[node].0.plan()
    }
}

/// Options of the proxy as the scenarios write them, with the defaults of the mode.
fn settings(options: &Value, mode: Mode) -> Node {
    let given = |name: &str, default: &str| options.text_opt(name).unwrap_or(default).to_owned();
    let ranges = |text: &str| text.split(',').map(|range| range.parse().expect("a range")).collect();
    let detection = match given("detect-local-mode", "ClusterCIDR").as_str() {
        "ClusterCIDR" => LocalDetection::Ranges(ranges(&given("cluster-cidr", "10.50.0.0/16,fd50::/48"))),
        "NodeCIDR" => LocalDetection::None, // filled in Node by Node
        "BridgeInterface" => LocalDetection::Bridge(given("pod-bridge-interface", "")),
        "InterfaceNamePrefix" => LocalDetection::InterfacePrefix(given("pod-interface-name-prefix", "")),
        other => panic!("unknown mode {other}"),
    };
    let node_port_addresses = match options.text_opt("nodeport-addresses") {
        Some("primary") => NodePortAddresses::Primary,
        Some(given) => NodePortAddresses::Ranges(ranges(given)),
        None if mode == Mode::Nftables => NodePortAddresses::Primary,
        None => NodePortAddresses::Ranges(Vec::new()),
    };
    Node {
        detection,
        node_port_addresses,
        localhost_node_ports: mode == Mode::Iptables && given("iptables-localhost-nodeports", "true") == "true",
        masquerade_all: given("masquerade-all", "false") == "true",
        service_ranges: ranges("10.96.0.0/16,fd00:96::/108"),
        guard_cluster_ips: mode == Mode::Nftables,
        ..Node::default()
    }
}

// ---- what users do ----------------------------------------------------------------------------------------------------
impl World {
    /// Everything that is not a probe.
    pub(crate) fn change(&mut self, step: &Value) {
        step.list("apply").iter().for_each(|object| self.put(object.clone()));
        for patch in step.list("patch") {
            self.patch(patch[0].as_str().expect("a kind"), patch[1].as_str().expect("a name"), &patch[2]);
        }
        for gone in step.list("delete") {
            self.delete(gone[0].as_str().expect("a kind"), gone[1].as_str().expect("a name"));
        }
        self.bulk(step);
        self.churn(step.at("churn"));
        self.pods(step.at("pod"));
        self.see(step);
    }

    fn put(&mut self, object: Value) {
        let (kind, name) = (object.text("kind").to_owned(), object.at("metadata").text("name").to_owned());
        if kind == "Node" {
            return self.relabel(&name, object.at("metadata").at("labels").clone());
        }
        let key = Key::new("dp", name.as_str());
        let change = match kind.as_str() {
            "Service" => Change::Service(key, Some(Arc::new(read(&object)))),
            "EndpointSlice" => Change::Slice(key, Some(Arc::new(read(&object)))),
            other => panic!("unknown kind {other}"),
        };
        self.objects.insert((kind, name), object);
        self.tell(&change);
    }

    fn delete(&mut self, kind: &str, name: &str) {
        self.objects.remove(&(kind.to_owned(), name.to_owned()));
        let key = Key::new("dp", name);
        self.tell(&if kind == "Service" { Change::Service(key, None) } else { Change::Slice(key, None) });
    }

    fn patch(&mut self, kind: &str, name: &str, patch: &Value) {
        if kind == "Node" {
            let mut labels = self.labels[name].clone();
            merge(&mut labels, patch.at("metadata").at("labels"));
            return self.relabel(name, labels);
        }
        let mut object = self.objects[&(kind.to_owned(), name.to_owned())].clone();
        merge(&mut object, patch);
        self.put(object);
    }

    fn relabel(&mut self, name: &str, labels: Value) {
        let node = NODES.into_iter().find(|node| *node == name).expect("a Node");
        self.labels.insert(node, labels);
        let detection = Some(self.plan(node).node().detection.clone());
        let change = Change::Node(Box::new(self.node(node, detection)));
        self.tell_node(node, change);
    }

    /// Many Services with one slice each, or their end.
    fn bulk(&mut self, step: &Value) {
        let bulk = step.at("bulk");
        let (pods, per) = (bulk.texts("endpoints"), bulk.int_opt("per").unwrap_or(1) as usize);
        for at in 0..bulk.int("services") as usize {
            let name = format!("{}-{:05}", bulk.text("name"), at + 1);
            let IpAddr::V4(net) = ip(bulk.text("net")) else { panic!("an IPv4 net") };
            let vip = std::net::Ipv4Addr::from(u32::from(net) + at as u32 + 1).to_string();
            let port = bulk.int_opt("port").unwrap_or(80);
            let spec = json!({"type": "ClusterIP", "clusterIP": vip, "ports": [{"name": "a", "port": port}]});
            self.put(json!({"kind": "Service", "metadata": {"name": name}, "spec": spec}));
            let members: Vec<&str> = (0..per).map(|place| pods[(at + place) % pods.len()]).collect();
            self.put(json!({
                "kind": "EndpointSlice",
                "metadata": {"name": format!("{name}-1"), "labels": {"kubernetes.io/service-name": name}},
                "addressType": "IPv4", "endpoints": endpoints(&members, false), "ports": [{"name": "a", "port": 8080}],
            }));
        }
        if let Some(prefix) = step.text_opt("bulk_delete") {
            let gone: Vec<_> = self.objects.keys().filter(|(_, name)| name.starts_with(prefix)).cloned().collect();
            gone.iter().for_each(|(kind, name)| self.delete(kind, name));
        }
    }

    /// One slice, replaced again and again.
    fn churn(&mut self, churn: &Value) {
        for at in 0..churn.int("updates") as usize {
            let sets = churn.list("sets");
            let pods: Vec<&str> =
                sets[at % sets.len()].as_array().expect("Pods").iter().flat_map(Value::as_str).collect();
            let mut slice = self.objects[&("EndpointSlice".to_owned(), churn.text("slice").to_owned())].clone();
            let v6 = slice.text("addressType") == "IPv6";
            slice.set("endpoints", endpoints(&pods, v6));
            self.put(slice);
        }
    }

    fn pods(&mut self, step: &Value) {
        let pod = step.text("pod").to_owned();
        match step.text("op") {
            "down" => drop(self.down.insert(pod)),
            "up" => drop(self.down.remove(&pod)),
            "close" => drop(self.listening.insert(pod, Vec::new())),
            "listen" => {
                let ports = step.list("ports").iter().flat_map(Value::as_i64).collect();
                self.listening.insert(pod, ports);
            }
            _ => {}
        }
    }

    /// Proxies that stop seeing what changes, or see it again.
    fn see(&mut self, step: &Value) {
        let op = step.at("proxy").text("op");
        let named: Vec<&str> = step.at("proxy").texts("nodes");
        let meant: Vec<_> = NODES.into_iter().filter(|node| named.is_empty() || named.contains(node)).collect();
        if matches!(op, "stop" | "kill") || step.text("api") == "pause" {
            self.blind.extend(&meant);
        }
        if matches!(op, "start" | "restart") || step.text("api") == "resume" {
            for node in meant {
                self.blind.remove(node);
                let (planner, waiting) = self.nodes.get_mut(node).expect("a Node");
                planner.apply(waiting.drain(..));
            }
        }
    }

    fn tell(&mut self, change: &Change) {
        NODES.into_iter().for_each(|node| self.tell_node(node, change.clone()));
    }

    fn tell_node(&mut self, node: &'static str, change: Change) {
        let (planner, waiting) = self.nodes.get_mut(node).expect("a Node");
        if self.blind.contains(node) {
            waiting.push(change);
        } else {
            planner.apply([change]);
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).expect("a readable object")
}

fn endpoints(pods: &[&str], v6: bool) -> Vec<Value> {
    let endpoint = |pod: &&str| json!({"addresses": [pod_ip(pod, v6)], "nodeName": pod.split('p').next()});
    pods.iter().map(endpoint).collect()
}

/// A merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(patch), true) = (patch, target.is_object()) else {
        *target = patch.clone();
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            target.unset(name);
        } else {
            merge(target.as_object_mut().expect("an object").entry(name.clone()).or_insert(json!({})), value);
        }
    }
}
