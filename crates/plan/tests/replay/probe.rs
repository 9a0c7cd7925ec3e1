//! The probes of a scenario, as far as plans alone can answer them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use fairlead_api::Look;
use fairlead_api::view::Protocol;
use fairlead_plan::{Flow, Ingress, Judgement, Verdict, family_of, judge};
use serde_json::{Value, json};

use crate::cluster::{NODES, Owner, ip, node_ips, owner, pod_ip};
use crate::way::{Client, Outcome};
use crate::world::World;

/// What is remembered between probes.
#[derive(Default)]
pub(crate) struct Probes {
    flows: BTreeMap<String, Held>,
    /// Input of commands that gave the kernel rules of others.
    foreign: String,
}

/// A connection or flow that is kept open.
struct Held {
    client: Client,
    to: (IpAddr, u16),
    protocol: Protocol,
    via: Option<String>,
    /// Who answered first.
    first: Option<String>,
    /// Where the kernel of the first Node sends it.
    remembered: Option<(IpAddr, u16)>,
    now: BTreeSet<Outcome>,
}

impl Probes {
    /// Steps that are no probes but open what is probed later.
    pub(crate) fn change(&mut self, step: &Value, world: &World) {
        self.foreign.push_str(step.at("exec").text("input"));
        let open = step.at("flow_open");
        if open.is_null() {
            return self.flows.values_mut().for_each(|held| held.reconcile(world));
        }
        let to = socket(open.text("to"));
        let mut held = Held {
            client: client(open.text("from"), None, to.0),
            to,
            protocol: protocol(open),
            via: open.text_opt("via").map(str::to_owned),
            first: None,
            remembered: None,
            now: BTreeSet::new(),
        };
        held.send(world);
        held.first = held.backend();
        self.flows.insert(open.text("id").to_owned(), held);
    }

    /// What a probe shows; `None` when it takes more than plans to say.
    pub(crate) fn run(&mut self, step: &Value, world: &World) -> Option<Value> {
        match step.text_opt("type").unwrap_or("conn") {
            "conn" if self.foreign.contains(&socket(step.text("to")).0.to_string()) => None,
            "conn" => Some(connections(step, world)),
            "affinity" => Some(affinity(step, world)),
            "flow" => self.flows.get(step.text("id")).map(|held| held.show(step)),
            "http" => health_check(step, world),
            _ => None,
        }
    }
}

/// Whether what is seen is what was recorded, as far as it can be told.
pub(crate) fn fits(step: &Value, seen: &Value, wanted: &Value) -> bool {
    match step.text_opt("type").unwrap_or("conn") {
        "affinity" => {
            let could: BTreeSet<_> = seen.texts("backends").into_iter().collect();
            let did: BTreeSet<_> = wanted.texts("backends").into_iter().collect();
            // Once only is always the same; and clients may be known from before.
            let sticky = step.int_opt("rounds") == Some(1) || seen.flag("sticky") == wanted.flag("sticky");
            seen.text("result") == wanted.text("result") && sticky && did.is_subset(&could)
        }
        "http" => {
            let json = |field| (seen.at("json").get(field), wanted.at("json").get(field));
            let same = |(seen, wanted): (Option<&Value>, Option<&Value>)| wanted.is_none() || seen == wanted;
            (seen.get("status"), seen.get("error")) == (wanted.get("status"), wanted.get("error"))
                && ["localEndpoints", "service.name", "service.namespace"].into_iter().all(|field| same(json(field)))
        }
        _ => seen == wanted,
    }
}

fn protocol(step: &Value) -> Protocol {
    if step.text("proto") == "udp" { Protocol::Udp } else { Protocol::Tcp }
}

fn socket(text: &str) -> (IpAddr, u16) {
    let address: SocketAddr = text.parse().expect("an address and port");
    (address.ip(), address.port())
}

