//! A small world: objects kept by the API's own rules, and the controllers around it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use fairlead_api::alloc::{self, Ledger, NodePorts};
use fairlead_api::value::{Value, json};
use fairlead_api::view::{self, EndpointSlice, Endpoints, Node, Pod, Service, View};
use fairlead_api::{Kind, Look, Settings, decode, kinds, patch};
use fairlead_endpoints::hints::{Hinted, Zones};
use fairlead_endpoints::{Changes, Notice, TriggerTimes, legacy, mirror, slices};
use serde::Serialize;

/// The namespace scenarios are recorded in: kept as they write it, so that nothing need be replaced.
pub(crate) const NAMESPACE: &str = "${NS}";

/// Kind, namespace, name.
pub(crate) type Key = (&'static str, String, String);

#[derive(Default)]
pub(crate) struct World {
    pub(crate) objects: BTreeMap<Key, Value>,
    pub(crate) events: BTreeSet<String>,
    /// Pods that ever had an address.
    pub(crate) pod_ips: HashSet<(String, String)>,
    /// Slices at the last checkpoint that looked at them.
    pub(crate) seen_slices: BTreeSet<String>,
    /// When Services were created.
    pub(crate) created: BTreeMap<String, String>,
    captured: BTreeMap<String, String>,
    births: BTreeMap<Key, usize>,
    versions: u64,
    ips: HashSet<IpAddr>,
    slice_times: BTreeMap<(String, String), TriggerTimes>,
    endpoints_times: BTreeMap<(String, String), TriggerTimes>,
    hinted: BTreeMap<(String, String), Hinted>,
}

const KINDS: [&Kind; 6] =
    [&kinds::NAMESPACE, &kinds::NODE, &kinds::POD, &kinds::SERVICE, &kinds::ENDPOINTS, &kinds::ENDPOINT_SLICE];

fn settings() -> Settings {
    let range = |text: &str| text.parse().expect("a range");
    Settings {
        service_ranges: vec![range("10.0.0.0/16"), range("fd00:10::/108")],
        node_ports: 30000..=32767,
        service_topology: false,
    }
}

fn kind(name: &str) -> &'static Kind {
    KINDS.into_iter().find(|kind| kind.kind == name).expect("a kind of this world")
}

// ---- what users do ----------------------------------------------------------------------------------------------------
impl World {
    pub(crate) fn step(&mut self, step: &Value) {
        let step = &self.fill_in(step);
        match step.text("op") {
            "create" => self.create(step.at("object").clone(), true),
            "patch" => self.patch(step),
            "delete" => self.delete(step),
            "pods" => self.pods(step),
            "deletePods" => self.delete_pods(step),
            "capture" => self.capture(step),
            "sleep" => {}
            other => panic!("unknown step {other}"),
        }
    }

