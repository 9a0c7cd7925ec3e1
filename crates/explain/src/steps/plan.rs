//! Does the plan of the client's Node forward the packet: policies, topology, source ranges?

use std::collections::BTreeSet;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{ServiceType, TrafficPolicy};
use fairlead_plan::{FrontendKind, PortKey, Reason, Step, Verdict};
use serde_json::json;

use super::slices::{is_ready, is_serving};
use super::{Case, Draft, list, remedy};
use crate::{Cause, Decided, From, Severity};

pub(super) fn look(case: &Case<'_>) -> Draft {
    if let Some(why) = case.not_proxied() {
        return Draft::skipped(why);
    }
    let mut draft = Draft::default();
    if case.evidence.decisions.is_empty() {
        return match local(case) {
            Some((cause, message)) => {
                draft.broken(cause, message, remedies(case, cause));
                draft
            }
            None => case.blind("the plan of the client's Node was not looked at"),
        };
    }
    let (mut wrong, mut served_elsewhere) = (Vec::new(), false);
    for decided in &case.evidence.decisions {
        let Decided { node, packet, decision } = decided;
        let to = std::net::SocketAddr::new(packet.dst, packet.port);
        draft.see(format!("{node}: from {} to {to}/{}: {}", packet.src, packet.protocol, decision.verdict));
        decision.steps.iter().filter(|step| is_worth_telling(step)).for_each(|step| draft.see(format!("  {step}")));
        wrong.extend(refusal(case, decided));
        served_elsewhere |= is_announced_elsewhere(case, decided);
    }
    let all = wrong.len() == case.evidence.decisions.len() && !served_elsewhere;
    wrong.sort();
    wrong.dedup();
    for (cause, message) in wrong {
        let severity = if all { Severity::Broken } else { Severity::Warning };
        draft.find(severity, cause, message, remedies(case, cause));
    }
    for (cause, message) in taken(case) {
        draft.warn(cause, message, remedies(case, cause));
    }
    draft
}

/// What explains where packets go, beyond the plain case.
fn is_worth_telling(step: &Step) -> bool {
    let plain = matches!(step, Step::Found { .. } | Step::Policy { short_circuit: false, .. } | Step::From { .. });
    let unchanged = matches!(step, Step::Masquerade { masquerade: false, .. } | Step::OneOf { affinity: None, .. });
    !plain && !unchanged
}

/// Whose the address is that a packet is for, and what kind of address that is.
fn found(steps: &[Step]) -> Option<(&PortKey, FrontendKind)> {
    steps.iter().find_map(|step| match step {
        Step::Found { port, kind, .. } => Some((port, *kind)),
        _ => None,
    })
}

/// Whether a packet is for an address that another Node with endpoints draws to itself: a load balancer asks each Node before it
/// sends it anything.
fn is_announced_elsewhere(case: &Case<'_>, decided: &Decided) -> bool {
    let steps = &decided.decision.steps;
    let balanced = found(steps).is_some_and(|(_, kind)| kind == FrontendKind::LoadBalancerIp);
    let outside = matches!(case.question.from, From::Outside(_));
    outside && balanced && steps.iter().any(|step| matches!(step, Step::ServedElsewhere))
}

/// Addresses of the Service that this client does not use, and that another Service has.
fn taken(case: &Case<'_>) -> BTreeSet<(Cause, String)> {
    let others = case.evidence.others.iter();
    let taken = others.filter_map(|decided| refusal(case, decided));
    taken.filter(|(cause, _)| *cause == Cause::AddressTaken).collect()
}

/// Why a packet does not get to an endpoint of the Service.
fn refusal(case: &Case<'_>, decided: &Decided) -> Option<(Cause, String)> {
    let Decided { node, packet, decision } = decided;
    let steps = &decision.steps;
    let to = std::net::SocketAddr::new(packet.dst, packet.port);
    if let Some((port, _)) = found(steps).filter(|(port, _)| *port.service != *case.key) {
        return Some((Cause::AddressTaken, format!("{to} belongs to Service {}, which was there first", port.service)));
    }
    if matches!(decision.verdict, Verdict::Dnat(_)) || case.is_left_to_balancer(packet.dst) {
        return None;
    }
    steps
        .iter()
        .find_map(|step| match step {
            Step::SourceRanges { allowed, inside: false } => {
                let message = format!("{} is not in loadBalancerSourceRanges ({})", packet.src, list(allowed.iter()));
                Some((Cause::SourceNotAllowed, message))
            }
            Step::ServedElsewhere => {
                Some((Cause::NoLocalEndpoint, nobody_here(case, found(steps).map(|(_, kind)| kind), node)))
            }
            Step::NodePortNotServedHere { address } => {
                Some((Cause::NodePortNotServedHere, format!("Node {node} does not serve node ports on {address}")))
            }
            Step::LoopbackFromOutside => Some((
                Cause::NodePortNotServedHere,
                "node ports on loopback addresses serve only the Node itself".to_owned(),
            )),
            Step::FamilyNotProxied(family) => {
                Some((Cause::FamilyNotProxied, format!("the proxy of Node {node} does not handle {family}")))
            }
            Step::Note(reason @ Reason::NoTopologyMatch { .. }) => Some((Cause::NoTopologyMatch, reason.to_string())),
            _ => None,
        })
        .or_else(|| {
            let why = steps.last().map(|step| format!(": {step}")).unwrap_or_default();
            Some((Cause::PlanRefuses, format!("to {to}/{} on Node {node}: {}{why}", packet.protocol, decision.verdict)))
        })
}

