//! The Service of a registration: the one that is there, if endpoints of one's own make sense for it, or a new one.

use anyhow::{Context, anyhow, bail, ensure};
use fairlead_api::view::{EndpointPort, Protocol, Service, ServicePort, ServiceType, TargetPort};
use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Delete, Error, Selection};
use serde_json::{Value, json};

use super::flags::{Port, Wanted};
use super::slice::{MANAGER, SERVICE_NAME};

#[cfg(test)]
mod tests;

/// The annotation of a Service we made.
const MADE_BY: &str = "fairlead.dev/made-by";

/// The Service, and where its ports lead at the endpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) uid: String,
    pub(super) cluster_ip: String,
    pub(super) ports: Vec<EndpointPort>,
    /// It was made just now.
    pub(super) new: bool,
}

/// The Service, made if there is none.
pub(super) async fn ensure(cluster: &Cluster, wanted: &Wanted) -> anyhow::Result<Found> {
    let (object, new) = match cluster.get(&kinds::SERVICE, &wanted.namespace, &wanted.name).await {
        Ok(object) => (object, false),
        Err(Error::NotFound(_)) => (make(cluster, wanted).await?, true),
        Err(error) => return Err(error.into()),
    };
    let service: Service = serde_json::from_value(object).context("the Service makes no sense")?;
    let ports = ports(&service, &wanted.ports)?;
    Ok(Found { uid: service.metadata.uid, cluster_ip: service.spec.cluster_ip, ports, new })
}

async fn make(cluster: &Cluster, wanted: &Wanted) -> anyhow::Result<Value> {
    let Wanted { namespace, name, .. } = wanted;
    ensure!(!wanted.ports.is_empty(), "--port: there is no Service {namespace}/{name} yet; say which ports it has");
    Ok(cluster.create(&kinds::SERVICE, &new(wanted)).await?)
}

/// A Service without a selector, whose ports are the endpoint's.
fn new(wanted: &Wanted) -> Value {
    let port = |port: &Port| {
        let mut object = json!({"port": port.number, "protocol": port.protocol.as_str()});
        if !port.name.is_empty() {
            object.set("name", port.name.as_str());
        }
        object
    };
    let family = if wanted.address.is_ipv4() { "IPv4" } else { "IPv6" };
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": wanted.name, "namespace": wanted.namespace, "annotations": {MADE_BY: MANAGER}},
        "spec": {"ports": wanted.ports.iter().map(port).collect::<Vec<_>>(), "ipFamilies": [family]},
    })
}

/// Where the ports of a Service lead at the endpoint.
pub(super) fn ports(service: &Service, wanted: &[Port]) -> anyhow::Result<Vec<EndpointPort>> {
    let (meta, spec) = (&service.metadata, &service.spec);
    let name = format!("{}/{}", meta.namespace, meta.name);
    if !spec.selector.is_empty() {
        let selector: Vec<String> = spec.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let selector = selector.join(",");
        bail!(
            "the Service {name} selects Pods ({selector}); an endpoint of your own needs a Service without a selector"
        );
    }
    if spec.kind == ServiceType::ExternalName {
        bail!("the Service {name} is of type ExternalName and has no endpoints");
    }
    if wanted.is_empty() {
        return spec.ports.iter().map(|port| endpoint_port(port, target(port)?)).collect();
    }
    wanted.iter().map(|port| endpoint_port(served(&spec.ports, port)?, port.number)).collect()
}

fn endpoint_port(port: &ServicePort, number: u16) -> anyhow::Result<EndpointPort> {
    Ok(EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol),
        port: Some(number.into()),
        app_protocol: port.app_protocol.clone(),
    })
}

/// The number a port of the Service leads to.
fn target(port: &ServicePort) -> anyhow::Result<u16> {
    let number = match &port.target_port {
        TargetPort::Name(name) => {
            bail!("--port: the Service's port {} leads to {name:?}; say which number that is", port.port)
        }
        TargetPort::Number(0) => port.port,
        TargetPort::Number(number) => *number,
    };
    u16::try_from(number).map_err(|_| anyhow!("the Service's port {} leads nowhere", port.port))
}

/// The port of the Service that a port of the endpoint serves: the one of that name; without a name the only one of its protocol,
/// or the one that leads to this number.
fn served<'a>(ports: &'a [ServicePort], wanted: &Port) -> anyhow::Result<&'a ServicePort> {
    let alike = || ports.iter().filter(|port| port.protocol == wanted.protocol);
    let leads_here = |port: &&ServicePort| target(port).is_ok_and(|number| number == wanted.number);
    let mut same = alike();
    let found = match (wanted.name.as_str(), same.next(), same.next()) {
        ("", only, None) => only,
        ("", ..) => alike().find(leads_here),
        (name, ..) => alike().find(|port| port.name == name),
    };
    found.ok_or_else(|| {
        let known: Vec<String> = ports.iter().map(described).collect();
        anyhow!("--port: none of the Service's ports is meant by {}; it has {}", said(wanted), known.join(", "))
    })
}

fn described(port: &ServicePort) -> String {
    let number = format!("{}{}", port.port, suffix(port.protocol));
    if port.name.is_empty() { number } else { format!("{} ({number})", port.name) }
}

fn said(port: &Port) -> String {
    let number = format!("{}{}", port.number, suffix(port.protocol));
    if port.name.is_empty() { number } else { format!("{}={number}", port.name) }
}

fn suffix(protocol: Protocol) -> String {
    if protocol == Protocol::Tcp { String::new() } else { format!("/{protocol}") }
}

/// Removes a Service we made, if nobody else has endpoints there. Returns whether it did.
pub(super) async fn remove(cluster: &Cluster, wanted: &Wanted) -> Result<bool, Error> {
    let Wanted { namespace, name, .. } = wanted;
    let service = match cluster.get(&kinds::SERVICE, namespace, name).await {
        Err(Error::NotFound(_)) => return Ok(false),
        service => service?,
    };
    let meta = service.at("metadata");
    let made = meta.at("annotations").text(MADE_BY) == MANAGER;
    let slices =
        Selection::all(&kinds::ENDPOINT_SLICE).in_namespace(namespace).with_labels(format!("{SERVICE_NAME}={name}"));
    let used = service.at("spec").map("selector").is_some_and(|selector| !selector.is_empty());
    if !made || used || !cluster.list(&slices).await?.objects.is_empty() {
        return Ok(false);
    }
    // Only as it was when looked at: somebody may have made it their own since.
    let (uid, version) = (meta.text("uid").to_owned(), meta.text("resourceVersion").to_owned());
    let how = Delete { uid: Some(uid), resource_version: Some(version), ..Delete::default() };
    match cluster.delete(&kinds::SERVICE, namespace, name, &how).await {
        Ok(_) => Ok(true),
        Err(Error::NotFound(_) | Error::Conflict(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
