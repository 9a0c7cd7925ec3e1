//! Does the Service's name lead to it, as the client would ask?

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairlead_api::ip;

use super::slices::is_ready;
use super::{Case, Draft, exists, list, remedy};
use crate::{Cause, Dns, DnsReply, From, Pod};
use resolver::Path;

mod resolver;

pub(super) fn look(case: &Case<'_>) -> Draft {
    if !case.is_alias() && !case.service.is_headless() && !case.service.has_cluster_ip() {
        return Draft::skipped("it has no cluster IP that its name could have");
    }
    let mut draft = Draft::default();
    let path = Path::of(case);
    if let Some(path) = &path {
        draft.see(path.text());
    }
    if let Some(dns) = &case.evidence.dns {
        answered(case, dns, path.as_ref(), &mut draft);
        return draft;
    }
    let from = &case.question.from;
    if matches!(from, From::Outside(_) | From::Node(_)) && case.question.host.is_none() {
        return Draft::skipped("names of the cluster are for its Pods");
    }
    match path.as_ref().and_then(|path| foreseen(case, path)) {
        Some((cause, message)) => draft.broken(cause, message, remedies(case, cause)),
        None => return case.blind("nobody asked the DNS server"),
    }
    draft
}

/// The name the client uses.
fn host(case: &Case<'_>) -> String {
    let whole = || format!("{}.{}.svc", case.key.name, case.key.namespace);
    case.question.host.clone().unwrap_or_else(whole)
}

/// What is bound to go wrong, whatever the server says.
fn foreseen(case: &Case<'_>, path: &Path) -> Option<(Cause, String)> {
    let host = host(case);
    if let Some(found) = policy(case) {
        return Some(found);
    }
    if path.reaches(case.key, &host) {
        return None;
    }
    Some(astray(case, path, &host))
}

/// A client that does not ask the cluster's DNS.
fn policy(case: &Case<'_>) -> Option<(Cause, String)> {
    let (name, pod) = client(case)?;
    match pod.dns_policy.as_str() {
        "Default" => Some((
            Cause::DnsPolicySkipsCluster,
            format!(
                "Pod {name} has dnsPolicy Default: it asks the DNS server of its Node, which does not know the cluster"
            ),
        )),
        "" | "ClusterFirst" if pod.view.spec.host_network => Some((
            Cause::DnsPolicySkipsCluster,
            format!("Pod {name} is on its Node's network, where dnsPolicy ClusterFirst means the Node's DNS server"),
        )),
        "None" if !asks_cluster(case, pod) => Some((
            Cause::DnsPolicyNone,
            format!("Pod {name} has dnsPolicy None, and {} is not the cluster's DNS server", servers(pod)),
        )),
        _ => None,
    }
}

fn servers(pod: &Pod) -> String {
    let servers = list(pod.dns_config.nameservers.iter());
    if servers.is_empty() { "no server at all".to_owned() } else { servers }
}

/// Whether a Pod that sets its own servers names the cluster's. Unknown counts as yes.
fn asks_cluster(case: &Case<'_>, pod: &Pod) -> bool {
    let Some(dns) = case.dns_service() else { return !pod.dns_config.nameservers.is_empty() };
    let known: Vec<IpAddr> =
        dns.spec.cluster_ips.iter().chain([&dns.spec.cluster_ip]).filter_map(|text| ip::parse(text)).collect();
    pod.dns_config.nameservers.iter().filter_map(|text| ip::parse(text)).any(|server| known.contains(&server))
}

fn client<'a>(case: &Case<'a>) -> Option<(&'a str, &'a Pod)> {
    let From::Pod(key) = &case.question.from else { return None };
    case.objects.pod(key).map(|pod| (&*key.name, &**pod))
}

/// Why a name on a search path never becomes the Service's.
fn astray(case: &Case<'_>, path: &Path, host: &str) -> (Cause, String) {
    let (name, namespace) = (&case.key.name, &case.key.namespace);
    let elsewhere = path.namespace.as_ref().filter(|client| **client != **namespace);
    if !host.contains('.')
        && let Some(client) = elsewhere
    {
        let message = format!(
            "the client is in namespace {client}, where {host} means {host}.{client}: it must say {name}.{namespace}"
        );
        return (Cause::ShortNameOfOtherNamespace, message);
    }
    let message =
        format!("the search path ({}) never makes {name}.{namespace}.svc of {host}", list(path.search.iter()));
    (Cause::SearchPathIncomplete, message)
}

/// What the answers mean.
fn answered(case: &Case<'_>, dns: &Dns, path: Option<&Path>, draft: &mut Draft) {
    for (name, reply) in &dns.tried {
        draft.see(format!("{name}: {}", text(reply)));
    }
    if let Some((cause, message)) = trouble(case, dns, path) {
        draft.broken(cause, message, remedies(case, cause));
    }
}

