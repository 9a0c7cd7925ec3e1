//! Does the Service exist, and if not, which was meant?

use fairlead_api::source::Key;
use fairlead_api::view::{ServicePort, ServiceType, TargetPort};

use super::remedy::{self, named, quote};
use super::{Case, Draft, list};
use crate::nearest::nearest;
use crate::{Cause, Objects, Question};

/// Says what it is.
pub(super) fn look(case: &Case<'_>) -> Draft {
    let mut draft = Draft::default();
    draft.see(what(case));
    let service = case.service;
    if let Some(since) = &service.metadata.deletion_timestamp {
        let waits = list(service.metadata.finalizers.iter());
        let message = format!("it is being deleted since {since} and waits for {waits}");
        draft.warn(Cause::ServiceBeingDeleted, message, vec![remedy::get("service", case.key)]);
    } else if case.objects.namespace(&case.key.namespace).is_some_and(|namespace| namespace.is_terminating()) {
        let message = format!("its namespace {} is being deleted", case.key.namespace);
        let remedy = format!("kubectl get namespace {} -o yaml", quote(&case.key.namespace));
        draft.warn(Cause::ServiceBeingDeleted, message, vec![remedy]);
    }
    draft
}

/// `ClusterIP 10.96.0.10, port http 80/TCP -> 9376`
fn what(case: &Case<'_>) -> String {
    let spec = &case.service.spec;
    let kind = type_name(spec.kind);
    if case.is_alias() {
        return format!("{kind} {}", spec.external_name);
    }
    let addresses = match case.service.is_headless() {
        true => "headless".to_owned(),
        false => list(cluster_ips(case).iter()),
    };
    let ports = spec.ports.iter().map(port_text).collect::<Vec<_>>();
    format!("{kind} {addresses}, {}", if ports.is_empty() { "no ports".to_owned() } else { list(ports.iter()) })
}

/// As manifests have it.
pub(super) fn type_name(kind: ServiceType) -> &'static str {
    match kind {
        ServiceType::ClusterIp => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
        ServiceType::ExternalName => "ExternalName",
    }
}

pub(super) fn cluster_ips(case: &Case<'_>) -> Vec<String> {
    let spec = &case.service.spec;
    let one = || Some(spec.cluster_ip.clone()).filter(|ip| !ip.is_empty() && ip != "None").into_iter().collect();
    if spec.cluster_ips.is_empty() { one() } else { spec.cluster_ips.clone() }
}

/// `http 80/TCP -> 9376`
pub(super) fn port_text(port: &ServicePort) -> String {
    let target = match &port.target_port {
        TargetPort::Number(0) => port.port.to_string(),
        TargetPort::Number(number) => number.to_string(),
        TargetPort::Name(name) => name.clone(),
    };
    let name = if port.name.is_empty() { String::new() } else { format!("{} ", port.name) };
    let node = if port.node_port == 0 { String::new() } else { format!(", node port {}", port.node_port) };
    format!("{name}{}/{} -> {target}{node}", port.port, port.protocol)
}

/// Why there is no such Service.
pub(super) fn missing(question: &Question, objects: &Objects) -> Draft {
    let key = &question.service;
    let mut draft = Draft::default();
    let elsewhere: Vec<&Key> = objects.services().map(|(key, _)| key).filter(|other| other.name == key.name).collect();
    let known = objects.namespaces().next().is_some();
    if known && objects.namespace(&key.namespace).is_none() {
        no_namespace(key, objects, &elsewhere, &mut draft);
    } else if let Some(first) = elsewhere.first() {
        let namespaces = list(elsewhere.iter().map(|key| &key.namespace));
        let message = format!(
            "there is no Service {} in namespace {}, but one in {namespaces}: from other namespaces it is called {}.{}",
            key.name, key.namespace, first.name, first.namespace
        );
        draft.broken(Cause::ServiceInOtherNamespace, message, vec![again(first)]);
    } else {
        no_name(key, objects, &mut draft);
    }
    draft
}

/// Asks about another Service.
fn again(key: &Key) -> String {
    format!("fairlead explain svc/{}", named(key))
}

fn no_namespace(key: &Key, objects: &Objects, elsewhere: &[&Key], draft: &mut Draft) {
    let near = nearest(&key.namespace, objects.namespaces().map(|namespace| namespace.metadata.name.as_str()));
    let hint = near.map(|near| format!("; there is {near}")).unwrap_or_default();
    let mut remedy: Vec<_> = near.map(|near| again(&Key::new(near, &*key.name))).into_iter().collect();
    remedy.extend(elsewhere.iter().map(|key| again(key)).take(3));
    remedy.push("kubectl get namespaces".to_owned());
    draft.broken(Cause::NamespaceMissing, format!("there is no namespace {}{hint}", key.namespace), remedy);
}

fn no_name(key: &Key, objects: &Objects, draft: &mut Draft) {
    let here = objects.services().map(|(key, _)| key).filter(|other| other.namespace == key.namespace);
    let here: Vec<&str> = here.map(|other| &*other.name).collect();
    let all = format!("kubectl get services -n {}", quote(&key.namespace));
    if let Some(near) = nearest(&key.name, here.iter().copied()) {
        let message = format!("there is no Service {key}, but one named {near}");
        let remedy = vec![again(&Key::new(&*key.namespace, near)), all];
        return draft.broken(Cause::ServiceNameMisspelt, message, remedy);
    }
    draft.see(format!("Services of namespace {}: {}", key.namespace, list(here.iter())));
    draft.broken(Cause::ServiceMissing, format!("there is no Service {key}"), vec![all]);
}
