//! Has the kernel of the client's Node rules for the Service, and do they lead where they should?

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use fairlead_api::ip;
use fairlead_plan::{FrontendKey, Step, Verdict, family_of};

use super::exists::cluster_ips;
use super::{Case, Draft, list};
use crate::{Cause, Component, From, Rules, Severity};

pub(super) fn look(case: &Case<'_>) -> Draft {
    if let Some(why) = case.not_proxied() {
        return Draft::skipped(why);
    }
    let mut draft = Draft::default();
    if let Some(proxy) = &case.evidence.proxy {
        draft.see(state(proxy));
    }
    match (&case.evidence.rules, &case.evidence.proxy) {
        (Some(rules), proxy) => present(case, rules, proxy.as_ref(), &mut draft),
        (None, Some(proxy)) if !proxy.alive => {
            let message =
                format!("{} does not run: what is in the kernel was not looked at, and nobody changes it", proxy.name);
            draft.broken(Cause::ProxyNotRunning, message, start(proxy));
        }
        (None, Some(proxy)) if proxy.error.is_some() => {
            let error = proxy.error.clone().unwrap_or_default();
            draft.broken(Cause::ProxyFails, format!("{} complains: {error}", proxy.name), start(proxy));
        }
        (None, _) => return case.blind("the rules in the kernel were not looked at"),
    }
    draft
}

fn state(proxy: &Component) -> String {
    let behind = proxy.behind.filter(|behind| *behind > 0).map(|behind| format!(", {behind} revisions behind"));
    let state = if proxy.alive { "runs" } else { "does not run" };
    format!("{} {state}{}", proxy.name, behind.unwrap_or_default())
}

fn start(proxy: &Component) -> Vec<String> {
    vec![proxy.start.clone().unwrap_or_else(|| "fairlead status".to_owned())]
}

fn present(case: &Case<'_>, rules: &Rules, proxy: Option<&Component>, draft: &mut Draft) {
    let missing: Vec<FrontendKey> = wanted(case).into_iter().filter(|key| !rules.frontends.contains_key(key)).collect();
    let (wrong, right) = endpoints(case, rules);
    if missing.is_empty() && wrong.is_empty() {
        draft.see(format!("{}: {}", rules.mode, list(rules.frontends.keys())));
        return idle(proxy, draft);
    }
    if !missing.is_empty() {
        let severity = if missing.iter().any(|key| matters(case, key)) { Severity::Broken } else { Severity::Warning };
        let mode = if rules.mode.is_empty() { String::new() } else { format!(" ({})", rules.mode) };
        let message = format!("the kernel has no rules{mode} for {}", list(missing.iter()));
        report(severity, Cause::RulesMissing, message, proxy, draft);
    }
    if !wrong.is_empty() {
        let severity = if right { Severity::Warning } else { Severity::Broken };
        report(
            severity,
            Cause::RulesStale,
            format!("the kernel's rules ({}) are not right: {}", rules.mode, list(wrong.iter())),
            proxy,
            draft,
        );
    }
}

/// A proxy that is not well while its rules are.
fn idle(proxy: Option<&Component>, draft: &mut Draft) {
    let Some(proxy) = proxy else { return };
    if !proxy.alive {
        let message =
            format!("{} does not run: rules are right, but nobody will change them when endpoints do", proxy.name);
        draft.warn(Cause::ProxyNotRunning, message, start(proxy));
    } else if let Some(error) = &proxy.error {
        draft.warn(Cause::ProxyFails, format!("{} complains: {error}", proxy.name), start(proxy));
    }
}

/// Rules are wrong: because the proxy does not run, cannot, has not yet, or somebody interfered.
fn report(severity: Severity, cause: Cause, message: String, proxy: Option<&Component>, draft: &mut Draft) {
    match proxy {
        Some(proxy) if !proxy.alive => {
            draft.find(
                severity,
                Cause::ProxyNotRunning,
                format!("{} does not run: {message}", proxy.name),
                start(proxy),
            );
        }
        Some(proxy) if proxy.error.is_some() => {
            let error = proxy.error.clone().unwrap_or_default();
            draft.find(
                severity,
                Cause::ProxyFails,
                format!("{} complains ({error}): {message}", proxy.name),
                start(proxy),
            );
        }
        Some(proxy) if proxy.behind.is_some_and(|behind| behind > 0) => {
            let behind = proxy.behind.unwrap_or_default();
            let message = format!("{} is {behind} revisions behind: {message}", proxy.name);
            draft.find(severity, Cause::ProxyBehind, message, vec!["fairlead status".to_owned()]);
        }
        _ => {
            let restart = proxy.and_then(|proxy| proxy.start.clone());
            let restart = restart.unwrap_or_else(|| "systemctl restart fairlead".to_owned());
            draft.find(
                severity,
                cause,
                message,
                vec!["fairlead status".to_owned(), restart, "nft list tables".to_owned()],
            );
        }
    }
}