fn nobody_here(case: &Case<'_>, kind: Option<FrontendKind>, node: &str) -> String {
    let policy = match kind {
        Some(FrontendKind::ClusterIp) | None => "internalTrafficPolicy",
        Some(_) => "externalTrafficPolicy",
    };
    format!("{policy} is Local, and no ready endpoint is on Node {node}, but on {}", elsewhere(case))
}

fn elsewhere(case: &Case<'_>) -> String {
    let endpoints = case.slices.iter().flat_map(|slice| &slice.endpoints).filter(|endpoint| is_ready(endpoint));
    let mut nodes: Vec<&str> = endpoints.filter_map(|endpoint| endpoint.node_name.as_deref()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.is_empty() { "none that is known".to_owned() } else { list(nodes.iter()) }
}

/// What objects tell about policy Local when nobody made a plan.
fn local(case: &Case<'_>) -> Option<(Cause, String)> {
    if case.service.spec.internal_traffic_policy != TrafficPolicy::Local {
        return None;
    }
    let node = match &case.question.from {
        From::Pod(key) => Some(case.objects.pod(key)?.view.spec.node_name.as_str()),
        From::Node(name) => name.as_deref(),
        From::Cluster | From::Outside(_) => None,
    };
    let node = node.filter(|name| !name.is_empty())?;
    let mut endpoints = case.slices.iter().flat_map(|slice| &slice.endpoints);
    let here = endpoints
        .any(|endpoint| endpoint.node_name.as_deref() == Some(node) && (is_ready(endpoint) || is_serving(endpoint)));
    (!here).then(|| (Cause::NoLocalEndpoint, nobody_here(case, None, node)))
}

fn remedies(case: &Case<'_>, cause: Cause) -> Vec<String> {
    let source = case.evidence.decisions.first().map(|decided| decided.packet.src.to_string());
    match cause {
        Cause::NoLocalEndpoint => {
            let kind =
                case.evidence.decisions.iter().find_map(|decided| found(&decided.decision.steps)).map(|(_, kind)| kind);
            let field = match kind {
                Some(FrontendKind::ClusterIp) | None => "internalTrafficPolicy",
                Some(_) => "externalTrafficPolicy",
            };
            vec![case.patch(&json!({"spec": {field: "Cluster"}})), "kubectl get pods -o wide".to_owned()]
        }
        Cause::SourceNotAllowed => {
            let mut ranges = case.service.spec.load_balancer_source_ranges.clone();
            ranges.extend(source.and_then(|text| ip::parse(&text)).map(|ip| ipnet_text(&ip)));
            vec![case.patch(&json!({"spec": {"loadBalancerSourceRanges": ranges}}))]
        }
        Cause::AddressTaken => vec!["kubectl get services --all-namespaces -o wide".to_owned(), case.show()],
        Cause::NodePortNotServedHere => vec![
            "fairlead proxy --nodeport-addresses 0.0.0.0/0,::/0".to_owned(),
            "kubectl get nodes -o wide".to_owned(),
        ],
        Cause::NoTopologyMatch => vec![case.patch(&json!({"spec": {"topologyKeys": ["kubernetes.io/hostname", "*"]}}))],
        _ => {
            let port = case.ports.first().map_or(80, |port| port.port);
            let Key { namespace, name } = case.key;
            let to = format!("svc/{namespace}/{name}:{port}");
            vec![format!("fairlead trace --from node --to {}", remedy::quote(&to)), case.show()]
        }
    }
}

fn ipnet_text(ip: &std::net::IpAddr) -> String {
    format!("{ip}/{}", if ip.is_ipv4() { 32 } else { 128 })
}

impl Case<'_> {
    /// Why nothing of it is proxied.
    pub(super) fn not_proxied(&self) -> Option<&'static str> {
        if self.service.spec.kind == ServiceType::ExternalName {
            return Some("an alias is not proxied");
        }
        if self.is_own_dns() {
            return Some("every Node answers at its address itself");
        }
        self.service.is_headless().then_some("a headless Service is not proxied: clients reach its Pods themselves")
    }
}
