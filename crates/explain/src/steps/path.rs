//! Does anything else stand in the way: parameters of the kernel, rules of others?

use fairlead_api::view::Family;
use fairlead_endpoints::members::families;

use super::{Case, Draft, list};
use crate::{Cause, Forwarding, From, Severity};

pub(super) fn look(case: &Case<'_>) -> Draft {
    if case.is_alias() {
        return Draft::skipped("an alias leads elsewhere");
    }
    let evidence = case.evidence;
    let ended = evidence.live.as_ref().filter(|live| !live.ended_by_us).and_then(|live| live.ended_by.clone());
    if evidence.forwarding.is_none() && evidence.foreign.is_none() && evidence.live.is_none() {
        return case.blind("parameters and foreign rules of the kernel were not looked at");
    }
    let mut draft = Draft::default();
    if let Some(forwarding) = &evidence.forwarding {
        forwards(case, forwarding, &mut draft);
    }
    if let (None, None, Some(blind)) = (&evidence.foreign, &evidence.live, &evidence.blind) {
        draft.see(blind.clone());
    }
    let foreign: Vec<&String> = evidence.foreign.iter().flatten().chain(&ended).collect();
    if !foreign.is_empty() {
        let message = format!("a rule that is not Fairlead's ends the packet's way: {}", list(foreign.iter()));
        let remedy = vec!["nft list ruleset".to_owned(), "iptables-save -c".to_owned()];
        draft.broken(Cause::ForeignRuleDrops, message, remedy);
    }
    draft
}

fn forwards(case: &Case<'_>, forwarding: &Forwarding, draft: &mut Draft) {
    let families = families(case.service);
    let off = families.iter().filter_map(|family| match family {
        Family::V4 => (forwarding.v4 == Some(false)).then_some("net.ipv4.ip_forward"),
        Family::V6 => (forwarding.v6 == Some(false)).then_some("net.ipv6.conf.all.forwarding"),
    });
    let off: Vec<&str> = off.collect();
    // What the Node sends itself needs no forwarding, and of two families one is enough.
    let works = matches!(case.question.from, From::Node(_)) || off.len() < families.len();
    let severity = if works { Severity::Warning } else { Severity::Broken };
    for name in off {
        let message = format!("{name} is 0: the kernel passes no packets on between Pods and the network");
        draft.find(severity, Cause::ForwardingOff, message, vec![format!("sysctl -w {name}=1")]);
    }
    if draft.is_quiet() {
        draft.see("the kernel forwards packets");
    }
}
