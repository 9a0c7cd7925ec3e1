//! What does a Service ask of the pools? Its fields and annotations, ours and MetalLB's, as one value.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{Family, Protocol, Service, TrafficPolicy};

use super::Refusal;
use crate::spec::Scheme;

/// Annotations with the addresses a Service wants, with commas between.
pub const ADDRESSES: [&str; 3] =
    ["fairlead.dev/load-balancer-ips", "metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs"];
/// Annotations with the pool a Service wants.
pub const POOL: [&str; 3] =
    ["fairlead.dev/address-pool", "metallb.io/address-pool", "metallb.universe.tf/address-pool"];
/// Annotations with a key: who has the same may have the same address.
pub const SHARE: [&str; 3] =
    ["fairlead.dev/allow-shared-ip", "metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip"];
/// The field with the address a Service wants.
const FIELD: &str = "spec.loadBalancerIP";

/// What a Service asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Whose wish it is.
    pub service: Arc<Key>,
    /// From which pools.
    pub scheme: Scheme,
    /// The families of its addresses, the first first.
    pub families: Vec<Family>,
    /// What if not all of them are to be had.
    pub stacks: Stacks,
    /// Just these addresses, and what says so.
    pub addresses: Option<(&'static str, Vec<IpAddr>)>,
    /// Just this pool, and what says so.
    pub pool: Option<(&'static str, String)>,
    /// With whom it shares an address.
    pub share: Option<Arc<str>>,
    /// What it listens at.
    pub ports: BTreeSet<(Protocol, u16)>,
    /// Only endpoints on the Node that answers (`externalTrafficPolicy: Local`).
    pub local: bool,
    /// Which Pods stand behind it.
    pub selector: BTreeMap<String, String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The addresses it has, by its status.
    pub has: Vec<IpAddr>,
}

/// What if not all families are to be had (`ipFamilyPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stacks {
    /// Every one is needed.
    All,
    /// One is enough.
    Some,
}

impl Wish {
    /// Reads a Service of type LoadBalancer.
    pub fn read(key: Arc<Key>, service: &Service, scheme: Scheme) -> Result<Wish, Refusal> {
        let spec = &service.spec;
        let prefers = spec.ip_family_policy.as_deref() == Some("PreferDualStack");
        Ok(Wish {
            scheme,
            families: families(service),
            stacks: if prefers { Stacks::Some } else { Stacks::All },
            addresses: addresses(service)?,
            pool: said(service, &POOL)?.map(|(what, name)| (what, name.to_owned())),
            share: said(service, &SHARE)?.map(|(_, key)| Arc::from(key)),
            ports: spec.ports.iter().filter_map(|port| Some((port.protocol, u16::try_from(port.port).ok()?))).collect(),
            local: spec.external_traffic_policy == TrafficPolicy::Local,
            selector: spec.selector.clone(),
            labels: service.metadata.labels.clone(),
            has: service.status.load_balancer.ingress.iter().filter_map(|ingress| ip::parse(&ingress.ip)).collect(),
            service: key,
        })
    }
}

/// Old servers say no families.
fn families(service: &Service) -> Vec<Family> {
    let spec = &service.spec;
    if !spec.ip_families.is_empty() {
        return spec.ip_families.clone();
    }
    let ips = if spec.cluster_ips.is_empty() { std::slice::from_ref(&spec.cluster_ip) } else { &spec.cluster_ips[..] };
    let mut families: Vec<Family> = Vec::new();
    for ip in ips.iter().filter_map(|text| ip::parse(text)) {
        let family = super::range::number(ip).0;
        if !families.contains(&family) {
            families.push(family);
        }
    }
    if families.is_empty() { vec![Family::V4] } else { families }
}

/// What one of several annotations says. They may all be there if they agree.
fn said<'a>(service: &'a Service, names: &[&'static str]) -> Result<Option<(&'static str, &'a str)>, Refusal> {
    let mut found: Option<(&'static str, &str)> = None;
    for name in names {
        let text = service.metadata.annotations.get(*name).map(|text| text.trim()).filter(|text| !text.is_empty());
        match (found, text) {
            (_, None) => {}
            (None, Some(text)) => found = Some((name, text)),
            (Some((other, before)), Some(text)) if before != text => return Err(Refusal::Contradiction(other, name)),
            (Some(_), Some(_)) => {}
        }
    }
    Ok(found)
}

fn addresses(service: &Service) -> Result<Option<(&'static str, Vec<IpAddr>)>, Refusal> {
    let field = Some(service.spec.load_balancer_ip.trim()).filter(|text| !text.is_empty());
    let annotation = said(service, &ADDRESSES)?;
    let (what, text) = match (annotation, field) {
        (Some((what, _)), Some(_)) => {
            let same =
                parsed(what, annotation.map_or("", |(_, text)| text))? == parsed(FIELD, field.unwrap_or_default())?;
            if !same {
                return Err(Refusal::Contradiction(what, FIELD));
            }
            annotation.expect("matched a line ago")
        }
        (Some(said), None) => said,
        (None, Some(text)) => (FIELD, text),
        (None, None) => return Ok(None),
    };
    Ok(Some((what, parsed(what, text)?)))
}

fn parsed(what: &'static str, text: &str) -> Result<Vec<IpAddr>, Refusal> {
    let read =
        |text: &str| ip::parse(text.trim()).ok_or_else(|| Refusal::Unreadable { what, value: text.trim().to_owned() });
    text.split(',').map(read).collect()
}
