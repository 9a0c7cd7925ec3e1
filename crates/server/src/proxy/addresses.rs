//! Addresses of Pods to which requests may be passed on. Nodes report them in `status`, so each is
//! compared with what its Node may give to a Pod: a Node must not lead the server elsewhere.

use std::net::{IpAddr, Ipv4Addr};

use fairlead_api::value::Value;
use fairlead_api::{Failure, Look, ip, kinds};

use crate::{Inner, object, read};

/// Returns the address in `text` if requests for a Pod may be sent to it.
pub(super) async fn checked(server: &Inner, pod: &Value, text: &str) -> Result<Option<IpAddr>, Failure> {
    let broadcast = IpAddr::from(Ipv4Addr::BROADCAST);
    let ip = text.parse::<IpAddr>().ok();
    let ip = ip.filter(|ip| ip::endpoint_reasons(text).is_empty() && !ip.is_multicast() && *ip != broadcast);
    let Some(ip) = ip else { return Ok(None) };
    let spec = pod.at("spec");
    let entry = match spec.text("nodeName") {
        "" => None,
        name => server.store.get(&object::key(&kinds::NODE, "", name)).await.map_err(read::unavailable)?,
    };
    let node = entry.map(|entry| object::load(&kinds::NODE, &entry)).transpose()?.unwrap_or_default();
    let allowed = if spec.flag("hostNetwork") { is_of_node(&node, ip) } else { is_in_ranges(&node, ip) };
    Ok(allowed.then_some(ip))
}

/// Returns true if the Node has the address itself.
fn is_of_node(node: &Value, ip: IpAddr) -> bool {
    let addresses = node.at("status").list("addresses");
    addresses.iter().any(|address| ip::parse(address.text("address")) == Some(ip.to_canonical()))
}

/// Returns true if the address is in a range of the Node for its Pods, which a Node cannot change.
/// Pods of a Node without ranges get their addresses from elsewhere (a network plugin with an
/// address management of its own), so any address is allowed.
fn is_in_ranges(node: &Value, ip: IpAddr) -> bool {
    let ranges = node.at("spec").texts("podCIDRs");
    let mut ranges = ranges.iter().map(|range| ip::cidr::parse(range)).peekable();
    ranges.peek().is_none() || ranges.flatten().any(|range| range.contains(&ip.to_canonical()))
}