/// Whether the client needs it.
fn matters(case: &Case<'_>, key: &FrontendKey) -> bool {
    let cluster_ips: Vec<IpAddr> = cluster_ips(case).iter().filter_map(|text| ip::parse(text)).collect();
    let inside = matches!(key, FrontendKey::Address { ip, .. } if cluster_ips.contains(ip));
    inside != matches!(case.question.from, From::Outside(_))
}

/// What should be there for the ports asked for.
fn wanted(case: &Case<'_>) -> BTreeSet<FrontendKey> {
    let service = case.service;
    let own: Vec<IpAddr> = cluster_ips(case).iter().filter_map(|text| ip::parse(text)).collect();
    let ingress = service.status.load_balancer.ingress.iter().filter(|place| place.ip_mode.as_deref() != Some("Proxy"));
    let others = ingress.map(|place| &place.ip).chain(&service.spec.external_ips).filter_map(|text| ip::parse(text));
    // Addresses of a family in which the Service has no cluster IP are not served.
    let others = others.filter(|ip| own.iter().any(|cluster_ip| family_of(*cluster_ip) == family_of(*ip)));
    let addresses: Vec<IpAddr> = own.iter().copied().chain(others).collect();
    let mut wanted = BTreeSet::new();
    for port in &case.ports {
        let (protocol, number) = (port.protocol, u16::try_from(port.port).unwrap_or_default());
        let unserved = |ip: &IpAddr| {
            let mut ingress = service.status.load_balancer.ingress.iter();
            ingress.any(|one| one.unserved(port.port, protocol).is_some() && ip::parse(&one.ip) == Some(*ip))
        };
        wanted.extend(addresses.iter().filter(|ip| !unserved(ip)).map(|ip| FrontendKey::Address {
            ip: *ip,
            protocol,
            port: number,
        }));
        if let Some(port) = u16::try_from(port.node_port).ok().filter(|port| *port != 0) {
            wanted.extend(own.iter().map(|ip| FrontendKey::NodePort { family: family_of(*ip), protocol, port }));
        }
    }
    wanted.retain(|key| !is_taken(case, key));
    wanted
}

/// Whether another Service has got it.
fn is_taken(case: &Case<'_>, key: &FrontendKey) -> bool {
    let decided = case.evidence.decisions.iter().chain(&case.evidence.others);
    let steps = decided.flat_map(|decided| &decided.decision.steps);
    let mut found = steps.filter_map(|step| match step {
        Step::Found { key, port, .. } => Some((key, port)),
        _ => None,
    });
    found.any(|(at, port)| at == key && *port.service != *case.key)
}

/// Endpoints in the kernel that no slice has, and those of the plan that the kernel lacks; and whether any is right.
fn endpoints(case: &Case<'_>, rules: &Rules) -> (BTreeSet<String>, bool) {
    let known = listed(case);
    let (mut wrong, mut right) = (BTreeSet::new(), false);
    for (key, held) in rules.frontends.iter().filter(|(key, _)| wanted(case).contains(key)) {
        let Some(held) = held else { continue };
        for endpoint in held {
            match known.contains(endpoint) {
                true => right = true,
                false => _ = wrong.insert(format!("{endpoint} is no endpoint any more")),
            }
        }
        let lacking = planned(case, key).into_iter().filter(|endpoint| !held.contains(endpoint));
        wrong.extend(lacking.map(|endpoint| format!("{endpoint} is missing")));
    }
    (wrong, right)
}

/// The endpoints that slices list, whatever their state.
fn listed(case: &Case<'_>) -> BTreeSet<SocketAddr> {
    let mut listed = BTreeSet::new();
    for slice in &case.slices {
        let ports = || slice.ports.iter().filter_map(|port| u16::try_from(port.port?).ok());
        let addresses = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        for ip in addresses.filter_map(|text| ip::parse(text)) {
            listed.extend(ports().map(|port| SocketAddr::new(ip, port)));
        }
    }
    listed
}

/// The endpoints that the plan sends packets for an address to, if somebody asked.
fn planned(case: &Case<'_>, key: &FrontendKey) -> Vec<SocketAddr> {
    let about = case.evidence.decisions.iter().filter(|decided| {
        let packet = &decided.packet;
        *key == FrontendKey::Address { ip: packet.dst, protocol: packet.protocol, port: packet.port }
    });
    let mut planned = Vec::new();
    for decided in about {
        if let Verdict::Dnat(dnat) = &decided.decision.verdict {
            planned.extend(
                dnat.candidates.iter().map(|candidate| SocketAddr::new(candidate.endpoint.ip, candidate.endpoint.port)),
            );
        }
    }
    planned
}
