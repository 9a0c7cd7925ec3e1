//! Small clusters for tests: objects as users write them, over ones that lack nothing, and what comes out as short text.

use std::collections::BTreeMap;

use fairlead_api::value::{Value, json};
use fairlead_api::view::{EndpointAddress, EndpointSlice, EndpointSubset, Endpoints, Node, Pod, Service};

use crate::hints::{Hinted, Zones};
use crate::slices::{self, Outcome};
use crate::{Changes, legacy};

/// A Service `web` with these fields over the usual ones.
pub(crate) fn service(fields: &str) -> Service {
    let usual = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "web-uid", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"],
            "ports": [{"port": 80, "targetPort": 80}]},
    });
    over(usual, fields)
}

/// A ready Pod on the Node `n1` with these fields over the usual ones.
pub(crate) fn pod(name: &str, ip: &str, fields: &str) -> Pod {
    let usual = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("{name}-uid"), "labels": {"app": "web"}},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": "True"}]},
    });
    over(usual, fields)
}

/// A ready Node with four CPUs in a zone.
pub(crate) fn node(name: &str, zone: &str, fields: &str) -> Node {
    let usual = json!({
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    over(usual, fields)
}

/// An object of YAML over another.
pub(crate) fn over<T: serde::de::DeserializeOwned>(mut usual: Value, fields: &str) -> T {
    if !fields.is_empty() {
        let fields: Value = serde_saphyr::from_str(fields).expect("YAML");
        usual = fairlead_api::patch::merge(&usual, fields.to_string().as_bytes()).expect("an object").value;
    }
    serde_json::from_str(&usual.to_string()).expect("can be viewed")
}

/// What a Service, its Pods and the Nodes are, and the slices and Endpoints written so far.
pub(crate) struct Cluster {
    pub(crate) service: Service,
    pub(crate) pods: Vec<Pod>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) slices: Vec<EndpointSlice>,
    pub(crate) endpoints: Option<Endpoints>,
    pub(crate) hinted: Hinted,
    pub(crate) max: usize,
    names: usize,
}

impl Cluster {
    /// With the Node `n1` in zone `z1`.
    pub(crate) fn new(service: Service, pods: Vec<Pod>) -> Cluster {
        let nodes = BTreeMap::from([("n1".to_owned(), node("n1", "z1", ""))]);
        Cluster {
            service,
            pods,
            nodes,
            slices: Vec::new(),
            endpoints: None,
            hinted: Hinted::default(),
            max: 100,
            names: 0,
        }
    }

    /// What should be written to slices.
    pub(crate) fn plan(&self) -> Outcome {
        slices::reconcile(&slices::Input {
            service: &self.service,
            pods: &self.pods.iter().collect::<Vec<_>>(),
            nodes: &|name| self.nodes.get(name),
            slices: &self.slices.iter().collect::<Vec<_>>(),
            max_endpoints: self.max,
            trigger_time: None,
            zones: &Zones::of(self.nodes.values()),
            hinted: &self.hinted,
        })
    }

    /// Writes slices, and returns what was written.
    pub(crate) fn sync(&mut self) -> Changes<EndpointSlice> {
        let outcome = self.plan();
        self.hinted = outcome.hinted;
        self.write(&outcome.changes);
        outcome.changes
    }

    pub(crate) fn write(&mut self, changes: &Changes<EndpointSlice>) {
        self.slices.retain(|slice| !changes.delete.contains(&slice.metadata.name));
        for slice in &changes.update {
            let old = self.slices.iter_mut().find(|old| old.metadata.name == slice.metadata.name);
            *old.expect("an update is of a slice that is there") = slice.clone();
        }
        for slice in &changes.create {
            let mut slice = slice.clone();
            slice.metadata.name = format!("{}{:05}", slice.metadata.generate_name, self.names);
            self.names += 1;
            self.slices.push(slice);
        }
    }

    /// Writes Endpoints, and returns what was written.
    pub(crate) fn sync_endpoints(&mut self) -> Changes<Endpoints> {
        let changes = legacy::reconcile(&legacy::Input {
            service: &self.service,
            pods: &self.pods.iter().collect::<Vec<_>>(),
            existing: self.endpoints.as_ref(),
            trigger_time: None,
        });
        self.endpoints = changes.create.iter().chain(&changes.update).next().cloned().or(self.endpoints.take());
        changes
    }
}

/// Slices as text, one a line: `IPv4 http:8080/TCP: a=10.1.0.1 ready serving @n1 z1`.
pub(crate) fn text(slices: &[EndpointSlice]) -> Vec<String> {
    let mut lines: Vec<_> = slices.iter().map(slice_text).collect();
    lines.sort();
    lines
}

fn slice_text(slice: &EndpointSlice) -> String {
    let mut words = vec![slice.address_type.as_str().to_owned()];
    for port in &slice.ports {
        let name = port.name.as_deref().map(|name| format!("{name}:")).unwrap_or_default();
        let app = port.app_protocol.as_ref().map(|app| format!("/{app}")).unwrap_or_default();
        words.push(format!("{name}{}/{}{app}", port.port.unwrap_or_default(), port.protocol.unwrap_or_default()));
    }
    for endpoint in &slice.endpoints {
        let name = endpoint.target_ref.as_ref().map_or("", |target| &target.name);
        words.push(format!("| {name}={}", endpoint.addresses.join(",")));
        words.extend(endpoint.hostname.iter().map(|hostname| format!("\"{hostname}\"")));
        let said = endpoint.conditions;
        let said = [(said.ready, "ready"), (said.serving, "serving"), (said.terminating, "terminating")];
        words.extend(said.into_iter().filter(|(said, _)| *said == Some(true)).map(|(_, word)| word.to_owned()));
        words.extend(endpoint.node_name.iter().map(|node| format!("@{node}")));
        words.extend(endpoint.zone.clone());
        if let Some(hints) = &endpoint.hints {
            words.extend(hints.for_zones.iter().chain(&hints.for_nodes).map(|hint| format!("->{}", hint.name)));
        }
    }
    words.join(" ")
}

/// Subsets as text, one a line: `http:80/TCP: a=10.1.0.1 | not b=10.1.0.2`.
pub(crate) fn subset_text(subsets: &[EndpointSubset]) -> Vec<String> {
    let address = |address: &EndpointAddress| {
        let name = address.target_ref.as_ref().map_or("", |target| &target.name);
        let hostname = Some(format!("({})", address.hostname)).filter(|_| !address.hostname.is_empty());
        let node = address.node_name.as_ref().map(|node| format!("@{node}")).unwrap_or_default();
        format!("{name}={}{node}{}", address.ip, hostname.unwrap_or_default())
    };
    let line = |subset: &EndpointSubset| {
        let mut ports: Vec<_> =
            subset.ports.iter().map(|port| format!("{}:{}/{}", port.name, port.port, port.protocol)).collect();
        ports.sort();
        let ready = subset.addresses.iter().map(address);
        let not = subset.not_ready_addresses.iter().map(|not| format!("not {}", address(not)));
        format!("{} {}", ports.join(","), ready.chain(not).collect::<Vec<_>>().join(" ")).trim().to_owned()
    };
    let mut lines: Vec<_> = subsets.iter().map(line).collect();
    lines.sort();
    lines
}
