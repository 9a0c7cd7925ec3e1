//! Endpoints made by hand that are cluster IPs: traffic to them would have to be forwarded twice, which no proxy does.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::problem::About;
use super::record::{Metadata, Service, Text};
use super::{Finding, Mend, Problem};
use crate::{Kind, ip, kinds};

/// An Endpoints or EndpointSlice object that no controller made.
#[derive(Debug)]
pub struct HandMade<'a> {
    kind: &'static Kind,
    metadata: Metadata<'a>,
    addresses: Vec<IpAddr>,
}

impl<'a> HandMade<'a> {
    /// Reads a stored EndpointSlice; `None` if a controller made it.
    pub fn slice(json: &'a [u8]) -> Result<Option<HandMade<'a>>, serde_json::Error> {
        let head: Head<'a> = serde_json::from_slice(json)?;
        let (Some(endpoints), true) = (head.endpoints, head.is_hand_made()) else { return Ok(None) };
        let endpoints: Option<Vec<Endpoint<'_>>> = serde_json::from_str(endpoints.get())?;
        let texts = endpoints.iter().flatten().flat_map(|endpoint| endpoint.addresses.iter().flatten());
        let addresses = texts.filter_map(|text| ip::parse(text)).collect();
        Ok(Some(HandMade { kind: &kinds::ENDPOINT_SLICE, metadata: head.metadata, addresses }))
    }

    /// Reads a stored Endpoints object; `None` if a controller made it.
    pub fn endpoints(json: &'a [u8]) -> Result<Option<HandMade<'a>>, serde_json::Error> {
        let head: Head<'a> = serde_json::from_slice(json)?;
        let (Some(subsets), true) = (head.subsets, head.is_hand_made()) else { return Ok(None) };
        let subsets: Option<Vec<Subset<'_>>> = serde_json::from_str(subsets.get())?;
        let both = |subset: &Subset<'_>| -> Vec<IpAddr> {
            let all = subset.addresses.iter().chain(&subset.not_ready_addresses).flatten();
            all.filter_map(|address| ip::parse(&address.ip)).collect()
        };
        let addresses = subsets.iter().flatten().flat_map(both).collect();
        Ok(Some(HandMade { kind: &kinds::ENDPOINTS, metadata: head.metadata, addresses }))
    }
}

/// One report for each object, about its first such address.
pub(super) fn examine(all: &[HandMade<'_>], holders: &HashMap<IpAddr, &Service<'_>>) -> Vec<Finding> {
    let of_service = |made: &HandMade<'_>| {
        let (ip, service) = made.addresses.iter().find_map(|ip| Some((*ip, holders.get(ip)?)))?;
        let (namespace, name) = service.key();
        let problem = Problem::EndpointIsServiceIp(ip, format!("{namespace}/{name}"));
        Some(Finding { about: About::object(made.kind, &made.metadata), problem, mend: Mend::Nothing })
    };
    all.iter().filter_map(of_service).collect()
}

/// The content stays unread until it is known that somebody made it by hand.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    endpoints: Option<&'a RawValue>,
    #[serde(borrow)]
    subsets: Option<&'a RawValue>,
}

impl Head<'_> {
    fn is_hand_made(&self) -> bool {
        let Some(labels) = &self.metadata.labels else { return true };
        let controllers = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
        !controllers.contains(&&*labels.slice_controller) && &*labels.endpoints_controller != "endpoint-controller"
    }
}

#[derive(Deserialize)]
struct Endpoint<'a> {
    #[serde(borrow, default)]
    addresses: Option<Vec<Text<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subset<'a> {
    #[serde(borrow, default)]
    addresses: Option<Vec<Ip<'a>>>,
    #[serde(borrow, default)]
    not_ready_addresses: Option<Vec<Ip<'a>>>,
}

#[derive(Deserialize)]
struct Ip<'a> {
    #[serde(borrow)]
    ip: Text<'a>,
}
