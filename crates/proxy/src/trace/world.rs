//! The part of a cluster that a packet's fate depends on, read once.

use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Node, Pod, Service, View};
use fairlead_api::{ip, kinds};
use fairlead_cluster::{Cluster, Selection};
use fairlead_plan::{Change, Planner, Protocol};
use ipnet::IpNet;
use serde_json::Value;

use super::{From, Mistake, Question, To};
use crate::{Settings, node};

/// What was read, for questions of one sender.
pub struct World {
    pub(super) planner: Planner,
    services: Vec<Arc<Service>>,
    pod: Option<Arc<Pod>>,
}

/// The objects of a cluster, or those of them on which an answer may depend (see [`super::Concern`]).
#[derive(Debug, Clone, Default)]
pub struct Objects {
    /// Services.
    pub services: Vec<Arc<Service>>,
    /// Their slices.
    pub slices: Vec<Arc<EndpointSlice>>,
    /// All Nodes.
    pub nodes: Vec<Arc<Node>>,
    /// Who sends, if that is a Pod.
    pub pod: Option<Arc<Pod>>,
    /// Where cluster IPs come from.
    pub ranges: Vec<IpNet>,
}

impl World {
    /// Reads the objects, and plans for the Node that is asked about.
    pub async fn read(cluster: &Cluster, settings: &Settings, question: &Question) -> Result<World, Mistake> {
        let objects = Objects {
            services: all(cluster).await?,
            slices: all(cluster).await?,
            nodes: all(cluster).await?,
            pod: match &question.from {
                From::Pod(key) => pod(cluster, key).await?,
                _ => None,
            },
            ranges: ranges(cluster).await,
        };
        World::of(objects, settings, question)
    }

    /// Plans for the Node that is asked about.
    pub fn of(objects: Objects, settings: &Settings, question: &Question) -> Result<World, Mistake> {
        let Objects { services, slices, nodes, pod, ranges } = objects;
        if let (From::Pod(key), None) = (&question.from, &pod) {
            return Err(Mistake::Missing("Pod", key.to_string()));
        }
        let wanted = question.node.as_deref().or(pod.as_ref().map(|pod| pod.spec.node_name.as_str()));
        let wanted = wanted.filter(|name| !name.is_empty());
        let object = choose(&nodes, wanted, &settings.node)?;
        let name = object.map(|node| node.metadata.name.as_str()).or(wanted).unwrap_or(&settings.node).to_owned();
        let here = question.here || object.is_none() || name == settings.node;
        let settings = Settings { node: name, ..settings.clone() };
        let planned = node::node(&settings, question.mode, object.map(|node| &**node), &ranges);
        let mut changes = vec![Change::Node(Box::new(complete(planned, object, here)?))];
        changes.extend(services.iter().map(|service| Change::Service(key(&**service), Some(service.clone()))));
        changes.extend(slices.iter().map(|slice| Change::Slice(key(&**slice), Some(slice.clone()))));
        if settings.topology_keys {
            let labels = |node: &Node| (node.metadata.name.clone(), Some(node.metadata.labels.clone()));
            changes.extend(nodes.iter().map(|node| labels(node)).map(|(name, labels)| Change::Labels(name, labels)));
        }
        let mut planner = Planner::new(fairlead_plan::Node::default());
        planner.apply(changes);
        Ok(World { planner, services, pod })
    }

    /// The addresses of who sends.
    pub(super) fn senders(&self, from: &From, node: &fairlead_plan::Node) -> Result<Vec<IpAddr>, Mistake> {
        match (from, &self.pod) {
            (From::Address(ip), _) => Ok(vec![*ip]),
            (From::Pod(key), Some(pod)) => {
                let ips: Vec<IpAddr> = pod.addresses().filter_map(ip::parse).collect();
                if ips.is_empty() { Err(Mistake::NoAddress(format!("Pod {key}"), "IP")) } else { Ok(ips) }
            }
            _ => Ok(node.ips.clone()),
        }
    }

    /// Where a packet goes; of a Service the first address for which there is a sender.
    pub(super) fn destination(
        &self,
        to: &To,
        sends: impl Fn(&IpAddr) -> bool,
    ) -> Result<(IpAddr, u16, Protocol), Mistake> {
        let (wanted, port, protocol) = match to {
            To::Address(ip, port, protocol) => return Ok((*ip, *port, *protocol)),
            To::Service(key, port, protocol) => (key, port, protocol),
        };
        let found = self.services.iter().find(|service| key(&***service) == *wanted);
        let service = found.ok_or_else(|| Mistake::Missing("Service", wanted.to_string()))?;
        let (port, protocol) = service_port(service, port.as_deref(), *protocol)?;
        let ips: Vec<IpAddr> = cluster_ips(service).collect();
        let address = ips.iter().copied().find(sends).or(ips.first().copied());
        let address = address.ok_or_else(|| Mistake::NoAddress(format!("Service {wanted}"), "cluster IP"))?;
        Ok((address, port, protocol))
    }
}

