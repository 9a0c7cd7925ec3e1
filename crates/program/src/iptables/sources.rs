//! Which packets come from where, as matches.

use fairlead_plan::{Family, LocalDetection, Node, NodePorts, Source, family_of};
use ipnet::IpNet;

use super::model::Match;

/// Matches in order: the first that matches counts, and the last always does.
pub(crate) fn sources(node: &Node, family: Family) -> Vec<(Vec<Match>, Source)> {
    let mut sources = pods(node, family);
    sources.extend([(vec![Match::SourceLocal], Source::Node), (Vec::new(), Source::Outside)]);
    sources
}

fn pods(node: &Node, family: Family) -> Vec<(Vec<Match>, Source)> {
    let ranges = match &node.detection {
        LocalDetection::None => return Vec::new(),
        LocalDetection::Bridge(bridge) => return vec![(vec![Match::Interface(bridge.clone())], Source::Pod)],
        LocalDetection::InterfacePrefix(prefix) => {
            return vec![(vec![Match::Interface(format!("{prefix}+"))], Source::Pod)];
        }
        LocalDetection::Ranges(ranges) => of_family(ranges, family),
    };
    let from = |range: &IpNet| vec![Match::Source(*range)];
    let ours = of_family(&node.pod_ranges, family);
    if ours.is_empty() {
        return ranges.iter().map(|range| (from(range), Source::Pod)).collect();
    }
    // Of two ranges one is within the other, or they share nothing.
    let both = ranges.iter().flat_map(|one| ours.iter().filter_map(move |other| shared(*one, *other)));
    let mut pods: Vec<_> = both.map(|range| (from(&range), Source::Pod)).collect();
    let local = |range: &IpNet| vec![Match::Source(*range), Match::SourceLocal];
    pods.extend(ranges.iter().map(|range| (local(range), Source::Pod)));
    pods.extend(ranges.iter().map(|range| (from(range), Source::OtherPod)));
    pods
}

fn shared(one: IpNet, other: IpNet) -> Option<IpNet> {
    if one.contains(&other) { Some(other) } else { other.contains(&one).then_some(one) }
}

fn of_family(ranges: &[IpNet], family: Family) -> Vec<IpNet> {
    ranges.iter().copied().filter(|range| family_of(range.addr()) == family).collect()
}

/// Matches packets to addresses on which node ports are served: any of these.
pub(crate) fn node_ports(node: &Node, family: Family) -> Vec<Vec<Match>> {
    match node.node_ports(family) {
        NodePorts::Only(only) => only.into_iter().map(|net| vec![Match::Destination(net)]).collect(),
        NodePorts::All { loopback: true } => vec![vec![Match::DestinationLocal]],
        NodePorts::All { loopback: false } => {
            vec![vec![Match::NotDestination(loopback(family)), Match::DestinationLocal]]
        }
    }
}

/// Whether node ports are served on loopback addresses.
pub(crate) fn opens_loopback(node: &Node, family: Family) -> bool {
    match node.node_ports(family) {
        NodePorts::All { loopback } => loopback,
        NodePorts::Only(only) => only.iter().any(|net| net.addr().is_loopback()),
    }
}

pub(crate) fn loopback(family: Family) -> IpNet {
    let text = match family {
        Family::V4 => "127.0.0.0/8",
        Family::V6 => "::1/128",
    };
    text.parse().expect("a range")
}
