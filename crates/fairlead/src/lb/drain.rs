//! `fairlead lb drain`: takes a backend or a Node out of load balancing, through the API, so that it lasts.

use std::io::Write;

use anyhow::{Context, bail};
use fairlead_api::kinds;
use fairlead_api::view::{Endpoint, EndpointSlice};
use fairlead_cluster::Patch;
use serde_json::{Value, json};

use super::Place;
use super::look::Known;
use crate::door;

/// The annotation with the weight of a Pod, or those of the endpoints of a slice.
const WEIGHT: &str = "fairlead.dev/weight";
/// The label of Nodes that answer for no load balancer.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A Node answers for no load balancer any more, or again.
pub(super) async fn node(place: &Place, name: &str, undo: bool) -> anyhow::Result<()> {
    let cluster = door::open(place.kubeconfig.as_deref()).await?.managed_by("fairlead-lb");
    let value = if undo { Value::Null } else { json!("") };
    let patch = Patch::Merge(json!({"metadata": {"labels": {EXCLUDED: value}}}));
    cluster.patch(&kinds::NODE, "", name, &patch).await.with_context(|| format!("node/{name}"))?;
    let what = if undo { "may answer for load balancers again" } else { "answers for no load balancer any more" };
    Ok(writeln!(std::io::stdout(), "node/{name} {what}")?)
}

/// A backend gets no new connections any more, or again.
pub(super) async fn backend(
    place: &Place,
    namespace: &str,
    service: &str,
    backend: &str,
    undo: bool,
) -> anyhow::Result<()> {
    let known = Known::look(place, Some(namespace), Some(service)).await?;
    let object = known.services.first().with_context(|| format!("there is no Service {namespace}/{service}"))?;
    let Some((slice, endpoint)) = find(known.slices(object), backend) else {
        bail!("the Service {namespace}/{service} has no backend {backend:?}: want a Pod of it, or an address");
    };
    let pod = endpoint.target_ref.as_ref().filter(|reference| reference.kind == "Pod").map(|reference| &reference.name);
    let what = match pod {
        Some(pod) => {
            let value = if undo { Value::Null } else { json!("0") };
            let patch = Patch::Merge(json!({"metadata": {"annotations": {WEIGHT: value}}}));
            known.cluster.patch(&kinds::POD, namespace, pod, &patch).await.with_context(|| format!("pod/{pod}"))?;
            format!("pod/{pod}")
        }
        None => {
            let address = endpoint.addresses.first().map(String::as_str).unwrap_or_default();
            let said = slice.metadata.annotations.get(WEIGHT).map(String::as_str).unwrap_or_default();
            let patch = Patch::Merge(json!({"metadata": {"annotations": {WEIGHT: weights(said, address, undo)}}}));
            let name = &slice.metadata.name;
            known.cluster.patch(&kinds::ENDPOINT_SLICE, namespace, name, &patch).await.with_context(|| name.clone())?;
            address.to_owned()
        }
    };
    let now = if undo { "gets new connections again" } else { "gets no new connections any more" };
    Ok(writeln!(std::io::stdout(), "{what} {now}")?)
}

/// The endpoint that somebody means by the name of a Pod, or an address with or without a port.
fn find<'a>(slices: &'a [EndpointSlice], backend: &str) -> Option<(&'a EndpointSlice, &'a Endpoint)> {
    let name = backend.strip_prefix("pod/").unwrap_or(backend);
    let ip =
        backend.parse().map_or_else(|_| backend.to_owned(), |address: std::net::SocketAddr| address.ip().to_string());
    let meant = |endpoint: &&Endpoint| {
        endpoint.addresses.first() == Some(&ip) || endpoint.target_ref.as_ref().is_some_and(|pod| pod.name == name)
    };
    slices.iter().find_map(|slice| slice.endpoints.iter().find(meant).map(|endpoint| (slice, endpoint)))
}

/// The weights of a slice with one of them 0, or no longer said.
fn weights(said: &str, address: &str, undo: bool) -> Value {
    let other = |item: &&str| item.split_once('=').is_none_or(|(of, _)| of.trim() != address);
    let mut items: Vec<String> =
        said.split(',').map(str::trim).filter(|item| !item.is_empty()).filter(other).map(str::to_owned).collect();
    if !undo {
        items.push(format!("{address}=0"));
    }
    if items.is_empty() { Value::Null } else { items.join(",").into() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::weights;

    #[test]
    fn one_weight_of_a_slice_changes_and_the_others_stay() {
        let check =
            |said: &str, undo: bool, expected: Value| assert_eq!(weights(said, "10.0.0.1", undo), expected, "{said}");
        check("", false, json!("10.0.0.1=0"));
        check("5", false, json!("5,10.0.0.1=0"));
        check("10.0.0.2=7, 10.0.0.1=3", false, json!("10.0.0.2=7,10.0.0.1=0"));
        check("10.0.0.2=7,10.0.0.1=0", true, json!("10.0.0.2=7"));
        check("10.0.0.1=0", true, Value::Null);
    }
}
