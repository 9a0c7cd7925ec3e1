//! Can the Service work as it is written, and has it what the client asks for?

use fairlead_api::view::{Service, ServicePort, ServiceType, TargetPort};
use serde_json::json;

use super::exists::port_text;
use super::{Case, Draft, list, remedy};
use crate::nearest::nearest;
use crate::{Cause, From};
use alias::alias;

mod alias;

/// A label that gives a Service to another proxy.
const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";
/// The proxy that the Service of our own DNS server is left to: every Node answers at its address itself.
const OWN_DNS: &str = "fairlead-dns";
/// A label that proxies take for headless.
const HEADLESS: &str = "service.kubernetes.io/headless";

pub(super) fn look(case: &Case<'_>) -> Draft {
    let mut draft = Draft::default();
    if case.is_alias() {
        alias(case, &mut draft);
        return draft;
    }
    if case.service.spec.ports.is_empty() && !case.service.is_headless() {
        let remedy = case.patch(&json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}));
        draft.broken(Cause::NoPorts, "it has no ports, so nothing can be sent to it", vec![remedy]);
    }
    if !case.service.is_headless() {
        proxied(case, &mut draft);
    }
    asked_port(case, &mut draft);
    if matches!(case.question.from, From::Outside(_)) {
        outside(case, &mut draft);
    }
    draft
}

/// What keeps proxies from looking at it.
fn proxied(case: &Case<'_>, draft: &mut Draft) {
    let unlabel = |label: &str| format!("kubectl label service {} {label}-", remedy::named(case.key));
    let labels = &case.service.metadata.labels;
    if case.is_own_dns() {
        draft.see("every Node answers at its address itself");
    } else if let Some(proxy) = labels.get(PROXY_NAME) {
        let message = format!("its label {PROXY_NAME} leaves it to the proxy {proxy:?}");
        draft.broken(Cause::LeftToOtherProxy, message, vec![unlabel(PROXY_NAME)]);
    }
    if labels.contains_key(HEADLESS) {
        let message = format!("its label {HEADLESS} keeps proxies from serving it although it has a cluster IP");
        draft.broken(Cause::LabelledHeadless, message, vec![unlabel(HEADLESS)]);
    }
    if !case.service.has_cluster_ip() {
        let message = "it has no cluster IP: none was allocated".to_owned();
        let remedy = vec!["kubectl get servicecidrs".to_owned(), remedy::describe("service", case.key)];
        draft.broken(Cause::ClusterIpMissing, message, remedy);
    }
}

impl Case<'_> {
    /// Whether it is the Service of our own DNS server.
    pub(super) fn is_own_dns(&self) -> bool {
        is_own_dns(self.service)
    }

    /// Whether packets to the DNS server go through the rules of a proxy.
    pub(crate) fn is_dns_proxied(&self) -> bool {
        self.dns_service().is_some_and(|dns| !is_own_dns(dns))
    }
}

fn is_own_dns(service: &Service) -> bool {
    service.metadata.labels.get(PROXY_NAME).is_some_and(|proxy| proxy == OWN_DNS)
}

/// The ports of a Service that a question names; the cause if there are none.
pub(super) fn chosen<'a>(case: &Case<'a>) -> Result<Vec<&'a ServicePort>, (Cause, String)> {
    let ports: Vec<&ServicePort> = case.service.spec.ports.iter().collect();
    let outside = matches!(case.question.from, From::Outside(_));
    let fits = |port: &ServicePort, text: &str| {
        port.name == text || port.port.to_string() == text || outside && port.node_port.to_string() == text
    };
    let Some(text) = &case.question.port else { return by_protocol(case, ports) };
    let found: Vec<_> = ports.iter().copied().filter(|port| fits(port, text)).collect();
    if !found.is_empty() {
        return by_protocol(case, found);
    }
    let number = text.parse::<i32>().ok();
    if let Some(port) = ports.iter().find(|port| number.is_some() && target(case, port) == number) {
        // A headless Service has no proxy that would change ports: the Pods' own are the right ones.
        if case.service.is_headless() {
            return by_protocol(case, vec![port]);
        }
        let message = format!("port {text} is that of the Pods; clients of the Service use {}", port.port);
        return Err((Cause::TargetPortUsed, message));
    }
    if let Some(port) = ports.iter().find(|port| number.is_some_and(|number| number != 0 && port.node_port == number)) {
        let message = format!("port {text} is that of the Nodes; inside of the cluster clients use {}", port.port);
        return Err((Cause::NodePortUsed, message));
    }
    let near = nearest(text, ports.iter().map(|port| port.name.as_str()));
    let hint = near.map(|near| format!(", but one named {near}")).unwrap_or_default();
    let all = list(ports.iter().map(|port| port_text(port)));
    Err((Cause::PortUnknown, format!("it has no port {text}{hint}; its ports: {all}")))
}

