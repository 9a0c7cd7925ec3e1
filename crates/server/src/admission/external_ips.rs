//! External IPs: who may write them, and which addresses are the cluster's own whoever writes.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::status::Subject;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, kinds};
use fairlead_store::{Entry, Range};

use super::{Admission, ExternalIps};
use crate::auth::User;
use crate::auth::rbac::{Attributes, Target};
use crate::read::unavailable;
use crate::{Authorization, Inner, access, allocate, object};

/// The right to write any external IP. It is asked for at the cluster scope: a user with all rights
/// in one namespace does not have it.
const RIGHT: Attributes<'static> = Attributes {
    verb: "use",
    target: Target::Resource { group: "", resource: "services", subresource: "externalips", namespace: "", name: "" },
};

/// Refuses external IPs of a Service that are new and not allowed. Without roles (`AlwaysAllow`)
/// every client is an administrator, and only the flags refuse.
pub(crate) async fn admit(
    server: &Inner,
    user: Option<&User>,
    subject: Subject<'_>,
    service: &Value,
    old: Option<&Value>,
) -> Result<(), Failure> {
    let known: HashSet<&str> = old.into_iter().flat_map(|old| old.at("spec").texts("externalIPs")).collect();
    let texts = service.at("spec").texts("externalIPs").into_iter().filter(|text| !known.contains(text));
    // Validation names texts that are no addresses.
    let added: Vec<IpAddr> = texts.filter_map(|text| text.parse().ok()).collect();
    let (Some(user), false) = (user, added.is_empty()) else { return Ok(()) };
    let rules = &server.options.admission;
    let roles = server.access.authorization() == Authorization::Rbac;
    let refuse = |why: String| Err(Failure::forbidden(subject, &why));
    let privileged = || !roles || server.access.decide(user, &RIGHT).allowed();
    if let Err(why) = check_ranges(rules, &added, privileged) {
        return refuse(why);
    }
    if !roles {
        return Ok(());
    }
    let own = own_addresses(server, service).await?;
    let cluster_ips = allocate::ranges(server).await?;
    for address in added {
        let canonical = address.to_canonical();
        let whose = if own.contains(&canonical) {
            "an address of a Node, of the API server or of a load balancer"
        } else if cluster_ips.iter().any(|range| range.contains(&canonical)) {
            "in the range of cluster IPs"
        } else if rules.load_balancer_pools.iter().any(|pool| pool.contains(&canonical)) {
            "in a pool of load balancer addresses"
        } else {
            continue;
        };
        return refuse(format!("external IP {address} is {whose}"));
    }
    Ok(())
}

/// Checks new external IPs against the flags and the user's right.
fn check_ranges(rules: &Admission, added: &[IpAddr], privileged: impl Fn() -> bool) -> Result<(), String> {
    if rules.external_ips == ExternalIps::Denied {
        return Err("Use of external IPs is denied by admission control.".to_owned());
    }
    let ranges = &rules.external_ip_ranges;
    if !ranges.is_empty() {
        return match added.iter().find(|ip| !ranges.iter().any(|range| range.contains(*ip))) {
            Some(ip) => Err(format!("external IP {ip} is in none of the ranges that --external-ip-range allows")),
            None => Ok(()),
        };
    }
    if rules.external_ips == ExternalIps::Privileged && !privileged() {
        let why = "Use of external IPs is denied by admission control: it needs the right to use services/externalips in the \
                   whole cluster, or an address that --external-ip-range allows";
        return Err(why.to_owned());
    }
    Ok(())
}

/// Returns the addresses of Nodes, of the API server and of the load balancers of other Services.
async fn own_addresses(server: &Inner, service: &Value) -> Result<HashSet<IpAddr>, Failure> {
    let mut own = HashSet::from([server.options.advertise.ip().to_canonical()]);
    let mut add = |text: &str| own.extend(text.parse::<IpAddr>().map(|address| address.to_canonical()));
    for entry in entries(server, &kinds::NODE).await? {
        let node = object::load(&kinds::NODE, &entry)?;
        node.at("status").list("addresses").iter().for_each(|address| add(address.text("address")));
    }
    for entry in entries(server, &kinds::SERVICE).await?.iter().filter(|entry| access::is_balanced(entry)) {
        let other = object::load(&kinds::SERVICE, entry)?;
        let same = |field: &str| other.at("metadata").text(field) == service.at("metadata").text(field);
        if same("name") && same("namespace") {
            continue;
        }
        other.at("status").at("loadBalancer").list("ingress").iter().for_each(|ingress| add(ingress.text("ip")));
    }
    Ok(own)
}

async fn entries(server: &Inner, kind: &'static Kind) -> Result<Vec<Arc<Entry>>, Failure> {
    let range = Range { prefix: object::prefix(kind, "").into(), ..Range::default() };
    Ok(server.store.range(range).await.map_err(unavailable)?.entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_ips_are_for_administrators_unless_flags_say_otherwise() {
        use ExternalIps::{Anyone, Denied, Privileged};
        let range = &["198.51.100.0/24"][..];
        for (external_ips, ranges, privileged, address, allowed) in [
            (Privileged, &[][..], false, "203.0.113.1", false),
            (Privileged, &[], true, "203.0.113.1", true),
            (Privileged, range, false, "198.51.100.1", true),
            (Privileged, range, true, "203.0.113.1", false),
            (Anyone, &[], false, "203.0.113.1", true),
            (Anyone, range, false, "203.0.113.1", false),
            (Denied, &[], true, "203.0.113.1", false),
            (Denied, range, true, "198.51.100.1", false),
        ] {
            let external_ip_ranges = ranges.iter().map(|range| range.parse().unwrap()).collect();
            let rules = Admission { external_ips, external_ip_ranges, ..Admission::default() };
            let result = check_ranges(&rules, &[address.parse().unwrap()], || privileged);
            assert_eq!(result.is_ok(), allowed, "{external_ips:?} {ranges:?} {privileged} {result:?}");
        }
    }
}