/// Who sends, with the address its routes choose.
fn client(who: &str, src: Option<&str>, dst: IpAddr) -> Client {
    let (kind, name) = who.split_once(':').unwrap_or((who, ""));
    let v6 = dst.is_ipv6();
    let node = || NODES.into_iter().find(|node| name.starts_with(node)).expect("a Node");
    let (owner, address) = match kind {
        "pod" => (Owner::Pod(name.to_owned(), node()), pod_ip(name, v6)),
        "node" if dst.is_loopback() => (Owner::Node(node()), ip(if v6 { "::1" } else { "127.0.0.1" })),
        // A Node uses the address on the net it sends to, or the one it sends to if that is its own.
        "node" if node_ips(node(), v6).contains(&dst) => (Owner::Node(node()), dst),
        "node" => (Owner::Node(node()), node_ips(node(), v6)[0]),
        "ext" => (Owner::Outside, ip(if v6 { "fd98::10" } else { "198.51.100.10" })),
        other => panic!("who is {other}?"),
    };
    Client { owner, address: src.map_or(address, ip) }
}

fn clients(step: &Value, dst: IpAddr) -> Vec<Client> {
    let src = step.text_opt("src");
    match step.at("from") {
        Value::Array(many) => many.iter().flat_map(Value::as_str).map(|who| client(who, src, dst)).collect(),
        one => vec![client(one.as_str().expect("who"), src, dst)],
    }
}

fn outcomes(step: &Value, world: &World) -> BTreeSet<Outcome> {
    let to = socket(step.text("to"));
    let send = |client: &Client| world.send(client, to, protocol(step), step.text_opt("via"));
    clients(step, to.0).iter().flat_map(send).collect()
}

fn connections(step: &Value, world: &World) -> Value {
    let mut shown = summary(&outcomes(step, world));
    if let Some(wanted) = step.int_opt("even").filter(|_| shown.get("backends").is_some()) {
        let backends = shown.map("backends").map_or(0, serde_json::Map::len);
        shown.set("even", backends as i64 == wanted);
    }
    shown
}

/// As the runner writes it: only sets, no counts.
fn summary(outcomes: &BTreeSet<Outcome>) -> Value {
    let (mut backends, mut ports) = (BTreeMap::<&str, BTreeSet<&str>>::new(), BTreeSet::new());
    let mut errors = BTreeSet::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Ok { backend, port, seen } => {
                backends.entry(backend).or_default().insert(seen);
                ports.insert(*port);
            }
            error => drop(errors.insert(word(error))),
        }
    }
    if backends.is_empty() {
        return match errors.first() {
            Some(error) if errors.len() == 1 => json!({"result": error}),
            _ => json!({"result": "failed", "errors": errors}),
        };
    }
    let join = |seen: BTreeSet<&str>| seen.into_iter().collect::<Vec<_>>().join("|");
    let backends: BTreeMap<_, _> = backends.into_iter().map(|(name, seen)| (name, join(seen))).collect();
    let mut shown = json!({"result": "ok", "backends": backends, "ports": ports});
    if !errors.is_empty() {
        shown.set("result", "mixed");
        shown.set("errors", json!(errors));
    }
    shown
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Ok { .. } => "ok",
        Outcome::Refused => "refused",
        Outcome::Unreachable => "unreachable",
        Outcome::Timeout => "timeout",
    }
}

fn affinity(step: &Value, world: &World) -> Value {
    let to = socket(step.text("to"));
    let mut shown = summary(&outcomes(step, world));
    let backends: Vec<String> = shown.map("backends").map_or(Vec::new(), |backends| backends.keys().cloned().collect());
    let sticky = |client: &Client| {
        let Some(node) = world.first(client, to.0, step.text_opt("via")) else { return false };
        let decision = world.decide(node, ingress(client), client.address, to, protocol(step));
        matches!(decision.verdict, Verdict::Dnat(dnat) if dnat.affinity.is_some())
    };
    shown.set("sticky", backends.len() == 1 || clients(step, to.0).iter().all(sticky));
    shown.set("backends", backends);
    shown
}

