//! What an administrator forbids beyond the rules of the API.

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
}

/// `Err` says why an object is refused.
pub(crate) fn admit(rules: &Admission, kind: &Kind, object: &Value, old: Option<&Value>) -> Result<(), String> {
    if kind.resource != "services" {
        return Ok(());
    }
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
}