    fn fill_in(&self, step: &Value) -> Value {
        let mut text = step.to_string();
        for (name, value) in &self.captured {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        serde_json::from_str(&text).expect("still JSON")
    }

    fn create(&mut self, mut object: Value, by_user: bool) {
        let of = kind(object.text("kind"));
        let namespace = if !of.namespaced {
            String::new()
        } else {
            Some(object.at("metadata").text("namespace")).filter(|ns| !ns.is_empty()).unwrap_or(NAMESPACE).to_owned()
        };
        self.versions += 1;
        let metadata = object.map_mut("metadata");
        if metadata.get("name").is_none() {
            let prefix = metadata["generateName"].as_str().expect("a name or its beginning");
            let name = format!("{}{:05}", &prefix[..prefix.len().min(58)], self.versions);
            metadata.insert("name".to_owned(), name.into());
        }
        let name = metadata["name"].as_str().expect("a name").to_owned();
        let key = (of.kind, namespace.clone(), name.clone());
        assert!(!self.objects.contains_key(&key), "{key:?} is there already");
        let births = self.births.entry(key.clone()).or_default();
        *births += usize::from(by_user);
        let again = if *births > 1 { format!("#{births}") } else { String::new() };
        metadata.insert("uid".to_owned(), format!("<uid:{}/{name}{again}>", of.kind).into());
        metadata.insert("namespace".to_owned(), namespace.into());
        let time =
            format!("2026-02-01T{:02}:{:02}:{:02}Z", self.versions / 3600, self.versions / 60 % 60, self.versions % 60);
        metadata.insert("creationTimestamp".to_owned(), time.clone().into());
        object = self.decoded(of, object);
        let settings = settings();
        (of.rules.default)(&mut object, &settings);
        if of.kind == "Service" {
            self.created.insert(time, name);
            self.allocate(&mut object, None);
        }
        (of.rules.prepare_create)(&mut object, &settings);
        self.put(key, object);
    }

    fn decoded(&self, of: &Kind, object: Value) -> Value {
        decode::decode(of.schema, object).expect("fits its type").value
    }

    fn allocate(&mut self, service: &mut Value, old: Option<&Value>) {
        let (settings, mut next) = (settings(), self.versions);
        let ips = self.ips.clone();
        let taken = |ip| ips.contains(&ip);
        let mut random = |below: u64| {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (next >> 33) % below
        };
        let mut ledger = Ledger::new(&settings.service_ranges, &taken, &mut random, NodePorts::new(30000..=32767));
        match old {
            Some(old) => alloc::update(service, old, &mut ledger, &settings).expect("addresses are free"),
            None => alloc::create(service, &mut ledger, &settings).expect("addresses are free"),
        }
        self.ips.extend(ledger.taken_ips);
    }

    fn put(&mut self, key: Key, mut object: Value) {
        self.versions += 1;
        object.map_mut("metadata").insert("resourceVersion".to_owned(), self.versions.to_string().into());
        if key.0 == "Pod" {
            let pod: Pod = read(&object);
            let name = pod.metadata.name.clone();
            self.pod_ips.extend(pod.addresses().map(|ip| (ip.to_owned(), name.clone())));
        }
        self.objects.insert(key, object);
    }

    fn target(&self, target: &Value) -> Key {
        let of = kind(target.text("kind"));
        let namespace = match target.text("namespace") {
            _ if !of.namespaced => "",
            "" => NAMESPACE,
            given => given,
        };
        if let Some(name) = target.text_opt("name") {
            return (of.kind, namespace.to_owned(), name.to_owned());
        }
        let selector = fairlead_api::selector::LabelSelector::parse(target.text("labelSelector")).expect("a selector");
        let here = |(key, object): &(&Key, &Value)| key.0 == of.kind && key.1 == namespace && selector.selects(object);
        let found: Vec<_> = self.objects.iter().filter(here).map(|(key, _)| key.clone()).collect();
        assert_eq!(found.len(), 1, "one object is meant");
        found[0].clone()
    }

    fn patch(&mut self, step: &Value) {
        let key = self.target(step.at("target"));
        let of = kind(key.0);
        let old = self.objects.get(&key).unwrap_or_else(|| panic!("{key:?} is not there")).clone();
        let body = step.at("patch").to_string().into_bytes();
        let patched = if step.text("type") == "json" { patch::json(&old, &body) } else { patch::merge(&old, &body) };
        let object = self.decoded(of, patched.expect("the patch fits").value);
        self.replace(key, of, object, &old, step.text("subresource") == "status");
    }

    fn replace(&mut self, key: Key, of: &Kind, mut object: Value, old: &Value, status: bool) {
        let settings = settings();
        (of.rules.default)(&mut object, &settings);
        if status {
            (of.rules.prepare_status)(&mut object, old, &settings);
        } else {
            if of.kind == "Service" {
                self.allocate(&mut object, Some(old));
            }
            (of.rules.prepare_update)(&mut object, old, &settings);
        }
        let metadata = object.at("metadata");
        let held = !metadata.list("finalizers").is_empty() || metadata.int("deletionGracePeriodSeconds") > 0;
        if metadata.get("deletionTimestamp").is_some() && !held {
            self.remove(&key);
            return;
        }
        self.put(key, object);
    }

    fn delete(&mut self, step: &Value) {
        let key = self.target(step.at("target"));
        let mut object = self.objects.get(&key).unwrap_or_else(|| panic!("{key:?} is not there")).clone();
        let now = step.at("options").int_opt("gracePeriodSeconds") == Some(0);
        let graceful = key.0 == "Pod" && !now && !object.at("spec").text("nodeName").is_empty();
        if graceful || !object.at("metadata").list("finalizers").is_empty() {
            let metadata = object.map_mut("metadata");
            metadata.insert("deletionTimestamp".to_owned(), "2026-03-01T00:00:00Z".into());
            metadata.insert("deletionGracePeriodSeconds".to_owned(), if graceful { 30 } else { 0 }.into());
            self.put(key, object);
            return;
        }
        self.remove(&key);
    }

    /// Removes an object; the Endpoints of a Service go with it.
    fn remove(&mut self, key: &Key) {
        self.objects.remove(key);
        if key.0 == "Service" {
            self.objects.remove(&("Endpoints", key.1.clone(), key.2.clone()));
        }
    }

    fn pods(&mut self, step: &Value) {
        let first = step.int("first");
        for at in first..first + step.int("count") {
            let name = format!("{}{at}", step.text("prefix"));
            let node = match step.at("node") {
                Value::Array(nodes) => nodes[usize::try_from(at).expect("small") % nodes.len()].clone(),
                node => node.clone(),
            };
            let ports = step.get("containerPorts").cloned().unwrap_or_else(|| json!([]));
            let spec = json!({"containers": [{"name": "c", "image": "none", "ports": ports}], "nodeName": node});
            let metadata = json!({"name": name, "labels": step.at("labels")});
            self.create(json!({"kind": "Pod", "metadata": metadata, "spec": spec}), true);
            let ips: Vec<_> = step.texts("ipBase").into_iter().map(|base| add(base, at)).collect();
            let ready = if step.flag_opt("ready").unwrap_or(true) { "True" } else { "False" };
            let status = json!({"phase": "Running", "podIP": ips[0],
                "podIPs": ips.iter().map(|ip| json!({"ip": ip})).collect::<Vec<_>>(),
                "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
            let target = json!({"kind": "Pod", "name": name});
            self.patch(&json!({"target": target, "subresource": "status", "patch": {"status": status}}));
            // As in the recording, Pods come a few at a time.
            if at % 20 == 0 {
                self.run_controllers();
            }
        }
    }

    fn delete_pods(&mut self, step: &Value) {
        for at in 0..step.int("count") {
            let number = step.int("first") + at * step.int_opt("step").unwrap_or(1);
            self.remove(&("Pod", NAMESPACE.to_owned(), format!("{}{number}", step.text("prefix"))));
        }
    }

    fn capture(&mut self, step: &Value) {
        let key = self.target(step.at("target"));
        let path = format!("/{}", step.text("path").replace('.', "/"));
        let value = self.objects[&key].pointer(&path).and_then(Value::as_str).expect("a text to capture");
        self.captured.insert(step.text("as").to_owned(), value.to_owned());
    }
}

fn add(base: &str, offset: i64) -> String {
    let offset = u128::try_from(offset).expect("not below 0");
    match base.parse::<IpAddr>().expect("an address") {
        IpAddr::V4(ip) => std::net::Ipv4Addr::from(ip.to_bits() + u32::try_from(offset).expect("small")).to_string(),
        IpAddr::V6(ip) => std::net::Ipv6Addr::from(ip.to_bits() + offset).to_string(),
    }
}

fn read<T: View>(object: &Value) -> T {
    serde_json::from_str(&object.to_string()).expect("can be viewed")
}

// ---- what controllers do ----------------------------------------------------------------------------------------------
impl World {
    /// Runs all controllers until nothing changes, which must be soon.
    pub(crate) fn run_controllers(&mut self) {
        for _ in 0..10 {
            let before = self.versions;
            self.collect_garbage();
            for (namespace, name) in self.names() {
                self.run_endpoints(&namespace, &name);
                self.run_slices(&namespace, &name);
                self.run_mirror(&namespace, &name);
            }
            if self.versions == before {
                return;
            }
        }
        panic!("the controllers do not come to rest");
    }

    pub(crate) fn views<T: View>(&self, namespace: &str) -> Vec<T> {
        let here = |key: &Key| key.0 == T::KIND.kind && key.1 == namespace;
        self.objects.iter().filter(|(key, _)| here(key)).map(|(_, object)| read(object)).collect()
    }

    fn view<T: View>(&self, namespace: &str, name: &str) -> Option<T> {
        self.objects.get(&(T::KIND.kind, namespace.to_owned(), name.to_owned())).map(read)
    }

    fn names(&self) -> BTreeSet<(String, String)> {
        let named = self.objects.keys().filter(|key| matches!(key.0, "Service" | "Endpoints"));
        let mut names: BTreeSet<_> = named.map(|key| (key.1.clone(), key.2.clone())).collect();
        for (key, slice) in self.objects.iter().filter(|(key, _)| key.0 == "EndpointSlice") {
            let of = slice.at("metadata").at("labels").text("kubernetes.io/service-name");
            names.insert((key.1.clone(), of.to_owned()));
        }
        names
    }

    fn collect_garbage(&mut self) {
        let uids: HashSet<_> =
            self.objects.values().map(|object| object.at("metadata").text("uid").to_owned()).collect();
        self.objects.retain(|_, object| {
            let owners = object.at("metadata").list("ownerReferences");
            owners.is_empty() || owners.iter().any(|owner| uids.contains(owner.text("uid")))
        });
    }

    fn run_endpoints(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(service) = self.view::<Service>(namespace, name) else {
            self.endpoints_times.remove(&key);
            return;
        };
        let pods = self.selected(&service);
        let pods: Vec<_> = pods.iter().collect();
        let existing = self.view::<Endpoints>(namespace, name);
        let refused = fairlead_endpoints::members::refusal(&service).is_some();
        let time = if refused { None } else { self.endpoints_times.entry(key).or_default().observe(&service, &pods) };
        let input = legacy::Input {
            service: &service,
            pods: &pods,
            existing: existing.as_ref(),
            trigger_time: time.as_deref(),
        };
        let changes = legacy::reconcile(&input);
        self.write(namespace, changes, "endpoint-controller", ("Service", name));
    }

    fn run_slices(&mut self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(service) = self.view::<Service>(namespace, name) else {
            self.slice_times.remove(&key);
            return;
        };
        let pods = self.selected(&service);
        let pods: Vec<_> = pods.iter().collect();
        let nodes: BTreeMap<_, _> =
            self.views::<Node>("").into_iter().map(|node| (node.metadata.name.clone(), node)).collect();
        let existing: Vec<_> = self.slices_of(namespace, name);
        let existing: Vec<_> = existing.iter().collect();
        let refused = fairlead_endpoints::members::refusal(&service).is_some();
        let times = &mut self.slice_times;
        let time = if refused { None } else { times.entry(key.clone()).or_default().observe(&service, &pods) };
        let outcome = slices::reconcile(&slices::Input {
            service: &service,
            pods: &pods,
            nodes: &|name| nodes.get(name),
            slices: &existing,
            max_endpoints: slices::MAX_ENDPOINTS,
            trigger_time: time.as_deref(),
            zones: &Zones::of(nodes.values()),
            hinted: self.hinted.get(&key).unwrap_or(&Hinted::default()),
        });
        self.hinted.insert(key, outcome.hinted);
        self.write(namespace, outcome.changes, "endpoint-slice-controller", ("Service", name));
    }

    fn run_mirror(&mut self, namespace: &str, name: &str) {
        let endpoints = self.view::<Endpoints>(namespace, name);
        let service = self.view::<Service>(namespace, name);
        let existing = self.slices_of(namespace, name);
        let existing: Vec<_> = existing.iter().collect();
        let changes = mirror::reconcile(&mirror::Input {
            endpoints: endpoints.as_ref(),
            service: service.as_ref(),
            slices: &existing,
            max_addresses: mirror::MAX_ADDRESSES,
        });
        self.write(namespace, changes, "endpoint-slice-mirroring-controller", ("Endpoints", name));
    }

    fn slices_of(&self, namespace: &str, name: &str) -> Vec<EndpointSlice> {
        let mut slices = self.views::<EndpointSlice>(namespace);
        slices.retain(|slice| slice.metadata.labels.get("kubernetes.io/service-name").is_some_and(|of| of == name));
        slices
    }

    fn selected(&self, service: &Service) -> Vec<Pod> {
        let mut pods = self.views::<Pod>(&service.metadata.namespace);
        pods.retain(|pod| service.selects(&pod.metadata.labels));
        pods
    }

    fn write<T: View + Serialize>(&mut self, namespace: &str, changes: Changes<T>, component: &str, of: (&str, &str)) {
        for object in &changes.create {
            self.create(view::to_json(object).into(), false);
        }
        for object in &changes.update {
            let key = (T::KIND.kind, namespace.to_owned(), object.meta().name.clone());
            let old = self.objects[&key].clone();
            assert_eq!(object.meta().resource_version, old.at("metadata").text("resourceVersion"));
            let mut new = self.decoded(T::KIND, view::to_json(object).into());
            let created = old.at("metadata").at("creationTimestamp").clone();
            new.map_mut("metadata").insert("creationTimestamp".to_owned(), created);
            assert_ne!(new, old, "a write must change something");
            self.replace(key, T::KIND, new, &old, false);
        }
        for name in changes.delete {
            self.versions += 1;
            self.remove(&(T::KIND.kind, namespace.to_owned(), name));
        }
        changes.notices.iter().for_each(|notice| self.tell(notice, component, of));
    }

    fn tell(&mut self, notice: &Notice, component: &str, of: (&str, &str)) {
        let event = json!({"reason": notice.reason, "type": notice.severity.as_str(), "message": notice.message,
            "component": component, "involvedObject": {"kind": of.0, "name": of.1, "apiVersion": "v1"}});
        self.events.insert(event.to_string());
    }
}
