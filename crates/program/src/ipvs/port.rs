//! What a port of a Service has in the program: its virtual servers, and what its frontends are in the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairlead_plan::{Endpoint, Frontend, FrontendKey, Node, Pool, PortKey, Protocol, Scope, Source, family_of};
use ipnet::IpNet;

use super::code::{self, Marks, Way};
use super::model::{Affinity, At, Balance, Op, Server};
use crate::nft::code as nft_code;
use crate::nft::rules::Via;
use crate::nft::{Element, Key};

/// A port of a Service.
#[derive(Debug, Default)]
pub(crate) struct Port {
    /// Its number in marks.
    pub(crate) number: u32,
    pub(crate) frontends: BTreeMap<FrontendKey, Arc<Frontend>>,
    pub(crate) cluster: Option<Arc<Pool>>,
    pub(crate) local: Option<Arc<Pool>>,
}

/// Elements of sets and maps.
pub(crate) type Elements = Vec<(&'static str, Element)>;

impl Port {
    /// Where a pool is kept.
    pub(crate) fn pool(&mut self, scope: Scope) -> &mut Option<Arc<Pool>> {
        match scope {
            Scope::Cluster => &mut self.cluster,
            Scope::Local => &mut self.local,
        }
    }

    pub(crate) fn is_unused(&self) -> bool {
        self.frontends.is_empty() && self.cluster.is_none() && self.local.is_none()
    }

    /// Its virtual servers. One at an address is there as long as the frontend is, even if it serves nobody for now: what it
    /// has may come to its end.
    pub(crate) fn servers(&self, key: &PortKey, node: &Node, marks: Marks, scheduler: &str) -> BTreeMap<At, Server> {
        let server = |scope, by_mark| {
            let pool = if scope == Scope::Cluster { &self.cluster } else { &self.local };
            server(key.protocol, pool.as_deref(), scheduler, by_mark)
        };
        let mut servers = BTreeMap::new();
        let mut marked = BTreeSet::new();
        for frontend in self.frontends.values() {
            if let (FrontendKey::Address { ip, protocol, port }, Some(scope)) =
                (frontend.key, code::scope_of_address(frontend, node))
            {
                servers.insert(At::Address { ip, protocol, port }, server(scope, false));
            }
            marked.extend(Source::ALL.into_iter().filter_map(|source| match Way::of(frontend, source, node) {
                Way::Mark { scope, masquerade, .. } => Some((scope, masquerade)),
                Way::AsItIs | Way::Masquerade => None,
            }));
        }
        servers.extend(marked.into_iter().map(|(scope, masquerade)| {
            let mark = marks.mark(self.number, scope, masquerade);
            (At::Mark { family: key.family, mark }, server(scope, true))
        }));
        servers
    }
}

fn server(protocol: Protocol, pool: Option<&Pool>, scheduler: &str, by_mark: bool) -> Server {
    let endpoints = pool.map_or(&[][..], |pool| &pool.endpoints);
    let affinity = pool.and_then(|pool| pool.affinity);
    let (scheduler, affinity) = match affinity {
        // Where others come or go, hardly any client moves with this one.
        Some(seconds) if by_mark => ("mh", Some(Affinity::Hashed(seconds))),
        other => (by_weight(scheduler, endpoints), other.map(Affinity::Remembered)),
    };
    let share = |endpoint: &Endpoint| (SocketAddr::new(endpoint.ip, endpoint.port), endpoint.weight.into());
    let balance = Balance { protocol, scheduler: scheduler.to_owned(), affinity };
    Server { balance, endpoints: endpoints.iter().map(share).collect() }
}

/// Schedulers that do not look at weights have a brother that does.
fn by_weight<'a>(scheduler: &'a str, endpoints: &[Endpoint]) -> &'a str {
    let even = endpoints.windows(2).all(|pair| pair[0].weight == pair[1].weight);
    match scheduler {
        "rr" if !even => "wrr",
        "lc" if !even => "wlc",
        _ => scheduler,
    }
}

