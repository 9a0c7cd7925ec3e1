//! A small cluster in which everything works and everything is seen, and ways to change it.

use std::collections::BTreeMap;

use fairlead_api::Look;
use fairlead_api::source::Key;
use fairlead_api::value::{Value, json};
use fairlead_api::view::{EndpointSlice, Node, Protocol, Service};
use fairlead_explain::{
    Cause, Change, Component, Dns, DnsReply, Evidence, From, Objects, Pod, Question, Socket, Verdict,
};

mod seen;

/// The Service asked about.
pub(crate) const WEB: (&str, &str) = ("default", "web");

/// A broken set-up.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) cause: Cause,
    pub(crate) verdict: Verdict,
    /// Whether nothing else is broken.
    pub(crate) alone: bool,
    pub(crate) lab: Lab,
}

pub(crate) fn row(name: &'static str, cause: Cause, lab: Lab) -> Row {
    Row { name, cause, verdict: Verdict::Broken, alone: true, lab }
}

/// It may still work.
pub(crate) fn warns(name: &'static str, cause: Cause, lab: Lab) -> Row {
    Row { verdict: Verdict::Warn, ..row(name, cause, lab) }
}

type Tweak = Box<dyn FnOnce(&mut Evidence)>;

/// A cluster that is being described.
pub(crate) struct Lab {
    objects: Vec<Value>,
    /// Changes that nobody reacts to any more.
    late: Vec<(&'static str, String, String)>,
    controller: bool,
    question: Question,
    domain: Option<&'static str>,
    sockets: BTreeMap<Key, Vec<Socket>>,
    tweaks: Vec<Tweak>,
}

/// A cluster as it is seen.
pub(crate) struct Seen {
    pub(crate) question: Question,
    pub(crate) objects: Objects,
    pub(crate) evidence: Evidence,
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

fn key(object: &Value) -> Key {
    let meta = object.at("metadata");
    Key::new(meta.text("namespace"), meta.text("name"))
}

fn view<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_str(&object.to_string()).expect("can be viewed")
}

impl Lab {
    /// Two ready Pods on two Nodes behind a Service, and a client.
    pub(crate) fn new() -> Lab {
        let mut lab = Lab::empty();
        lab.objects.push(json!({"kind": "Service", "metadata": {"name": "web", "namespace": "default", "uid": "web-uid"},
            "spec": {"type": "ClusterIP", "selector": {"app": "web"}, "clusterIP": "10.96.0.20", "clusterIPs": ["10.96.0.20"],
                "ipFamilies": ["IPv4"], "ports": [{"name": "http", "port": 80, "targetPort": 9376, "protocol": "TCP"}]}}));
        lab.add_pod("default", "web-1", "10.244.1.7", "n1", "web");
        lab.add_pod("default", "web-2", "10.244.2.8", "n2", "web");
        lab
    }

