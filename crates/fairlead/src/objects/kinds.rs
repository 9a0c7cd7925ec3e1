//! Which kinds does the server have? Those we know ourselves need not be asked for; for others, and for `all`, it is asked.

use anyhow::anyhow;
use fairlead_api::Look;
use fairlead_cluster::{Cluster, Error, Method, Resource};

use crate::subject::{self, Mistake, Subject, Wanted};

/// What the words mean on this server.
pub(super) async fn wanted(cluster: &Cluster, words: &[String]) -> anyhow::Result<Wanted> {
    let is_category = |word: &str| word.split(',').any(|word| word == "all");
    let asks_for_many = words.first().is_some_and(|word| is_category(word));
    match subject::wanted(words, &subject::known()) {
        Ok(wanted) if !asks_for_many => Ok(wanted),
        Ok(_) | Err(Mistake::UnknownKind { .. }) => Ok(subject::wanted(words, &served(cluster).await?)?),
        Err(mistake) => Err(mistake.into()),
    }
}

/// The one object a word means on this server.
pub(super) async fn one(cluster: &Cluster, word: &str) -> anyhow::Result<Subject> {
    match subject::one(&[word], &subject::known(), None) {
        Err(Mistake::UnknownKind { .. }) => Ok(subject::one(&[word], &served(cluster).await?, None)?),
        other => Ok(other?),
    }
}

/// The resource of objects that name their kind themselves.
pub(super) async fn of_manifest(cluster: &Cluster, api_version: &str, kind: &str) -> anyhow::Result<Resource> {
    let known = subject::known();
    if let Some(found) = known.iter().find(|one| one.api_version() == api_version && one.kind_name == kind) {
        return Ok(found.clone());
    }
    let (root, (group, version)) = match api_version.split_once('/') {
        Some(split) => ("/apis", split),
        None => ("/api", ("", api_version)),
    };
    let none = || {
        anyhow!(
            "the server has no kind {kind:?} in {api_version:?}; `fairlead get --help` tells how to see which it has"
        )
    };
    let list = match cluster.request(Method::GET, &format!("{root}/{api_version}"), None).await {
        Ok(list) => list,
        Err(Error::NotFound(_)) => return Err(none()),
        Err(error) => return Err(error.into()),
    };
    let resources = Resource::read(group, version, &list);
    resources.into_iter().find(|one| one.kind_name == kind).ok_or_else(none)
}

/// Everything the server has that can be read.
pub(super) async fn served(cluster: &Cluster) -> anyhow::Result<Vec<Resource>> {
    let mut resources = cluster.discover().await?.resources;
    resources.retain(|resource| resource.can("list") || resource.can("get"));
    Ok(resources)
}

/// `service`, `endpointslice.discovery.k8s.io`: the kind of an object as its results are told.
pub(super) fn told(resource: &Resource) -> String {
    let kind = resource.kind_name.to_lowercase();
    if resource.group.is_empty() { kind } else { format!("{kind}.{}", resource.group) }
}

/// The items of a list with what the list says of them all.
pub(super) fn items(mut list: serde_json::Value, resource: &Resource) -> Vec<serde_json::Value> {
    let Some(serde_json::Value::Array(mut items)) = list.unset("items") else { return vec![list] };
    for item in &mut items {
        if item.text("kind").is_empty() {
            item.set("kind", resource.kind_name.as_str());
            item.set("apiVersion", resource.api_version());
        }
    }
    items
}
