//! Do the Pods have the ports that the Service's target ports name?

use fairlead_api::view::{ContainerPort, ServicePort, TargetPort};
use serde_json::json;

use super::{Case, Draft, list};
use crate::nearest::nearest;
use crate::{Cause, Pod, Severity};

pub(super) fn look(case: &Case<'_>) -> Draft {
    if case.service.spec.selector.is_empty() || case.is_alias() {
        return Draft::skipped("it selects no Pods");
    }
    let pods: Vec<&Pod> =
        case.pods.iter().copied().filter(|pod| !pod.view.is_terminal() && !pod.view.is_terminating()).collect();
    let mut draft = Draft::default();
    let mut wrong = Vec::new();
    for port in &case.ports {
        match &port.target_port {
            TargetPort::Name(name) => {
                wrong.extend(named(port, name, &pods, &mut draft).map(|lacking| (*port, name, lacking)))
            }
            TargetPort::Number(number) => numbered(case, port, *number, &pods, &mut draft),
        }
    }
    let all_ports = wrong.len() == case.ports.len();
    for (port, name, lacking) in wrong {
        let all_pods = lacking.len() == pods.len();
        let severity = if all_pods && all_ports { case.severity() } else { Severity::Warning };
        report(case, port, name, &lacking, severity, &mut draft);
    }
    draft
}

/// The ports of a Pod's containers and sidecars.
pub(super) fn declared(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    let spec = &pod.view.spec;
    let sidecars = spec.init_containers.iter().filter(|init| init.restart_policy.as_deref() == Some("Always"));
    spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports)
}

/// The number a port leads to in a Pod.
pub(super) fn number(pod: &Pod, port: &ServicePort) -> Option<i32> {
    match &port.target_port {
        TargetPort::Number(0) => Some(port.port),
        TargetPort::Number(number) => Some(*number),
        TargetPort::Name(name) => {
            declared(pod).find(|own| own.name == *name && own.protocol == port.protocol).map(|own| own.container_port)
        }
    }
}

/// The Pods that lack a port of that name, if there are any.
fn named<'a>(port: &ServicePort, name: &str, pods: &[&'a Pod], draft: &mut Draft) -> Option<Vec<&'a Pod>> {
    let lacking: Vec<&Pod> = pods.iter().copied().filter(|pod| number(pod, port).is_none()).collect();
    let mut numbers: Vec<i32> = pods.iter().filter_map(|pod| number(pod, port)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if !numbers.is_empty() {
        draft.see(format!("port {name} is {} in the Pods", list(numbers.iter())));
    }
    (!lacking.is_empty()).then_some(lacking)
}

fn report(case: &Case<'_>, port: &ServicePort, name: &str, lacking: &[&Pod], severity: Severity, draft: &mut Draft) {
    let Some(pod) = lacking.first() else { return };
    let own: Vec<&ContainerPort> = declared(pod).collect();
    let who = &pod.view.metadata.name;
    let has = list(own.iter().map(|own| format!("{} {}/{}", own.name, own.container_port, own.protocol)));
    let has = if has.is_empty() { "declares no ports".to_owned() } else { format!("has {has}") };
    draft.see(format!("{who} {has}"));
    let to = |target: serde_json::Value| vec![case.set_port(port, "targetPort", &target)];
    if let Some(other) = own.iter().find(|own| own.name == name) {
        let message = format!(
            "targetPort {name} is {} in Pod {who}, but the Service's port is {}",
            other.protocol, port.protocol
        );
        let remedy = case.set_port(port, "protocol", &json!(other.protocol));
        return draft.find(severity, Cause::TargetPortProtocolDiffers, message, vec![remedy]);
    }
    let same = own.iter().filter(|own| own.protocol == port.protocol && !own.name.is_empty());
    if let Some(near) = nearest(name, same.map(|own| own.name.as_str())) {
        let message = format!("targetPort {name} names no port of Pod {who}, but it has one named {near}");
        return draft.find(severity, Cause::TargetPortMisspelt, message, to(json!(near)));
    }
    let message = format!("targetPort {name} names no {} port of Pod {who}, which {has}", port.protocol);
    let first = own.iter().find(|own| own.protocol == port.protocol).map(|own| json!(own.container_port));
    let remedy = first.map_or_else(|| vec![case.show()], to);
    draft.find(severity, Cause::TargetPortNameMissing, message, remedy);
}

/// A number works whether a container declares it or not; who declares others most likely meant one of them.
fn numbered(case: &Case<'_>, port: &ServicePort, number: i32, pods: &[&Pod], draft: &mut Draft) {
    let number = if number == 0 { port.port } else { number };
    draft.see(format!("port {} leads to {number}", port.port));
    let seen = case.pods.iter().any(|pod| case.sockets(pod).is_some()) || case.evidence.live.is_some();
    if !case.deep || seen || pods.is_empty() {
        return;
    }
    let others = |pod: &&Pod| {
        let own: Vec<i32> =
            declared(pod).filter(|own| own.protocol == port.protocol).map(|own| own.container_port).collect();
        !own.is_empty() && !own.contains(&number)
    };
    if pods.iter().all(others)
        && let Some(own) = pods.iter().flat_map(|pod| declared(pod)).find(|own| own.protocol == port.protocol)
    {
        let message = format!("targetPort {number} is none of the ports the Pods declare ({})", own.container_port);
        let remedy = vec![case.set_port(port, "targetPort", &json!(own.container_port))];
        draft.warn(Cause::TargetPortNotDeclared, message, remedy);
    }
}
