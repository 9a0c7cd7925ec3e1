//! What an administrator forbids beyond the rules of the API, and what a part of this cluster could not do anyway.

use std::net::IpAddr;

use fairlead_api::value::Value;
use fairlead_api::{Kind, Look};
use ipnet::IpNet;

/// Restrictions, all off by default.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// Plugin `DenyServiceExternalIPs`: no new external IPs at all.
    pub deny_external_ips: bool,
    /// `--external-ip-range`: new external IPs must be in one of these; empty means anywhere.
    pub external_ip_ranges: Vec<IpNet>,
    /// The load balancer that runs beside this server, if one does: what it cannot carry is refused at once.
    pub load_balancer: Option<LoadBalancer>,
}

/// A load balancer, and what it cannot do.
#[derive(Debug, Clone)]
pub struct LoadBalancer {
    /// The class of the Services it serves.
    pub class: String,
    /// Whether those without a class are its as well.
    pub default: bool,
    /// Protocols that it cannot carry, as Services write them.
    pub lacks: Vec<&'static str>,
}

/// `Err` says why an object is refused.
pub(crate) fn admit(rules: &Admission, kind: &Kind, object: &Value, old: Option<&Value>) -> Result<(), String> {
    if kind.resource != "services" {
        return Ok(());
    }
    external_ips(rules, object, old)?;
    match &rules.load_balancer {
        Some(balancer) => balancer.admit(object, old),
        None => Ok(()),
    }
}

fn external_ips(rules: &Admission, object: &Value, old: Option<&Value>) -> Result<(), String> {
    let before = old.map(|old| old.at("spec").texts("externalIPs")).unwrap_or_default();
    let added = object.at("spec").texts("externalIPs").into_iter().filter(|ip| !before.contains(ip));
    for ip in added {
        if rules.deny_external_ips {
            return Err("Use of external IPs is denied by admission control.".to_owned());
        }
        let Ok(address) = ip.parse::<IpAddr>() else { continue };
        let ranges = &rules.external_ip_ranges;
        if !ranges.is_empty() && !ranges.iter().any(|range| range.contains(&address)) {
            return Err(format!("external IP {ip} is in none of the ranges that --external-ip-range allows"));
        }
    }
    Ok(())
}

impl LoadBalancer {
    /// A Service that asks for what it has asked for before is let through: it must stay possible to change something else.
    fn admit(&self, object: &Value, old: Option<&Value>) -> Result<(), String> {
        let asked =
            |protocol: &&&str| self.is_asked(object, protocol) && !old.is_some_and(|old| self.is_asked(old, protocol));
        match self.lacks.iter().find(asked) {
            None => Ok(()),
            Some(protocol) => Err(format!(
                "the load balancer {} cannot carry {protocol}, which the kernel of this machine does not have: use another protocol, or \
                 spec.loadBalancerClass for another load balancer",
                self.class
            )),
        }
    }

    fn is_asked(&self, service: &Value, protocol: &str) -> bool {
        let spec = service.at("spec");
        let ours = spec.text_opt("loadBalancerClass").map_or(self.default, |class| class == self.class);
        let has = || spec.list("ports").iter().any(|port| port.text("protocol") == protocol);
        ours && spec.text("type") == "LoadBalancer" && has()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_api::kinds;
    use fairlead_api::value::json;

    #[track_caller]
    fn check(rules: &Admission, new: &[&str], old: &[&str], admitted: bool) {
        let service = |ips: &[&str]| json!({"spec": {"externalIPs": ips}});
        let result = admit(rules, &kinds::SERVICE, &service(new), Some(&service(old)));
        assert_eq!(result.is_ok(), admitted, "{result:?}");
    }

    #[test]
    fn external_ips_are_refused_only_when_new_and_forbidden() {
        let deny = Admission { deny_external_ips: true, ..Admission::default() };
        check(&deny, &["198.51.100.1"], &[], false);
        check(&deny, &["198.51.100.1"], &["198.51.100.1", "198.51.100.2"], true);
        let range = Admission { external_ip_ranges: vec!["198.51.100.0/24".parse().unwrap()], ..Admission::default() };
        check(&range, &["198.51.100.1"], &[], true);
        check(&range, &["203.0.113.1"], &[], false);
        check(&Admission::default(), &["203.0.113.1"], &[], true);
    }

    fn service(kind: &str, class: Option<&str>, protocols: &[&str]) -> Value {
        let ports: Vec<_> = protocols.iter().map(|protocol| json!({"port": 7, "protocol": protocol})).collect();
        json!({"spec": {"type": kind, "loadBalancerClass": class, "ports": ports}})
    }

    #[test]
    fn row_138_what_the_load_balancer_cannot_carry_is_refused_when_it_is_new_and_its_own() {
        let balancer = |default, lacks: &[&'static str]| {
            let lacks = lacks.to_vec();
            let load_balancer = Some(LoadBalancer { class: "fairlead.dev/lb".to_owned(), default, lacks });
            Admission { load_balancer, ..Admission::default() }
        };
        let lb = |class, protocols: &[&str]| service("LoadBalancer", class, protocols);
        let (ours, theirs) = (Some("fairlead.dev/lb"), Some("example.com/lb"));
        let without = balancer(true, &["SCTP"]);
        let table = [
            (&without, lb(None, &["TCP", "SCTP"]), None, false),
            (&without, lb(ours, &["SCTP"]), None, false),
            (&without, lb(theirs, &["SCTP"]), None, true),
            (&without, lb(None, &["TCP", "UDP"]), None, true),
            (&without, service("NodePort", None, &["SCTP"]), None, true),
            (&without, lb(None, &["SCTP"]), Some(lb(None, &["SCTP", "TCP"])), true),
            (&without, lb(None, &["SCTP"]), Some(lb(None, &["TCP"])), false),
            (&without, lb(None, &["SCTP"]), Some(service("NodePort", None, &["SCTP"])), false),
            (&balancer(false, &["SCTP"]), lb(None, &["SCTP"]), None, true),
            (&balancer(false, &["SCTP"]), lb(ours, &["SCTP"]), None, false),
            (&balancer(true, &[]), lb(None, &["SCTP"]), None, true),
            (&Admission::default(), lb(ours, &["SCTP"]), None, true),
        ];
        for (rules, new, old, admitted) in table {
            let result = admit(rules, &kinds::SERVICE, &new, old.as_ref());
            assert_eq!(result.is_ok(), admitted, "{new} {old:?}");
        }
        assert_eq!(
            admit(&without, &kinds::SERVICE, &lb(None, &["SCTP"]), None).unwrap_err(),
            "the load balancer fairlead.dev/lb cannot carry SCTP, which the kernel of this machine does not have: use another \
             protocol, or spec.loadBalancerClass for another load balancer"
        );
    }
}
