//! What is in a namespace, whatever it is: deletes it, and finds what remains.

use std::collections::BTreeMap;

use fairlead_api::{Failure, Kind, kinds};
use fairlead_cluster::{Cluster, Delete, Error, Head, Heads, Propagation, Resource};
use futures_util::stream::{self, StreamExt};

/// So many resources are emptied at a time.
const AT_ONCE: usize = 8;

/// What a pass through a namespace found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Group versions whose resources are not known, and why; or why none is known.
    pub(super) undiscovered: Option<String>,
    /// Why something could not be deleted.
    pub(super) failed: Vec<String>,
    /// How many objects of which resource remain.
    pub(super) remaining: Vec<(Resource, usize)>,
    /// How many objects wait for which finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// The first of what remains, and the revision at which it did.
    pub(super) first: Option<Waiting>,
    /// Why not everything could be looked at.
    pub(super) error: Option<Error>,
}

/// What a namespace waits for.
#[derive(Debug)]
pub(super) struct Waiting {
    resource: Resource,
    revision: Option<u64>,
}

impl Waiting {
    /// The kind and the revision after which to watch it, if we can.
    pub(super) fn followable(&self) -> Option<(&'static Kind, u64)> {
        Some((self.resource.kind()?, self.revision?))
    }
}

impl Findings {
    fn add(&mut self, resource: Resource, emptied: Result<Heads, Error>) {
        let left = match emptied {
            Ok(left) => left,
            Err(error) => {
                self.failed.push(error.to_string());
                self.error = Some(error);
                return;
            }
        };
        if left.items.is_empty() {
            return;
        }
        for finalizer in left.items.iter().flat_map(|head| &head.finalizers) {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        self.remaining.push((resource.clone(), left.items.len()));
        self.first.get_or_insert(Waiting { resource, revision: left.revision });
    }
}

/// Deletes everything in a namespace: the Pods, and once they are gone all the rest, so that what runs keeps what it needs.
pub(super) async fn empty(cluster: &Cluster, namespace: &str) -> Findings {
    let mut findings = Findings::default();
    let pods = Resource::of(&kinds::POD);
    let emptied = empty_resource(cluster, &pods, namespace).await;
    findings.add(pods.clone(), emptied);
    if findings.first.is_some() || findings.error.is_some() {
        return findings;
    }
    let others = discover(cluster, &mut findings)
        .await
        .into_iter()
        .filter(|resource| (&resource.group, &resource.name) != (&pods.group, &pods.name));
    let emptied = stream::iter(others).map(|resource| async move {
        let emptied = empty_resource(cluster, &resource, namespace).await;
        (resource, emptied)
    });
    let mut emptied = emptied.buffered(AT_ONCE);
    while let Some((resource, emptied)) = emptied.next().await {
        findings.add(resource, emptied);
    }
    findings
}

/// All resources with objects in namespaces that can be deleted. What cannot be discovered keeps the namespace from going.
async fn discover(cluster: &Cluster, findings: &mut Findings) -> Vec<Resource> {
    let discovery = match cluster.discover().await {
        Ok(discovery) => discovery,
        Err(error) => {
            findings.undiscovered = Some(error.to_string());
            findings.error = Some(error);
            return Vec::new();
        }
    };
    if let Some((_, error)) = discovery.failures.first() {
        let groups: Vec<_> = discovery.failures.iter().map(|(group, error)| format!("{group}: {error}")).collect();
        findings.undiscovered = Some(format!(
            "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server APIs: {}",
            groups.len(),
            groups.join(", ")
        ));
        findings.error = Some(error.clone());
    }
    let deletable = |resource: &Resource| resource.namespaced && resource.can("delete");
    discovery.resources.into_iter().filter(deletable).collect()
}

/// Deletes all objects of a resource; what is left needs time, or its finalizers do.
async fn empty_resource(cluster: &Cluster, resource: &Resource, namespace: &str) -> Result<Heads, Error> {
    let before = heads(cluster, resource, namespace).await?;
    let fresh: Vec<&Head> = before.items.iter().filter(|head| !head.terminating).collect();
    if fresh.is_empty() && resource.can("list") {
        return Ok(before);
    }
    let how = Delete { propagation: Some(Propagation::Background), ..Delete::default() };
    if resource.can("deletecollection") {
        unless_absent(cluster.delete_every(resource, namespace, &how)).await?;
    } else {
        for head in fresh {
            unless_absent(cluster.delete_one(resource, namespace, &head.name, &how)).await?;
        }
    }
    heads(cluster, resource, namespace).await
}

async fn heads(cluster: &Cluster, resource: &Resource, namespace: &str) -> Result<Heads, Error> {
    if !resource.can("list") {
        return Ok(Heads::default());
    }
    unless_absent(cluster.heads(resource, namespace)).await
}

/// A resource that is served no more, or never was for this verb, holds nothing.
async fn unless_absent<T: Default>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match answer.await {
        Err(Error::NotFound(_) | Error::Refused(Failure { code: 405, .. })) => Ok(T::default()),
        other => other,
    }
}