fn trouble(case: &Case<'_>, dns: &Dns, path: Option<&Path>) -> Option<(Cause, String)> {
    let host = &dns.name;
    let wanted = addresses(case);
    let reply = dns.tried.iter().find(|(_, reply)| matches!(reply, DnsReply::Addresses(_) | DnsReply::Alias(_)));
    match reply.map(|(name, reply)| (name, reply)) {
        Some((_, DnsReply::Alias(_))) if case.is_alias() => return None,
        Some((name, DnsReply::Addresses(found))) => {
            let right = case.is_alias() || !wanted.is_empty() && found.iter().all(|ip| wanted.contains(ip));
            return if right { None } else { Some(differs(case, host, name, found, &wanted, path)) };
        }
        _ => {}
    }
    let server =
        dns.server.map(|server| format!("the DNS server {server}")).unwrap_or_else(|| "the DNS server".to_owned());
    let last = dns.tried.iter().find_map(|(_, reply)| match reply {
        DnsReply::Silence(why) => Some((Cause::DnsSilent, format!("{server} does not answer: {why}"))),
        DnsReply::Failure(code) => Some((Cause::DnsFails, format!("{server} answers {code}"))),
        _ => None,
    });
    let lost = || {
        path.and_then(|path| policy(case).or_else(|| (!path.reaches(case.key, host)).then(|| astray(case, path, host))))
    };
    let unknown = || {
        let message = format!(
            "{server} does not know {host}, although the Service exists: is it up to date, and for this domain?"
        );
        (Cause::DnsNameMissing, message)
    };
    Some(lost().or(last).unwrap_or_else(unknown))
}

/// Why a name leads elsewhere.
fn differs(
    case: &Case<'_>,
    host: &str,
    name: &str,
    found: &[IpAddr],
    wanted: &BTreeSet<IpAddr>,
    path: Option<&Path>,
) -> (Cause, String) {
    if let Some(found) = policy(case) {
        return found;
    }
    let ours = name.starts_with(&format!("{}.{}.svc", case.key.name, case.key.namespace));
    if let Some(path) = path.filter(|_| !ours) {
        if !path.reaches(case.key, host) {
            return astray(case, path, host);
        }
        if path.is_asked_first(host) {
            let message = format!(
                "with ndots {} the client asks for {host} itself before its search path, and {} answers",
                path.ndots,
                list(found.iter())
            );
            return (Cause::NdotsTooLow, message);
        }
    }
    let message = format!("{name} leads to {}, but the Service is at {}", list(found.iter()), list(wanted.iter()));
    (Cause::DnsAnswerDiffers, message)
}

/// The addresses the name should have.
fn addresses(case: &Case<'_>) -> BTreeSet<IpAddr> {
    if !case.service.is_headless() {
        return exists::cluster_ips(case).iter().filter_map(|text| ip::parse(text)).collect();
    }
    let endpoints = case.slices.iter().flat_map(|slice| &slice.endpoints);
    endpoints
        .filter(|endpoint| is_ready(endpoint))
        .flat_map(|endpoint| &endpoint.addresses)
        .filter_map(|text| ip::parse(text))
        .collect()
}

fn text(reply: &DnsReply) -> String {
    match reply {
        DnsReply::Addresses(found) => list(found.iter()),
        DnsReply::Alias(name) => format!("an alias for {name}"),
        DnsReply::NoData => "no addresses".to_owned(),
        DnsReply::NxDomain => "no such name".to_owned(),
        DnsReply::Failure(code) => code.clone(),
        DnsReply::Silence(why) => format!("no answer ({why})"),
    }
}

fn remedies(case: &Case<'_>, cause: Cause) -> Vec<String> {
    let whole = case.whole_name(case.key);
    let ask = match client(case) {
        Some((name, pod)) => {
            let key = fairlead_api::source::Key::new(pod.view.metadata.namespace.as_str(), name);
            format!("kubectl exec {} -- getent hosts {}", remedy::named(&key), remedy::quote(&whole))
        }
        None => format!("getent hosts {}", remedy::quote(&whole)),
    };
    let settings = client(case).map(|(name, pod)| {
        let key = fairlead_api::source::Key::new(pod.view.metadata.namespace.as_str(), name);
        remedy::get("pod", &key)
    });
    match cause {
        Cause::DnsPolicySkipsCluster | Cause::DnsPolicyNone => settings.into_iter().chain([ask]).collect(),
        Cause::DnsSilent | Cause::DnsFails | Cause::DnsNameMissing => {
            vec!["kubectl get service,endpoints kube-dns -n kube-system".to_owned(), ask]
        }
        _ => vec![ask],
    }
}
