//! What this machine is in the cluster: a Node with Pods, and a place where the cluster's names are answered.

use std::net::{IpAddr, SocketAddr};

use fairlead_pods::UserRange;
use fairlead_pods::images::Images;
use fairlead_zone::Name;
use ipnet::IpNet;

use super::flags::{Flags, Text};
use super::{Role, images, machine, proxy, switch, text, value};

const DOMAIN: &str = "cluster.local";
/// The place of the DNS server's address in a range of cluster IPs.
const TENTH: u128 = 10;

/// A Node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Ranges of the addresses of all Pods.
    pub(crate) pod_ranges: Vec<IpNet>,
    pub(crate) domain: Name,
    /// Where the cluster's names are answered; none: nowhere.
    pub(crate) dns: Vec<IpAddr>,
    /// Who is asked for other names; `None`: whom the machine asks.
    pub(crate) upstreams: Option<Vec<SocketAddr>>,
    /// Pods run here.
    pub(crate) pods: bool,
    /// Users of Pods.
    pub(crate) pod_users: UserRange,
    /// Images that the config file maps.
    pub(crate) images: Images,
}

/// What this machine is; `None`: nothing.
pub(super) fn settings(flags: &Flags, role: Role, service_ranges: &[IpNet]) -> anyhow::Result<Option<Node>> {
    let usual = role == Role::Up;
    let pods = match &flags.pods {
        Some(Text(text)) => switch(text).ok_or_else(|| value::invalid("pods", text, "want true or false"))?,
        None => usual,
    };
    let dns = match &flags.cluster_dns {
        Some(said) => addresses(&value::list(&Some(said.clone())))?,
        None if usual => service_ranges.iter().filter_map(tenth).collect(),
        None => Vec::new(),
    };
    if !pods && dns.is_empty() {
        return Ok(None);
    }
    let domain = flags.cluster_domain.as_ref().map_or(DOMAIN, |Text(text)| text);
    let domain = domain.parse().map_err(|error| value::invalid("cluster-domain", domain, error))?;
    let name = proxy::node_name(text(&flags.hostname_override))?;
    let parse = |Text(text): &Text| text.parse().map_err(|error| value::invalid("pod-users", text, error));
    let pod_users: Option<UserRange> = flags.pod_users.as_ref().map(parse).transpose()?;
    let upstreams = flags.dns_upstream.as_ref().map(|said| upstreams(&value::list(&Some(said.clone()))));
    Ok(Some(Node {
        name,
        pod_ranges: machine::pod_ranges(flags)?,
        domain,
        dns,
        upstreams: upstreams.transpose()?,
        pods,
        pod_users: pod_users.unwrap_or_default(),
        images: images::images(flags.images.as_deref())?,
    }))
}

fn addresses(said: &[String]) -> anyhow::Result<Vec<IpAddr>> {
    let parse = |text: &String| text.parse().map_err(|error| value::invalid("cluster-dns", text, error));
    said.iter().filter(|text| !text.is_empty()).map(parse).collect()
}

/// Addresses, perhaps with a port.
fn upstreams(said: &[String]) -> anyhow::Result<Vec<SocketAddr>> {
    let parse = |text: &String| {
        let address = text.parse::<SocketAddr>().or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53)));
        address.map_err(|error| value::invalid("dns-upstream", text, error))
    };
    said.iter().filter(|text| !text.is_empty()).map(parse).collect()
}

/// The tenth address of a range, if it has that many.
fn tenth(range: &IpNet) -> Option<IpAddr> {
    let ip = match range.network() {
        IpAddr::V4(ip) => IpAddr::V4((u32::from(ip).checked_add(u32::try_from(TENTH).ok()?)?).into()),
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip).checked_add(TENTH)?).into()),
    };
    range.contains(&ip).then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::tenth;

    #[test]
    fn dns_has_the_tenth_address_of_a_range() {
        let check = |range: &str, want: Option<&str>| {
            let found = tenth(&range.parse().unwrap());
            assert_eq!(found, want.map(|ip| ip.parse().unwrap()), "{range}");
        };
        check("10.96.0.0/16", Some("10.96.0.10"));
        check("fd00:96::/108", Some("fd00:96::a"));
        check("10.0.0.248/29", None);
    }
}