fn by_protocol<'a>(case: &Case<'a>, ports: Vec<&'a ServicePort>) -> Result<Vec<&'a ServicePort>, (Cause, String)> {
    let Some(protocol) = case.question.protocol else { return Ok(ports) };
    let kept: Vec<_> = ports.iter().copied().filter(|port| port.protocol == protocol).collect();
    if kept.is_empty() && !ports.is_empty() {
        let has = list(ports.iter().map(|port| format!("{}/{}", port.port, port.protocol)));
        return Err((Cause::ProtocolDiffers, format!("it does not serve {protocol} there, but {has}")));
    }
    Ok(kept)
}

/// The number a port leads to, if all Pods agree on it.
fn target(case: &Case<'_>, port: &ServicePort) -> Option<i32> {
    match &port.target_port {
        TargetPort::Number(0) => Some(port.port),
        TargetPort::Number(number) => Some(*number),
        TargetPort::Name(name) => {
            let containers = case.pods.iter().flat_map(|pod| &pod.view.spec.containers);
            containers
                .flat_map(|container| &container.ports)
                .find(|own| own.name == *name)
                .map(|own| own.container_port)
        }
    }
}

fn asked_port(case: &Case<'_>, draft: &mut Draft) {
    match chosen(case) {
        Err((cause, message)) => draft.broken(cause, message, vec![case.show()]),
        Ok(ports) => {
            if case.question.port.is_some() {
                draft.see(format!("the port asked for: {}", list(ports.iter().map(|port| port_text(port)))));
            }
            headless_port(case, &ports, draft);
        }
    }
}

/// Clients of a headless Service meet the Pods themselves, at the Pods' ports.
fn headless_port(case: &Case<'_>, ports: &[&ServicePort], draft: &mut Draft) {
    if !case.service.is_headless() {
        return;
    }
    let Some(asked) = case.question.port.as_ref().and_then(|text| text.parse::<i32>().ok()) else {
        return same_ports(case, ports, draft);
    };
    let wrong = ports.iter().find_map(|port| target(case, port).filter(|number| *number != asked));
    if let Some(number) = wrong {
        let message = format!("it is headless: clients reach the Pods themselves, at port {number}, not {asked}");
        draft.broken(Cause::HeadlessPortUsed, message, vec![case.show()]);
    }
}

/// Without a selector not even the Pods tell which port is meant: whoever writes two of them expects a translation.
fn same_ports(case: &Case<'_>, ports: &[&ServicePort], draft: &mut Draft) {
    let by_hand = case.service.spec.selector.is_empty();
    let differing = ports.iter().find_map(|port| match port.target_port {
        TargetPort::Number(to) if to != 0 && to != port.port => Some((*port, to)),
        _ => None,
    });
    let Some((port, to)) = differing.filter(|_| by_hand) else { return };
    let message = format!(
        "it is headless and has no selector: nobody translates port {} to targetPort {to}, so both must be the same",
        port.port
    );
    draft.warn(Cause::HeadlessPortUsed, message, vec![case.set_port(port, "port", &json!(to)), case.show()]);
}

/// Whether a client outside of the cluster can reach it at all.
fn outside(case: &Case<'_>, draft: &mut Draft) {
    let spec = &case.service.spec;
    let has_addresses = !spec.external_ips.is_empty() || spec.kind == ServiceType::LoadBalancer;
    let node_ports: Vec<i32> = spec.ports.iter().map(|port| port.node_port).filter(|number| *number != 0).collect();
    if !has_addresses && node_ports.is_empty() {
        let what = if case.service.is_headless() { "a headless Service" } else { "type ClusterIP" };
        let message = format!("{what} is reached inside of the cluster only");
        let port = spec.ports.first().map_or(80, |port| port.port);
        let mut remedy = vec![format!("kubectl port-forward service/{} 8080:{port}", remedy::named(case.key))];
        if !case.service.is_headless() {
            remedy.insert(0, case.patch(&json!({"spec": {"type": "NodePort"}})));
        }
        draft.broken(Cause::NotExposed, message, remedy);
        return;
    }
    let asked = case.question.port.as_ref().and_then(|text| text.parse::<i32>().ok());
    if let Some(asked) = asked.filter(|asked| !has_addresses && !node_ports.contains(asked)) {
        let message =
            format!("from outside it is reached at a port of the Nodes: {}, not {asked}", list(node_ports.iter()));
        draft.broken(Cause::NodePortNeeded, message, vec![case.show(), "kubectl get nodes -o wide".to_owned()]);
    }
}