impl Balance {
    /// Whether a scheduler that chooses by hash is to pass over what has weight 0.
    pub fn passes_over(&self) -> bool {
        matches!(self.scheduler.as_str(), "sh" | "mh")
    }

    /// Whether it is to look at the client's port, too.
    pub fn looks_at_ports(&self) -> bool {
        self.scheduler == "mh" && !matches!(self.affinity, Some(Affinity::Hashed(_)))
    }
}

/// The steps from one set of virtual servers to another: what makes, and what unmakes.
pub(crate) fn difference(
    old: &BTreeMap<At, Server>,
    new: &BTreeMap<At, Server>,
    made: &mut Vec<Op>,
    gone: &mut Vec<Op>,
) {
    for (at, server) in new {
        let before = old.get(at);
        match before {
            None => made.push(Op::AddServer(*at, server.balance.clone())),
            Some(before) if before.balance != server.balance => made.push(Op::SetServer(*at, server.balance.clone())),
            Some(_) => {}
        }
        let had = |to: &SocketAddr| before.and_then(|before| before.endpoints.get(to));
        for (to, weight) in &server.endpoints {
            match had(to) {
                None => made.push(Op::AddEndpoint(*at, *to, *weight)),
                Some(other) if other != weight => made.push(Op::SetEndpoint(*at, *to, *weight)),
                Some(_) => {}
            }
        }
        let lost = before.into_iter().flat_map(|before| before.endpoints.keys());
        let lost = lost.filter(|to| !server.endpoints.contains_key(to));
        gone.extend(lost.map(|to| Op::DeleteEndpoint(*at, *to)));
    }
    gone.extend(old.keys().filter(|at| !new.contains_key(at)).map(|at| Op::DeleteServer(*at)));
}

/// How a frontend is addressed.
fn via(key: &FrontendKey) -> Via {
    match key {
        FrontendKey::Address { .. } => Via::Address,
        FrontendKey::NodePort { .. } => Via::NodePort,
    }
}

/// The map from frontends to marks.
pub(crate) fn marks_of(via: Via) -> &'static str {
    match via {
        Via::Address => "marks",
        Via::NodePort => "nodeport-marks",
    }
}

/// What a frontend of a port with that number is in the tables.
pub(crate) fn elements(frontend: &Frontend, number: u32, node: &Node, marks: Marks) -> Elements {
    let (key, via) = (nft_code::frontend_key(&frontend.key), via(&frontend.key));
    let mut elements = vec![(via.frontends(), Element::data(key, code::frontend(frontend, node)))];
    let guard = nft_code::guard(frontend).map(|guard| Element::data(key, Key::new().number(guard)));
    elements.extend(guard.map(|guard| (via.guarded(), guard)));
    if Source::ALL.into_iter().any(|source| matches!(Way::of(frontend, source, node), Way::Mark { .. })) {
        let mark = marks.mark(number, Scope::Cluster, false);
        elements.push((marks_of(via), Element::data(key, Key::new().number(mark))));
    }
    elements.extend(allowed(frontend, node).into_iter().map(|element| ("allowed", element)));
    elements
}

/// Source ranges. A process of the Node that sends to an address of the link sends from that very address, and may if the
/// Node may.
fn allowed(frontend: &Frontend, node: &Node) -> Vec<Element> {
    let Some(ranges) = &frontend.allowed else { return Vec::new() };
    let mut ranges = ranges.to_vec();
    if let FrontendKey::Address { ip, .. } = frontend.key {
        let may = |own: &IpAddr| family_of(*own) == family_of(ip) && ranges.iter().any(|range| range.contains(own));
        if code::is_on_link(frontend, node) && node.ips.iter().any(may) {
            ranges.push(IpNet::from(ip));
        }
    }
    let key = |ip: IpAddr| nft_code::frontend_key(&frontend.key).ip(ip);
    let ends = |range: &IpNet| Element::range(key(range.network()), key(range.broadcast()));
    IpNet::aggregate(&ranges).iter().map(ends).collect()
}