/// The cluster IPs of a Service. Old servers fill in only the first.
pub(super) fn cluster_ips(service: &Service) -> impl Iterator<Item = IpAddr> {
    let single = std::iter::once(&service.spec.cluster_ip).filter(|_| service.spec.cluster_ips.is_empty());
    service.spec.cluster_ips.iter().chain(single).filter_map(|text| ip::parse(text))
}

fn service_port(
    service: &Service,
    wanted: Option<&str>,
    protocol: Option<Protocol>,
) -> Result<(u16, Protocol), Mistake> {
    let is = |port: &&fairlead_api::view::ServicePort| {
        let named = wanted.is_none_or(|wanted| port.name == wanted || port.port.to_string() == wanted);
        named && protocol.is_none_or(|protocol| port.protocol == protocol)
    };
    let found: Vec<_> = service.spec.ports.iter().filter(is).collect();
    let one = match found[..] {
        [one] => Some(one),
        // One number for several protocols: TCP is meant unless another is named.
        [first, ..] if wanted.is_some() => Some(first),
        _ => None,
    };
    let number = one.and_then(|port| Some((u16::try_from(port.port).ok()?, port.protocol)));
    number.ok_or_else(|| {
        let ports = service.spec.ports.iter().map(|port| format!("{} {}/{}", port.name, port.port, port.protocol));
        Mistake::WhichPort {
            service: key(service).to_string(),
            wanted: wanted.map(ToOwned::to_owned),
            ports: ports.map(|port| port.trim().to_owned()).collect::<Vec<_>>().join(", "),
        }
    })
}

/// The Node that is named, or this machine, or the only one there is. `None`: there are no Nodes at all.
fn choose<'a>(nodes: &'a [Arc<Node>], wanted: Option<&str>, own: &str) -> Result<Option<&'a Arc<Node>>, Mistake> {
    let find = |name: &str| nodes.iter().find(|node| node.metadata.name == name);
    let only = || nodes.first().filter(|_| nodes.len() == 1 && wanted.is_none());
    match find(wanted.unwrap_or(own)).or_else(only) {
        Some(node) => Ok(Some(node)),
        None if nodes.is_empty() => Ok(None),
        None => {
            let names: Vec<&str> = nodes.iter().map(|node| node.metadata.name.as_str()).collect();
            Err(Mistake::WhichNode(wanted.unwrap_or(own).to_owned(), names.join(", ")))
        }
    }
}

/// The Node with its addresses: those of its interfaces if it is this machine, else those its object names.
fn complete(
    mut node: fairlead_plan::Node,
    object: Option<&Arc<Node>>,
    here: bool,
) -> Result<fairlead_plan::Node, Mistake> {
    if here {
        return Ok(node::Addresses::open()?.complete(node));
    }
    let told = object.iter().flat_map(|node| &node.status.addresses);
    node.addresses.extend(told.filter_map(|address| ip::parse(&address.address)));
    Ok(node)
}

async fn all<T: View>(cluster: &Cluster) -> Result<Vec<Arc<T>>, Mistake> {
    let list = cluster.list(&Selection::all(T::KIND)).await?;
    // What cannot be read the proxy does not see either.
    Ok(list.objects.iter().filter_map(|object| serde_json::from_slice(&object.json).ok()).map(Arc::new).collect())
}

async fn pod(cluster: &Cluster, key: &Key) -> Result<Option<Arc<Pod>>, Mistake> {
    match cluster.get(&kinds::POD, &key.namespace, &key.name).await {
        Ok(object) => Ok(serde_json::from_value(object).ok().map(Arc::new)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Where cluster IPs come from. Older clusters do not tell.
pub async fn ranges(cluster: &Cluster) -> Vec<IpNet> {
    let list = cluster.list(&Selection::all(&kinds::SERVICE_CIDR)).await.unwrap_or_default();
    let objects = list.objects.iter().filter_map(|object| serde_json::from_slice::<Value>(&object.json).ok());
    let texts = objects.flat_map(|object| object["spec"]["cidrs"].as_array().cloned().unwrap_or_default());
    texts.filter_map(|text| ip::cidr::parse(text.as_str()?)).collect()
}

fn key<T: View>(view: &T) -> Key {
    Key::new(view.meta().namespace.as_str(), view.meta().name.as_str())
}
