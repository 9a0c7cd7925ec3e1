//! `forward`: who is asked for names that are not ours.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairlead_zone::Name;

use super::Findings;
use super::address;
use super::tree::{Line, Word};
use super::value::{duration, name, only, only_duration, only_number, zones};
use crate::settings::{Forward, HealthCheck, Policy, Transport, Upstream};
use crate::words;

/// At most so many upstreams.
const UPSTREAMS: usize = 15;

/// `forward FROM TO... { ... }`.
pub(super) fn read(line: &Line, found: &mut Findings) -> Option<Forward> {
    let [from, to @ ..] = line.arguments() else {
        found.arguments("forward", line);
        return None;
    };
    let zone = address::zones(&from.text).and_then(|zones| zones.into_iter().next());
    if zone.is_none() {
        found.invalid("forward", from, "name of a zone");
    }
    if to.is_empty() || to.len() > UPSTREAMS {
        found.arguments("forward", line);
    }
    let to = to.iter().filter_map(|word| upstream(word, found)).collect();
    let mut forward = Forward { from: zone.unwrap_or_else(Name::root), to, ..Forward::default() };
    for option in line.body.iter().flatten() {
        read_option(option, &mut forward, found);
    }
    Some(forward)
}

/// An address, with or without a port, or a file that names some.
fn upstream(word: &Word, found: &mut Findings) -> Option<Upstream> {
    let text = match word.text.split_once("://") {
        Some(("dns", rest)) => rest,
        Some((scheme, _)) => {
            found.add("forward", word, format_args!("{scheme}:// is not supported; ask by plain DNS"));
            return None;
        }
        None => word.text.as_str(),
    };
    if text.contains('/') {
        return Some(Upstream::File(text.to_owned()));
    }
    let parsed = parse_upstream(text);
    if parsed.is_none() {
        found.invalid("forward", word, "address or file of an upstream");
    }
    parsed.map(Upstream::Address)
}

/// `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1`, `[2001:db8::1]:53`.
pub(crate) fn parse_upstream(text: &str) -> Option<SocketAddr> {
    let address = || text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    address().map(|address| SocketAddr::new(address, 53)).or_else(|| text.parse().ok())
}

fn read_option(option: &Line, into: &mut Forward, found: &mut Findings) {
    const PLUGIN: &str = "forward";
    match option.name().text.as_str() {
        "except" => {
            if option.arguments().is_empty() {
                found.arguments(PLUGIN, option);
            }
            into.except.extend(zones(PLUGIN, option.arguments(), &[], found));
        }
        "force_tcp" => {
            found.alone(PLUGIN, option);
            into.transport = Transport::ForceTcp;
        }
        "prefer_udp" => {
            found.alone(PLUGIN, option);
            if into.transport != Transport::ForceTcp {
                into.transport = Transport::PreferUdp;
            }
        }
        "policy" => into.policy = policy(option, found).unwrap_or_default(),
        "max_fails" => into.max_fails = only_number(PLUGIN, option, found).unwrap_or_default(),
        "max_concurrent" => into.max_concurrent = only_number(PLUGIN, option, found).unwrap_or_default(),
        "expire" => into.expire = only_duration(PLUGIN, option, found).unwrap_or_default(),
        "read_timeout" => into.read_timeout = only_duration(PLUGIN, option, found).unwrap_or_default(),
        "health_check" => health_check(option, &mut into.health_check, found),
        "failfast_all_unhealthy_upstreams" => into.fail_fast = found.alone(PLUGIN, option),
        "failover" => into.failover.extend(codes(option, found)),
        "next" => into.next.extend(codes(option, found)),
        // Bounds of connections that are kept; here they are bounded anyway.
        "max_idle_conns" | "max_connect_attempts" => {
            let _ = only_number::<u32>(PLUGIN, option, found);
        }
        "max_age" => {
            let _ = only_duration(PLUGIN, option, found);
        }
        "tls" | "tls_servername" | "doh_method" | "source_address" | "resolver" | "next_on_nodata" => {
            found.unsupported(PLUGIN, option.name());
        }
        _ => found.unknown(PLUGIN, option),
    }
}

fn policy(option: &Line, found: &mut Findings) -> Option<Policy> {
    let word = only("forward", option, found)?;
    match word.text.as_str() {
        "random" => Some(Policy::Random),
        "round_robin" => Some(Policy::RoundRobin),
        "sequential" => Some(Policy::Sequential),
        _ => {
            found.invalid("forward", word, "policy: random, round_robin or sequential");
            None
        }
    }
}

/// `health_check DURATION [no_rec] [domain FQDN]`.
fn health_check(option: &Line, into: &mut HealthCheck, found: &mut Findings) {
    let [interval, rest @ ..] = option.arguments() else { return found.arguments("forward", option) };
    into.interval = duration("forward", interval, found).unwrap_or_default().max(Duration::from_millis(10));
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match word.text.as_str() {
            "no_rec" => into.recursion = false,
            "domain" => match rest.next().and_then(|word| name("forward", word, found)) {
                Some(domain) => into.domain = domain,
                None => found.arguments("forward", option),
            },
            _ => found.add("forward", word, format_args!("unknown option {:?} of health_check", word.text)),
        }
    }
}

fn codes(option: &Line, found: &mut Findings) -> Vec<u8> {
    if option.arguments().is_empty() {
        found.arguments("forward", option);
    }
    let mut codes = Vec::new();
    for word in option.arguments() {
        match words::code_number(&word.text) {
            Some(code) if code != words::NOERROR || option.name().text == "next" => codes.push(code),
            _ => found.invalid("forward", word, "code to go on after"),
        }
    }
    codes
}
