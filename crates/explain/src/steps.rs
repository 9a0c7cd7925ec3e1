//! What is looked at, step by step. Each file answers one question about the case and writes what it saw into a draft.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::LazyLock;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{self, EndpointSlice, Family, Service, ServicePort, ServiceType};
use fairlead_endpoints::members::{self, Members};

use crate::report::{Finding, Severity, State, Step, StepId};
use crate::{Cause, Evidence, Objects, Pod, Question, Socket};

mod balancer;
mod dns;
mod exists;
mod listening;
mod path;
mod plan;
mod pods;
mod ports;
mod remedy;
mod reply;
mod rules;
mod selector;
mod slices;
mod spec;

/// So many of a list are written out.
const SHOWN: usize = 8;
/// The label with who keeps a slice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// Everything about one Service.
pub(crate) struct Case<'a> {
    pub(crate) question: &'a Question,
    pub(crate) objects: &'a Objects,
    pub(crate) evidence: &'a Evidence,
    pub(crate) key: &'a Key,
    pub(crate) service: &'a Service,
    /// The Pods it selects.
    pub(crate) pods: Vec<&'a Pod>,
    /// The slices that name it.
    pub(crate) slices: Vec<&'a EndpointSlice>,
    /// Its ports that the question is about.
    pub(crate) ports: Vec<&'a ServicePort>,
    /// Whether more is wanted than objects tell at a glance.
    pub(crate) deep: bool,
}

impl<'a> Case<'a> {
    pub(crate) fn new(
        question: &'a Question,
        objects: &'a Objects,
        evidence: &'a Evidence,
        deep: bool,
    ) -> Option<Case<'a>> {
        let key = &question.service;
        let service = &**objects.service(key)?;
        let mut case = Case {
            question,
            objects,
            evidence,
            key,
            service,
            pods: objects.pods_of(key).map(|pod| &**pod).collect(),
            slices: objects.slices_of(key).map(|slice| &**slice).collect(),
            ports: service.spec.ports.iter().collect(),
            deep,
        };
        if let Ok(ports) = spec::chosen(&case) {
            case.ports = ports;
        }
        Some(case)
    }

    /// The domain of the cluster: as the client's resolver has it, or as it is said.
    fn domain(&self) -> &'a str {
        let mut search = self.evidence.resolver.iter().flat_map(|resolver| &resolver.search);
        let seen = search.find_map(|entry| entry.strip_prefix("svc."));
        seen.map_or(self.objects.domain(), |domain| domain.trim_end_matches('.'))
    }

    /// The whole name of a Service of the cluster.
    fn whole_name(&self, service: &Key) -> String {
        format!("{}.{}.svc.{}", service.name, service.namespace, self.domain())
    }

    /// Whether it is only another name.
    fn is_alias(&self) -> bool {
        self.service.spec.kind == ServiceType::ExternalName
    }

    /// How bad it is that its Pods do not serve it: others may, in slices of their own.
    fn severity(&self) -> Severity {
        let own = self.slices.iter().filter(|slice| !self.is_made_from_pods(slice));
        let served = own.flat_map(|slice| &slice.endpoints).any(slices::is_ready);
        if served { Severity::Warning } else { Severity::Broken }
    }

    /// Whether a slice is one that controllers make from Pods.
    fn is_made_from_pods(&self, slice: &EndpointSlice) -> bool {
        slice.metadata.labels.get(MANAGED_BY).map(String::as_str) == Some(fairlead_endpoints::slices::CONTROLLER)
    }

    /// Reads the endpoints its Pods make in a family.
    fn members<T>(&self, family: Family, read: impl FnOnce(Members<'_>) -> T) -> T {
        let pods: Vec<&view::Pod> = self.pods.iter().map(|pod| &*pod.view).collect();
        let objects = self.objects;
        // Without any Node it is only not known which there are.
        let unknown = objects.nodes().next().is_none();
        let node = |name: &str| objects.node(name).map(|node| &**node).or(unknown.then_some(&NOWHERE));
        read(members::members(self.service, &pods, &node, family))
    }

    /// What listens in a Pod, if somebody looked.
    fn sockets(&self, pod: &Pod) -> Option<&'a [Socket]> {
        let meta = &pod.view.metadata;
        let key = Key::new(meta.namespace.as_str(), meta.name.as_str());
        self.evidence.sockets.get(&key).map(Vec::as_slice)
    }

    /// A step about which nothing is known.
    fn blind(&self, why: &str) -> Draft {
        let more = self.evidence.blind.as_ref().map(|more| format!(": {more}")).unwrap_or_default();
        Draft::unknown(format!("{why}{more}"))
    }

    /// The Service of the cluster's DNS server.
    fn dns_service(&self) -> Option<&'a Service> {
        self.objects.service(&Key::new("kube-system", "kube-dns")).map(|service| &**service)
    }

    /// Whether the load balancer wants to see packets to an address itself.
    fn is_left_to_balancer(&self, address: IpAddr) -> bool {
        let mut ingress = self.service.status.load_balancer.ingress.iter();
        ingress.any(|place| place.ip_mode.as_deref() == Some("Proxy") && ip::parse(&place.ip) == Some(address))
    }
}