    /// Nodes, namespaces, cluster DNS and a client.
    pub(crate) fn empty() -> Lab {
        let service = Key::new(WEB.0, WEB.1);
        let mut lab = Lab {
            objects: Vec::new(),
            late: Vec::new(),
            controller: true,
            question: Question { from: From::Pod(Key::new("default", "client")), ..Question::about(service) },
            domain: None,
            sockets: BTreeMap::new(),
            tweaks: Vec::new(),
        };
        for (name, ip) in [("n1", "192.0.2.1"), ("n2", "192.0.2.2")] {
            lab.objects.push(json!({"kind": "Node", "metadata": {"name": name}, "status": {
                "conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "InternalIP", "address": ip}]}}));
        }
        for name in ["default", "shop", "kube-system"] {
            lab.objects.push(json!({"kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}}));
        }
        lab.objects.push(json!({"kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system"},
            "spec": {"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"], "ports": [{"port": 53, "protocol": "UDP"}]}}));
        lab.add_pod("default", "client", "10.244.1.99", "n1", "client");
        lab
    }

    fn add_pod(&mut self, namespace: &str, name: &str, ip: &str, node: &str, app: &str) {
        self.objects.push(json!({
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "uid": format!("{name}-uid"), "labels": {"app": app}},
            "spec": {"nodeName": node, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
                "containers": [{"name": "main", "ports": [{"name": "http", "containerPort": 9376, "protocol": "TCP"}]}]},
            "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "main", "ready": true, "started": true, "state": {"running": {}}}]},
        }));
        self.sockets.insert(Key::new(namespace, name), vec![socket("[::]:9376/TCP")]);
    }

    /// One more Pod.
    pub(crate) fn with_pod(mut self, namespace: &str, name: &str, ip: &str, node: &str, app: &str) -> Lab {
        self.add_pod(namespace, name, ip, node, app);
        self
    }

    /// One more object, as YAML.
    pub(crate) fn with(mut self, text: &str) -> Lab {
        self.objects.push(yaml(text));
        self
    }

    fn change(&mut self, kind: &str, namespace: &str, name: &str, fields: &str) {
        let object = self.objects.iter_mut().find(|object| {
            object.text("kind") == kind
                && object.at("metadata").text("name") == name
                && object.at("metadata").text("namespace") == namespace
        });
        let object = object.unwrap_or_else(|| panic!("there is no {kind} {namespace}/{name}"));
        if fields.is_empty() {
            return;
        }
        let patch = yaml(fields).to_string();
        *object = fairlead_api::patch::merge(object, patch.as_bytes()).expect("an object").value;
    }

    /// Changes the Service.
    pub(crate) fn service(mut self, fields: &str) -> Lab {
        self.change("Service", WEB.0, WEB.1, fields);
        self
    }

    /// Changes a Pod.
    pub(crate) fn pod(mut self, name: &str, fields: &str) -> Lab {
        self.change("Pod", "default", name, fields);
        self
    }

    /// Changes both Pods of the Service.
    pub(crate) fn pods(self, fields: &str) -> Lab {
        self.pod("web-1", fields).pod("web-2", fields)
    }

    /// Changes a Node.
    pub(crate) fn node(mut self, name: &str, fields: &str) -> Lab {
        self.change("Node", "", name, fields);
        self
    }

    /// Removes an object.
    pub(crate) fn without(mut self, kind: &str, name: &str) -> Lab {
        self.objects.retain(|object| object.text("kind") != kind || object.at("metadata").text("name") != name);
        self
    }

    /// Changes a Pod when nobody looks at Pods any more.
    pub(crate) fn late_pod(mut self, name: &str, fields: &str) -> Lab {
        self.late.push(("Pod", name.to_owned(), fields.to_owned()));
        self
    }

    /// Changes the Service when its slices are made.
    pub(crate) fn late_service(mut self, fields: &str) -> Lab {
        self.late.push(("Service", WEB.1.to_owned(), fields.to_owned()));
        self
    }

    /// Changes a slice that the controller made, by the place in their row.
    pub(crate) fn late_slice(mut self, name: &str, fields: &str) -> Lab {
        self.late.push(("EndpointSlice", name.to_owned(), fields.to_owned()));
        self
    }

    /// Nobody makes slices.
    pub(crate) fn without_controller(mut self) -> Lab {
        self.controller = false;
        self
    }

    /// Somebody else asks.
    pub(crate) fn from(mut self, from: From) -> Lab {
        self.question.from = from;
        self
    }

    /// Asks about a port.
    pub(crate) fn port(mut self, port: &str) -> Lab {
        self.question.port = Some(port.to_owned());
        self
    }

    /// Asks with a protocol.
    pub(crate) fn protocol(mut self, protocol: Protocol) -> Lab {
        self.question.protocol = Some(protocol);
        self
    }

    /// The client uses a name of its own.
    pub(crate) fn host(mut self, host: &str) -> Lab {
        self.question.host = Some(host.to_owned());
        self
    }

    /// The cluster has another domain.
    pub(crate) fn domain(mut self, domain: &'static str) -> Lab {
        self.domain = Some(domain);
        self
    }

    /// The DNS server is our own, which every Node has.
    pub(crate) fn own_dns(mut self) -> Lab {
        let label = "metadata: {labels: {service.kubernetes.io/service-proxy-name: fairlead-dns}}";
        self.change("Service", "kube-system", "kube-dns", label);
        self
    }

    /// Asks about another Service.
    pub(crate) fn about(mut self, namespace: &str, name: &str) -> Lab {
        self.question.service = Key::new(namespace, name);
        self
    }

    /// What listens in a Pod: `0.0.0.0:80/TCP`, several with blanks.
    pub(crate) fn listens(mut self, pod: &str, sockets: &str) -> Lab {
        self.sockets.insert(Key::new("default", pod), sockets.split_whitespace().map(socket).collect());
        self
    }

    /// What listens in both Pods.
    pub(crate) fn all_listen(self, sockets: &str) -> Lab {
        self.listens("web-1", sockets).listens("web-2", sockets)
    }

    /// Where every field and element of every object is: the place of the object, and a JSON pointer into it.
    pub(crate) fn places(&self) -> Vec<(usize, String)> {
        let mut places = Vec::new();
        for (at, object) in self.objects.iter().enumerate() {
            let mut open = vec![(String::new(), object)];
            while let Some((pointer, value)) = open.pop() {
                if let Some(map) = value.as_object() {
                    open.extend(
                        map.iter().map(|(name, value)| (format!("{pointer}/{}", name.replace('/', "~1")), value)),
                    );
                }
                let elements = value.as_array().into_iter().flatten().enumerate();
                open.extend(elements.map(|(at, value)| (format!("{pointer}/{at}"), value)));
                places.push((at, pointer));
            }
        }
        // Kinds, and words of which the API knows but a few, are never empty.
        let words = ["", "/kind", "/spec/type", "/addressType", "/spec/ipFamilies/0"];
        places.retain(|(_, pointer)| !words.contains(&pointer.as_str()) && !pointer.ends_with("/protocol"));
        places
    }

    /// Empties a field.
    pub(crate) fn empty_at(mut self, at: usize, pointer: &str) -> Lab {
        if let Some(value) = self.objects[at].pointer_mut(pointer) {
            *value = match value {
                Value::String(_) => Value::from(""),
                Value::Number(_) => Value::from(0),
                Value::Bool(flag) => Value::from(!*flag),
                Value::Array(_) => Value::Array(Vec::new()),
                Value::Object(_) | Value::Null => json!({}),
            };
        }
        self
    }

    /// Something else is seen.
    pub(crate) fn seen(mut self, tweak: impl FnOnce(&mut Evidence) + 'static) -> Lab {
        self.tweaks.push(Box::new(tweak));
        self
    }

    /// Makes the objects and looks at the machines.
    pub(crate) fn build(mut self) -> Seen {
        let slices = if self.controller { self.slices() } else { Vec::new() };
        self.objects.extend(slices);
        for (kind, name, fields) in std::mem::take(&mut self.late) {
            self.change(kind, "default", &name, &fields);
        }
        let mut objects = Objects::default();
        if let Some(domain) = self.domain {
            objects.set_domain(domain);
        }
        objects.apply(self.objects.iter().map(change));
        let mut evidence = self.evidence(&objects);
        for tweak in self.tweaks {
            tweak(&mut evidence);
        }
        Seen { question: self.question, objects, evidence }
    }

    fn all<T: serde::de::DeserializeOwned>(&self, kind: &str) -> Vec<(Key, T)> {
        let of_kind = self.objects.iter().filter(|object| object.text("kind") == kind);
        of_kind.map(|object| (key(object), view(object))).collect()
    }
}

/// A part that runs.
pub(crate) fn component(name: &str) -> Component {
    Component {
        alive: true,
        name: name.to_owned(),
        behind: Some(0),
        error: None,
        start: Some("fairlead up".to_owned()),
    }
}

/// Answers to the client's resolver, in the order in which it tried names.
pub(crate) fn dns(name: &str, tried: &[(&str, DnsReply)]) -> Dns {
    let tried = tried.iter().map(|(name, reply)| ((*name).to_owned(), reply.clone())).collect();
    Dns { name: name.to_owned(), server: None, tried }
}

/// `0.0.0.0:80/TCP`, with `!` behind for IPv6 alone.
fn socket(text: &str) -> Socket {
    let (text, only_v6) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
    let (address, protocol) = text.split_once('/').expect("an address and a protocol");
    let protocol = match protocol {
        "UDP" => Protocol::Udp,
        _ => Protocol::Tcp,
    };
    Socket { address: address.parse().expect("an address"), protocol, only_v6, program: Some("python3".to_owned()) }
}

fn change(object: &Value) -> Change {
    let key = key(object);
    match object.text("kind") {
        "Service" => Change::Service(key, Some(view::<Service>(object).into())),
        "Pod" => Change::Pod(key, Some(view::<Pod>(object).into())),
        "EndpointSlice" => Change::EndpointSlice(key, Some(view::<EndpointSlice>(object).into())),
        "Endpoints" => Change::Endpoints(key, Some(view::<fairlead_api::view::Endpoints>(object).into())),
        "Node" => Change::Node(key, Some(view::<Node>(object).into())),
        "Namespace" => Change::Namespace(key, Some(view::<fairlead_api::view::Namespace>(object).into())),
        "Event" => Change::Event(key, Some(view::<fairlead_explain::Event>(object).into())),
        other => panic!("no such kind: {other}"),
    }
}