fn ingress(client: &Client) -> Ingress {
    match client.owner {
        Owner::Pod(..) => Ingress::Interface("cni0".to_owned()),
        Owner::Node(_) => Ingress::Output,
        Owner::Outside => Ingress::Interface("eth0".to_owned()),
    }
}

/// The page of a health check port, if the probe asks for one.
fn health_check(step: &Value, world: &World) -> Option<Value> {
    let (host, path) = step.text("url").strip_prefix("http://")?.split_once('/')?;
    let (dst, port) = socket(host);
    let here = client(step.text("from"), None, dst);
    let node = match (&here.owner, owner(dst)) {
        (Owner::Node(node), _) if dst.is_loopback() => node,
        (_, Some(Owner::Node(node))) => node,
        _ => return None,
    };
    // Other pages of the proxy have fixed numbers.
    if !path.is_empty() && path != "healthz" || matches!(port, 10249 | 10256) {
        return None;
    }
    let plan = world.plan(node);
    let check = plan.health_checks().find(|check| check.port == port);
    let Some(check) = check.filter(|_| plan.node().serves_node_ports_on(dst)) else {
        return Some(json!({"error": "refused"}));
    };
    let count = check.local_endpoints.get(&family_of(dst)).copied().unwrap_or_default();
    let page = json!({
        "localEndpoints": count,
        "service.name": check.service.name,
        "service.namespace": check.service.namespace,
    });
    Some(json!({"status": if count > 0 { 200 } else { 503 }, "json": page}))
}

impl Held {
    fn backend(&self) -> Option<String> {
        match self.now.first() {
            Some(Outcome::Ok { backend, .. }) if self.now.len() == 1 => Some(backend.clone()),
            _ => None,
        }
    }

    /// A packet that the kernel knows nothing of.
    fn send(&mut self, world: &World) {
        self.now = world.send(&self.client, self.to, self.protocol, self.via.as_deref());
        let Some(node) = self.node(world) else { return };
        let decision = world.decide(node, ingress(&self.client), self.client.address, self.to, self.protocol);
        self.remembered = match decision.verdict {
            Verdict::NotOurs => Some(self.to),
            Verdict::Dnat(dnat) => Some((dnat.candidates[0].endpoint.ip, dnat.candidates[0].endpoint.port)),
            Verdict::Drop | Verdict::Reject(_) => None,
        };
    }

    fn node(&self, world: &World) -> Option<&'static str> {
        world.first(&self.client, self.to.0, self.via.as_deref())
    }

    /// Forgets what the plan says must be forgotten; what is then sent is a first packet again. TCP goes on as it was.
    fn reconcile(&mut self, world: &World) {
        if self.protocol == Protocol::Tcp {
            return;
        }
        let (Some((backend, backend_port)), Some(node)) = (self.remembered, self.node(world)) else {
            return self.send(world);
        };
        let Held { protocol, to: (dst, port), .. } = *self;
        let flow = Flow { protocol, dst, port, backend, backend_port };
        let judgement = judge(world.plan(node), &flow);
        // A flow to what was ours and is no more is cut.
        let cut = judgement == Judgement::NotOurs && (backend, backend_port) != self.to;
        if judgement.is_stale() || cut {
            self.send(world);
        }
    }

    fn show(&self, step: &Value) -> Value {
        let mut shown = match self.now.iter().find(|outcome| !matches!(outcome, Outcome::Ok { .. })) {
            None => json!({"alive": true, "same": self.now.len() > 1 || self.backend() == self.first}),
            // A router's answer does not end a flow.
            Some(Outcome::Unreachable) => json!({"alive": false, "error": "timeout"}),
            Some(error) => json!({"alive": false, "error": word(error)}),
        };
        if let Some(backend) = self.backend().filter(|_| step.get("which").is_none_or(|which| which == true)) {
            shown.set("backend", backend);
        }
        shown
    }
}