/// Stands for a Node that nobody told of.
static NOWHERE: LazyLock<view::Node> = LazyLock::new(view::Node::default);

/// A step on its way.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    state: Option<State>,
    evidence: Vec<String>,
    findings: Vec<Finding>,
}

impl Draft {
    pub(crate) fn skipped(why: impl Into<String>) -> Draft {
        Draft { state: Some(State::Skipped), evidence: vec![why.into()], findings: Vec::new() }
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Draft {
        Draft { state: Some(State::Unknown), evidence: vec![why.into()], findings: Vec::new() }
    }

    pub(crate) fn see(&mut self, line: impl Into<String>) {
        self.evidence.push(line.into());
    }

    pub(crate) fn broken(&mut self, cause: Cause, message: impl Into<String>, remedy: Vec<String>) {
        self.find(Severity::Broken, cause, message, remedy);
    }

    pub(crate) fn warn(&mut self, cause: Cause, message: impl Into<String>, remedy: Vec<String>) {
        self.find(Severity::Warning, cause, message, remedy);
    }

    pub(crate) fn find(&mut self, severity: Severity, cause: Cause, message: impl Into<String>, remedy: Vec<String>) {
        self.findings.push(Finding { cause, severity, message: message.into(), remedy });
    }

    /// Whether nothing is written yet.
    pub(crate) fn is_quiet(&self) -> bool {
        self.evidence.is_empty() && self.findings.is_empty()
    }

    pub(crate) fn finish(self, id: StepId) -> Step {
        let has = |severity| self.findings.iter().any(|finding| finding.severity == severity);
        let state = match self.state {
            _ if has(Severity::Broken) => State::Bad,
            _ if has(Severity::Warning) => State::Warn,
            state => state.unwrap_or(State::Ok),
        };
        Step { id, title: id.title(), state, evidence: self.evidence, findings: self.findings }
    }
}

/// Looks at one step of a Service that exists.
pub(crate) fn look(id: StepId, case: &Case<'_>) -> Draft {
    match id {
        StepId::Exists => exists::look(case),
        StepId::Spec => spec::look(case),
        StepId::Selector => selector::look(case),
        StepId::Pods => pods::look(case),
        StepId::Ports => ports::look(case),
        StepId::Listening => listening::look(case),
        StepId::Slices => slices::look(case),
        StepId::Dns => dns::look(case),
        StepId::LoadBalancer => balancer::look(case),
        StepId::Plan => plan::look(case),
        StepId::Rules => rules::look(case),
        StepId::Path => path::look(case),
        StepId::Reply => reply::look(case),
    }
}

/// Why there is no such Service.
pub(crate) fn missing(question: &Question, objects: &Objects) -> Draft {
    exists::missing(question, objects)
}

/// `1 Pod`, `2 Pods`
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Some things in a row; only the first of many.
fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    let mut items = items.into_iter();
    let shown: Vec<String> = items.by_ref().take(SHOWN).map(|item| item.to_string()).collect();
    let rest = items.count();
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}
