//! The variables that tell a container where Services are: `{NAME}_SERVICE_HOST` and its like, and those Docker's links had.

use std::collections::{BTreeMap, HashMap};

use fairlead_api::Look;
use fairlead_api::view::{Service, ServicePort};
use serde_json::Value;

/// The Service every Pod hears of.
const API_SERVER: (&str, &str) = ("default", "kubernetes");

/// Variables of Services.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// By the name of the Service; no variable is there twice.
    pub(super) in_order: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

impl Links {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.places.get(name).map(|place| self.in_order[*place].1.as_str())
    }

    /// Two Services may mean the same variable (`foo` and `foo-service`): the later wins.
    fn set(&mut self, name: String, value: String) {
        match self.places.get(&name) {
            Some(place) => self.in_order[*place].1 = value,
            None => {
                self.places.insert(name.clone(), self.in_order.len());
                self.in_order.push((name, value));
            }
        }
    }
}

/// The variables a Pod's containers have from Services.
pub(super) fn variables(pod: &Value, services: &[&Service]) -> Links {
    let mut links = Links::default();
    for service in seen_by(pod, services).into_values() {
        of(service, &mut links);
    }
    links
}

/// The Services a Pod sees, by name: those of its namespace if it wants links, and the API server in any case, unless its own
/// namespace has another Service of that name.
fn seen_by<'a>(pod: &Value, services: &[&'a Service]) -> BTreeMap<&'a str, &'a Service> {
    let namespace = pod.at("metadata").text("namespace");
    let links = pod.at("spec").flag_opt("enableServiceLinks").unwrap_or(true);
    let mut seen = BTreeMap::new();
    for service in services.iter().copied().filter(|service| service.has_cluster_ip()) {
        let (home, name) = (service.metadata.namespace.as_str(), service.metadata.name.as_str());
        if (home, name) == API_SERVER {
            seen.entry(name).or_insert(service);
        } else if links && home == namespace {
            seen.insert(name, service);
        }
    }
    seen
}

/// The variables of one Service. Without ports it has none: validation does not let it be.
fn of(service: &Service, links: &mut Links) {
    let Some(first) = service.spec.ports.first() else { return };
    let (name, host) = (variable(&service.metadata.name), service.spec.cluster_ip.as_str());
    links.set(format!("{name}_SERVICE_HOST"), host.to_owned());
    links.set(format!("{name}_SERVICE_PORT"), first.port.to_string());
    for port in service.spec.ports.iter().filter(|port| !port.name.is_empty()) {
        links.set(format!("{name}_SERVICE_PORT_{}", variable(&port.name)), port.port.to_string());
    }
    links.set(format!("{name}_PORT"), url(host, first));
    for port in &service.spec.ports {
        let protocol = port.protocol.as_str();
        let link = format!("{name}_PORT_{}_{protocol}", port.port);
        links.set(link.clone(), url(host, port));
        links.set(format!("{link}_PROTO"), protocol.to_lowercase());
        links.set(format!("{link}_PORT"), port.port.to_string());
        links.set(format!("{link}_ADDR"), host.to_owned());
    }
}

/// `my-service` as it stands in the names of variables.
fn variable(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

fn url(host: &str, port: &ServicePort) -> String {
    let scheme = port.protocol.as_str().to_lowercase();
    let number = port.port;
    if host.contains(':') { format!("{scheme}://[{host}]:{number}") } else { format!("{scheme}://{host}:{number}") }
}
