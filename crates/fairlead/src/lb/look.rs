//! What is known of load balancers: from the API, and from the page of the balancer of this machine, if one runs here.

use std::collections::BTreeMap;

use anyhow::Context;
use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Service, ServiceType, View};
use fairlead_api::{Look, kinds};
use fairlead_balancer::run::page::{Balance, PATH, Report};
use fairlead_balancer::spec::{self, Options, Refusal, Spec, names};
use fairlead_cluster::{Cluster, Selection};
use serde_json::Value;

use super::Place;
use crate::{door, page};

/// The label with the Service a slice belongs to.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Everything that is known.
pub(super) struct Known {
    pub(super) cluster: Cluster,
    pub(super) services: Vec<Service>,
    /// Of the balancer of this machine; `None`: there is none, and why.
    pub(super) report: Result<Report, String>,
    /// The last thing that was refused of a Service.
    refusals: BTreeMap<(String, String), String>,
    slices: BTreeMap<(String, String), Vec<EndpointSlice>>,
}

impl Known {
    /// Asks for load balancers of a namespace, or of all, or for one.
    pub(super) async fn look(place: &Place, namespace: Option<&str>, name: Option<&str>) -> anyhow::Result<Known> {
        let cluster = door::open(place.kubeconfig.as_deref()).await?.managed_by("fairlead-lb");
        Known::within(cluster, &place.page, namespace, name).await
    }

    /// The same of a cluster that is known, and of the balancer whose page is there.
    pub(super) async fn within(
        cluster: Cluster,
        page: &str,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> anyhow::Result<Known> {
        let within = |kind| Selection::all(kind).in_namespace(namespace.unwrap_or_default());
        let fields = match name {
            Some(name) => format!("metadata.name={name}"),
            None => "spec.type=LoadBalancer".to_owned(),
        };
        let services: Vec<Service> = all(&cluster, within(&kinds::SERVICE).with_fields(fields)).await?;
        let mut slices: BTreeMap<(String, String), Vec<EndpointSlice>> = BTreeMap::new();
        let labels = name.map(|name| format!("{SERVICE_NAME}={name}")).unwrap_or_default();
        for slice in all::<EndpointSlice>(&cluster, within(&kinds::ENDPOINT_SLICE).with_labels(labels)).await? {
            if let Some(service) = slice.metadata.labels.get(SERVICE_NAME) {
                slices.entry((slice.metadata.namespace.clone(), service.clone())).or_default().push(slice);
            }
        }
        let refusals = refusals(&cluster, namespace).await.unwrap_or_default();
        let report = report(page).await.map_err(|error| format!("{error:#}"));
        Ok(Known { cluster, services, report, refusals, slices })
    }

    /// What the balancer of this machine says of a Service.
    pub(super) fn balance(&self, service: &Service) -> Option<&Balance> {
        let meta = &service.metadata;
        let same = |one: &&Balance| one.namespace == meta.namespace && one.name == meta.name;
        self.report.as_ref().ok()?.balancers.iter().find(same)
    }

    /// What was last refused of a Service.
    pub(super) fn refusal(&self, service: &Service) -> Option<&str> {
        self.refusals.get(&key(service)).map(String::as_str)
    }

    /// The slices of a Service.
    pub(super) fn slices(&self, service: &Service) -> &[EndpointSlice] {
        self.slices.get(&key(service)).map_or(&[], Vec::as_slice)
    }

    /// How many backends get connections, and how many there are.
    pub(super) fn healthy(&self, service: &Service) -> (usize, usize) {
        if let Some(balance) = self.balance(service) {
            let mut backends: BTreeMap<&str, bool> = BTreeMap::new();
            for backend in balance.listeners.iter().flat_map(|listener| &listener.backends) {
                let usable = backends.entry(ip_of(&backend.address)).or_insert(true);
                *usable &= backend.usable;
            }
            return (backends.values().filter(|usable| **usable).count(), backends.len());
        }
        let endpoints = self.slices(service).iter().flat_map(|slice| &slice.endpoints);
        let ready: Vec<bool> = endpoints.map(|endpoint| endpoint.conditions.ready.unwrap_or(true)).collect();
        (ready.iter().filter(|ready| **ready).count(), ready.len())
    }
}

/// `10.0.0.1:80` without its port.
fn ip_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(ip, _)| ip)
}

fn key(service: &Service) -> (String, String) {
    (service.metadata.namespace.clone(), service.metadata.name.clone())
}

/// What a Service asks for. Which groups there are only the balancer knows; here every name is believed.
pub(super) fn read(service: &Service) -> Result<Spec, Vec<Refusal>> {
    let groups = [names::GROUPS, names::EXTRA_GROUPS].into_iter().flat_map(|name| spec::list(service, name));
    spec::read(service, &Options { groups: groups.map(str::to_owned).collect(), sctp: true })
}

/// Whether a Service wants a load balancer.
pub(super) fn is_balanced(service: &Service) -> bool {
    service.spec.kind == ServiceType::LoadBalancer
}

/// The addresses of a Service's load balancer.
pub(super) fn addresses(service: &Service) -> Vec<String> {
    let ingress = service.status.load_balancer.ingress.iter();
    ingress.map(|one| if one.ip.is_empty() { one.hostname.clone() } else { one.ip.clone() }).collect()
}

/// All objects of a selection.
async fn all<T: View>(cluster: &Cluster, selection: Selection) -> anyhow::Result<Vec<T>> {
    let list = cluster.list(&selection).await?;
    let read = |object: &fairlead_cluster::Object| serde_json::from_slice(&object.json).ok();
    Ok(list.objects.iter().filter_map(read).collect())
}

async fn refusals(cluster: &Cluster, namespace: Option<&str>) -> anyhow::Result<BTreeMap<(String, String), String>> {
    let events = Selection::all(&kinds::EVENT).in_namespace(namespace.unwrap_or_default());
    let list = cluster.list(&events.with_fields("involvedObject.kind=Service,reason=SyncLoadBalancerFailed")).await?;
    let mut events: Vec<Value> = list.objects.iter().filter_map(|one| serde_json::from_slice(&one.json).ok()).collect();
    events.sort_by_key(|event| event.text("lastTimestamp").to_owned());
    let about = |event: &Value| {
        let object = event.at("involvedObject");
        ((object.text("namespace").to_owned(), object.text("name").to_owned()), event.text("message").to_owned())
    };
    Ok(events.iter().map(about).collect())
}

/// Asks the balancer of this machine.
pub(crate) async fn report(address: &str) -> anyhow::Result<Report> {
    let body = page::get(address, PATH).await.context("no load balancers are run here")?;
    serde_json::from_slice(&body).with_context(|| format!("{address} is not the page of a balancer"))
}

/// The key of a Service.
pub(super) fn key_of(service: &Service) -> Key {
    Key::new(service.metadata.namespace.as_str(), service.metadata.name.as_str())
}
