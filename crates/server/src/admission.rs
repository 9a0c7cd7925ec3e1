//! What an administrator forbids beyond the rules of the API, and what a part of this cluster could not do anyway.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use fairlead_api::value::Value;
use fairlead_api::{Kind, Look};
use ipnet::IpNet;

pub(crate) mod external_ips;
pub(crate) mod service_account;

/// Restrictions.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// Users that may write new external IPs, where `external_ip_ranges` does not say which ones all may.
    pub external_ips: ExternalIps,
    /// `--external-ip-range`: new external IPs must be in one of these; empty means anywhere.
    pub external_ip_ranges: Vec<IpNet>,
    /// The pools of the load balancer that runs beside this server: no external IP is one of them.
    pub load_balancer_pools: Vec<RangeInclusive<IpAddr>>,
    /// The load balancer that runs beside this server, if one does: what it cannot carry is refused at once.
    pub load_balancer: Option<LoadBalancer>,
    /// Nodes of this cluster run images by themselves: grants of host privileges are noted on Pods
    /// with any image. Else the Pods with images are those of other run times, which know no such
    /// grants.
    pub grants_for_images: bool,
    /// True if Pods get their account and a volume with its token, and are refused without (plugin
    /// ServiceAccount).
    pub service_accounts: bool,
}

/// Users that may write new external IPs. A Service with the address of another machine gets the packets
/// that Nodes and Pods send there (CVE-2020-8554).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternalIps {
    /// No client (`--enable-admission-plugins=DenyServiceExternalIPs`).
    Denied,
    /// Users with the right to `use` `services/externalips` in the whole cluster, as administrators
    /// have it.
    #[default]
    Privileged,
    /// All who may write Services (`--disable-admission-plugins=DenyServiceExternalIPs`), as in
    /// Kubernetes by default.
    Anyone,
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
    match &rules.load_balancer {
        Some(balancer) => balancer.admit(object, old),
        None => Ok(()),
    }
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
