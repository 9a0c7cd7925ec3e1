//! Can this kernel do what Services need, and is it told to?

use fairlead_proxy::Mode;

use super::super::facts::{Facts, NODE_PORTS};
use super::super::{Check, State};

const AREA: &str = "Kernel";
/// The share of its table of flows from which the kernel is about to drop packets, of 100.
const FULL: u64 = 80;

pub(super) fn check(facts: &Facts) -> Vec<Check> {
    let mut checks = modes(facts);
    checks.push(match facts.sctp {
        true => Check::ok(AREA, "it has SCTP"),
        false => Check::note(AREA, "it has no SCTP: Services with that protocol are refused"),
    });
    checks.extend(forwarding(facts));
    checks.extend(reverse_path(facts));
    checks.extend(bridges(facts));
    checks.extend(flows(facts));
    checks.extend(loopback(facts));
    checks.extend(sender_ports(facts));
    checks
}

/// Nothing works without one mode, and only the first is used unless another is asked for.
fn modes(facts: &Facts) -> Vec<Check> {
    let release = &facts.kernel;
    if facts.modes.is_empty() {
        let finding = format!("Linux {release}: what it can do is seen only by trying");
        return vec![Check::of(AREA, State::Unknown, finding, &["sudo fairlead doctor"])];
    }
    let works = |wanted| facts.modes.iter().any(|(mode, tried)| *mode == wanted && tried.is_ok());
    let any = facts.modes.iter().any(|(_, tried)| tried.is_ok());
    let mut checks = Vec::new();
    for (mode, tried) in &facts.modes {
        checks.push(match tried {
            Ok(()) => Check::ok(AREA, format!("Linux {release}: mode {mode} works")),
            Err(why) if *mode == Mode::Nftables && works(Mode::Iptables) => {
                let finding = format!("mode {mode} does not work ({why}); Fairlead uses mode iptables instead");
                Check::of(AREA, State::Warn, finding, &["modprobe nf_tables nft_nat nft_chain_nat nft_numgen"])
            }
            Err(why) if any => Check::note(AREA, format!("mode {mode} is not to be had here ({why})")),
            Err(why) => Check::of(AREA, State::Bad, format!("mode {mode} does not work: {why}"), remedy(*mode)),
        });
    }
    checks
}

fn remedy(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Nftables => &["modprobe nf_tables nft_nat nft_chain_nat nft_numgen"],
        Mode::Iptables => &["apt-get install iptables"],
        Mode::Ipvs => &["modprobe ip_vs ip_vs_rr"],
        Mode::Userspace => &[],
    }
}

/// Of each family, unless the machine does without it.
fn forwarding(facts: &Facts) -> Vec<Check> {
    let six = facts.number("net.ipv6.conf.all.disable_ipv6").is_none_or(|disabled| disabled == 0);
    let families = [("IPv4", "net.ipv4.ip_forward", true), ("IPv6", "net.ipv6.conf.all.forwarding", six)];
    let check = |(family, name, _): (&str, &str, bool)| match facts.number(name)? {
        0 => {
            let finding = format!("{name} is 0: {family} packets of Pods and of other machines are not passed on");
            let remedy = format!("sysctl -w {name}=1    # `fairlead up` does so as root");
            Some(Check::of(AREA, State::Warn, finding, &[&remedy]))
        }
        _ => Some(Check::ok(AREA, format!("it passes {family} packets on ({name})"))),
    };
    families.into_iter().filter(|(.., used)| *used).filter_map(check).collect()
}

/// Strict checking hurts only where answers may come by another link than questions go.
fn reverse_path(facts: &Facts) -> Option<Check> {
    let outward = facts.links.iter().filter(|link| link.outward).count();
    if facts.number("net.ipv4.conf.all.rp_filter")? != 1 || outward < 2 {
        return None;
    }
    let finding = format!(
        "net.ipv4.conf.all.rp_filter is 1 and {outward} links lead outward: packets that come by another link than \
         answers go are dropped"
    );
    Some(Check::of(AREA, State::Warn, finding, &["sysctl -w net.ipv4.conf.all.rp_filter=2"]))
}

fn bridges(facts: &Facts) -> Option<Check> {
    let bridge = facts.links.iter().find(|link| link.kind == "bridge")?;
    if facts.number("net.bridge.bridge-nf-call-iptables")? != 0 {
        return None;
    }
    let finding = format!(
        "net.bridge.bridge-nf-call-iptables is 0: a Pod on {} reaches no Service whose endpoint is on the same bridge",
        bridge.name
    );
    Some(Check::of(AREA, State::Warn, finding, &["sysctl -w net.bridge.bridge-nf-call-iptables=1"]))
}

fn flows(facts: &Facts) -> Option<Check> {
    let most = facts.number("net.netfilter.nf_conntrack_max")?;
    let held = facts.number("net.netfilter.nf_conntrack_count")?;
    if most == 0 || held.saturating_mul(100) < most.saturating_mul(FULL) {
        return Some(Check::ok(AREA, format!("it remembers {held} flows of {most} at most")));
    }
    let finding = format!("it remembers {held} flows of {most} at most: when it is full, new connections are dropped");
    let remedy = format!("sysctl -w net.netfilter.nf_conntrack_max={}", most.saturating_mul(2));
    Some(Check::of(AREA, State::Bad, finding, &[&remedy]))
}

fn loopback(facts: &Facts) -> Option<Check> {
    if facts.number("net.ipv4.conf.all.route_localnet")? == 0 {
        return None;
    }
    let finding =
        "net.ipv4.conf.all.route_localnet is 1: neighbours of this machine may reach what listens on 127.0.0.1 only";
    let remedy = ["sysctl -w net.ipv4.conf.all.route_localnet=0    # unless node ports on 127.0.0.1 are wanted"];
    Some(Check::of(AREA, State::Warn, finding, &remedy))
}

/// Ports the kernel gives to clients may be node ports only if they are reserved.
fn sender_ports(facts: &Facts) -> Option<Check> {
    let range = facts.parameters.get("net.ipv4.ip_local_port_range")?;
    let mut ends = range.split_ascii_whitespace().filter_map(|end| end.parse::<u16>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    let (low, high) = (*NODE_PORTS.start().max(&first), *NODE_PORTS.end().min(&last));
    if low > high || reserved(facts, low, high) {
        return Some(Check::ok(AREA, format!("clients of this machine get no node ports ({first}-{last})")));
    }
    let finding = format!(
        "clients of this machine get ports {first}-{last}, of which {low}-{high} are node ports: their answers may go to a Service"
    );
    let remedy = format!("sysctl -w net.ipv4.ip_local_reserved_ports={}-{}", NODE_PORTS.start(), NODE_PORTS.end());
    Some(Check::of(AREA, State::Warn, finding, &[&remedy]))
}

/// Whether one of the reserved ranges covers these.
fn reserved(facts: &Facts, low: u16, high: u16) -> bool {
    let list = facts.parameters.get("net.ipv4.ip_local_reserved_ports").map_or("", String::as_str);
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = (first.trim().parse::<u16>(), last.trim().parse::<u16>());
        matches!(ends, (Ok(first), Ok(last)) if first <= low && high <= last)
    })
}
