//! The objects of a cluster that an explanation needs, read once.

use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Endpoints, Namespace, Node, Service, View};
use fairlead_cluster::{Cluster, Error, Selection};
use fairlead_explain::{Change, Event, Objects, Pod};

/// Reads them. Who may not read Services gets an error; what else may not be read is as if there were none.
pub(crate) async fn objects(cluster: &Cluster) -> Result<Objects, Error> {
    let mut objects = Objects::default();
    let services = all::<Service>(cluster).await?;
    objects.apply(services.into_iter().map(|(key, it)| Change::Service(key, Some(it))));
    take::<Pod>(&mut objects, cluster, Change::Pod).await?;
    take::<EndpointSlice>(&mut objects, cluster, Change::EndpointSlice).await?;
    take::<Endpoints>(&mut objects, cluster, Change::Endpoints).await?;
    take::<Node>(&mut objects, cluster, Change::Node).await?;
    take::<Namespace>(&mut objects, cluster, Change::Namespace).await?;
    take::<Event>(&mut objects, cluster, Change::Event).await?;
    Ok(objects)
}

async fn take<T: View>(
    objects: &mut Objects,
    cluster: &Cluster,
    change: fn(Key, Option<Arc<T>>) -> Change,
) -> Result<(), Error> {
    let read = match all::<T>(cluster).await {
        Ok(read) => read,
        Err(error) if error.is_transient() => return Err(error),
        Err(error) => {
            tracing::debug!(%error, kind = T::KIND.kind, "cannot be read");
            return Ok(());
        }
    };
    objects.apply(read.into_iter().map(|(key, it)| change(key, Some(it))));
    Ok(())
}

async fn all<T: View>(cluster: &Cluster) -> Result<Vec<(Key, Arc<T>)>, Error> {
    let list = cluster.list(&Selection::all(T::KIND)).await?;
    // What cannot be read no component sees either.
    let read = |object: &fairlead_api::source::Object| {
        let view: T = serde_json::from_slice(&object.json).ok()?;
        Some((object.key.clone(), Arc::new(view)))
    };
    Ok(list.objects.iter().filter_map(read).collect())
}
