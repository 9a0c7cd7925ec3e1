//! Has the load balancer of the Service an address, and do its ports work?

use std::collections::BTreeSet;

use fairlead_api::view::{IngressPort, Service, ServiceType, View};
use serde_json::json;

use super::{Case, Draft, list, remedy};
use crate::{Balancer, Cause, Event, From, Severity};

/// Those who give addresses to load balancers, as they call themselves in Events.
const TELLERS: [&str; 3] = ["fairlead-balancer", "service-controller", "metallb-controller"];
/// What they say when they cannot, and what others of their kind do.
const REASONS: [&str; 5] =
    ["SyncLoadBalancerFailed", "UnAvailableLoadBalancer", "AllocationFailed", "FailedBuildModel", "FailedDeployModel"];

pub(super) fn look(case: &Case<'_>) -> Draft {
    let spec = &case.service.spec;
    if spec.kind != ServiceType::LoadBalancer {
        return Draft::skipped("it is not of type LoadBalancer");
    }
    let mut draft = Draft::default();
    let ingress = &case.service.status.load_balancer.ingress;
    if ingress.is_empty() {
        pending(case, &mut draft);
        return draft;
    }
    draft.see(list(ingress.iter().map(|place| if place.ip.is_empty() { &place.hostname } else { &place.ip })));
    // A Node that announces an address records an Event each time, so the last Event counts.
    let announced = |event: &Event| ["AddressUnguarded", "nodeAssigned"].contains(&&*event.reason);
    if let Some(event) = case.objects.last_event(Service::KIND.kind, case.key, announced)
        && event.reason == "AddressUnguarded"
    {
        let message = event.message.clone();
        draft.find(severity(case), Cause::LoadBalancerNotAnnounced, message, vec!["fairlead lb ls".to_owned()]);
    }
    let asked = |port: &&IngressPort| {
        case.ports.is_empty() || case.ports.iter().any(|one| (one.port, one.protocol) == (port.port, port.protocol))
    };
    let mut seen = BTreeSet::new();
    for port in ingress.iter().flat_map(|place| &place.ports).filter(asked) {
        let Some(error) = port.error.as_ref().filter(|_| seen.insert((port.port, port.protocol))) else { continue };
        let ours = error.starts_with("fairlead.dev/");
        let verb = if ours { "is not served" } else { "does not work" };
        let mut message = format!("port {}/{} of its load balancer {verb}: {error}", port.port, port.protocol);
        if ours && let Some(event) = case.objects.warning(Service::KIND.kind, case.key, is_of_balancer) {
            message = format!("{message}: {}", event.message);
        }
        // Pods do without the load balancer, but a port that asks for TLS and has none is no port
        // that works.
        let severity = if ours { Severity::Broken } else { severity(case) };
        let remedy = vec![remedy::describe("service", case.key), "fairlead lb ls".to_owned()];
        draft.find(severity, Cause::LoadBalancerPortFails, message, remedy);
    }
    draft
}

/// Who is inside of the cluster does without the load balancer, and so does who uses a port of the Nodes.
fn severity(case: &Case<'_>) -> Severity {
    let asked = case.question.port.as_ref().and_then(|text| text.parse::<i32>().ok());
    let node_port = asked.is_some_and(|asked| case.service.spec.ports.iter().any(|port| port.node_port == asked));
    let outside = matches!(case.question.from, From::Outside(_)) && !node_port;
    if outside { Severity::Broken } else { Severity::Warning }
}

fn pending(case: &Case<'_>, draft: &mut Draft) {
    let (cause, message) = why(case);
    let told = case.objects.warning(Service::KIND.kind, case.key, is_of_balancer);
    let told = told.map(|event| format!(": {}", event.message)).unwrap_or_default();
    let describe = remedy::describe("service", case.key);
    let remedy = match cause {
        Cause::LoadBalancerClassUnknown => vec!["fairlead lb ls".to_owned(), describe],
        Cause::LoadBalancerNoPool => {
            vec!["fairlead up --pool 192.0.2.64/28 # a range of your network that nobody uses".to_owned(), describe]
        }
        Cause::LoadBalancerMissing => {
            vec!["fairlead balancer".to_owned(), case.patch(&json!({"spec": {"type": "NodePort"}}))]
        }
        _ => vec![describe, "fairlead lb ls".to_owned()],
    };
    draft.find(severity(case), cause, format!("{message}{told}"), remedy);
}

/// Whether an Event tells of a load balancer: a Service has others, too, such as those of earlier findings.
fn is_of_balancer(event: &Event) -> bool {
    TELLERS.contains(&event.by()) || REASONS.contains(&&*event.reason)
}

fn why(case: &Case<'_>) -> (Cause, String) {
    let pending = (Cause::LoadBalancerPending, "its load balancer has no address yet".to_owned());
    let Some(Balancer { alive, classes, pools }) = &case.evidence.balancer else { return pending };
    let class = case.service.spec.load_balancer_class.as_deref().unwrap_or_default();
    if !alive {
        return (Cause::LoadBalancerMissing, "nobody who gives addresses to load balancers runs".to_owned());
    }
    if !classes.iter().any(|served| served == class) {
        let name = |class: &String| if class.is_empty() { "those without a class".to_owned() } else { class.clone() };
        let served = list(classes.iter().map(name));
        return (
            Cause::LoadBalancerClassUnknown,
            format!("its class {class:?} is served by nobody here, only {served}"),
        );
    }
    if pools.as_ref().is_some_and(Vec::is_empty) {
        return (Cause::LoadBalancerNoPool, "there is no pool of addresses for load balancers".to_owned());
    }
    pending
}
