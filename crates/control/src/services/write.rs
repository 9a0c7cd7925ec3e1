//! Writes of one controller for one Service, one after another.

use fairlead_api::view::{EndpointSlice, Endpoints, Meta, View};
use fairlead_api::{Kind, kinds};
use fairlead_cluster::{Cluster, Delete, Error};
use futures_util::future::BoxFuture;

use super::Work;
use super::concern::Touched;
use super::state::{key_of, revision};
use crate::metrics::Operation;

/// One write.
#[derive(Debug)]
pub(super) enum Write {
    Create(Object),
    Update(Object),
    Delete(&'static Kind, Meta),
    /// Endpoints whose Service is gone.
    DeleteOrphan(Meta),
}

/// What is written.
#[derive(Debug)]
pub(super) enum Object {
    Slice(EndpointSlice),
    Endpoints(Endpoints),
}

impl From<EndpointSlice> for Object {
    fn from(slice: EndpointSlice) -> Object {
        Object::Slice(slice)
    }
}

impl From<Endpoints> for Object {
    fn from(endpoints: Endpoints) -> Object {
        Object::Endpoints(endpoints)
    }
}

/// The writes of changes: what is new first, so that no endpoint is missing in between.
pub(super) fn writes<T: View + Into<Object>>(create: Vec<T>, update: Vec<T>, delete: Vec<Meta>) -> Vec<Write> {
    let creates = create.into_iter().map(|object| Write::Create(object.into()));
    let updates = update.into_iter().map(|object| Write::Update(object.into()));
    let deletes = delete.into_iter().map(|object| Write::Delete(T::KIND, object));
    creates.chain(updates).chain(deletes).collect()
}

/// What came of the writes.
#[derive(Debug)]
pub(super) struct Landed {
    pub(super) work: Work,
    /// What is there now, in the order of writing.
    pub(super) written: Vec<Touched>,
    /// What was done for it.
    pub(super) operations: Vec<Operation>,
    /// Why not all was written.
    pub(super) error: Option<Error>,
}

/// Writes on their way.
pub(super) type Writing = BoxFuture<'static, Landed>;

/// Writes until one is refused.
pub(super) fn write(cluster: Cluster, work: Work, writes: Vec<Write>) -> Writing {
    Box::pin(async move {
        let (mut written, mut operations) = (Vec::with_capacity(writes.len()), Vec::with_capacity(writes.len()));
        for write in writes {
            match write.send(&cluster).await {
                Ok(touched) => written.push(touched),
                Err(error) => return Landed { work, written, operations, error: Some(error) },
            }
            operations.push(write.operation());
        }
        Landed { work, written, operations, error: None }
    })
}

impl Write {
    fn operation(&self) -> Operation {
        match self {
            Write::Create(_) => Operation::Create,
            Write::Update(_) => Operation::Update,
            Write::Delete(..) | Write::DeleteOrphan(_) => Operation::Delete,
        }
    }

    async fn send(&self, cluster: &Cluster) -> Result<Touched, Error> {
        match self {
            Write::Create(Object::Slice(slice)) => cluster.create_view(slice).await.map(written::<EndpointSlice>),
            Write::Create(Object::Endpoints(object)) => cluster.create_view(object).await.map(written::<Endpoints>),
            Write::Update(Object::Slice(slice)) => cluster.update_view(slice).await.map(written::<EndpointSlice>),
            Write::Update(Object::Endpoints(object)) => cluster.update_view(object).await.map(written::<Endpoints>),
            Write::Delete(kind, object) => delete(cluster, kind, object).await,
            Write::DeleteOrphan(object) => {
                // A Service that was just made may be seen later than Endpoints that somebody else made for it.
                match cluster.get(&kinds::SERVICE, &object.namespace, &object.name).await {
                    Err(error) if error.is_not_found() => delete(cluster, &kinds::ENDPOINTS, object).await,
                    found => found.map(|_| written::<Endpoints>(object.clone())),
                }
            }
        }
    }
}

/// Only the very object that was looked at: another one of that name is not ours to judge yet.
async fn delete(cluster: &Cluster, kind: &'static Kind, object: &Meta) -> Result<Touched, Error> {
    let how = Delete { uid: Some(object.uid.clone()), ..Delete::default() };
    match cluster.delete(kind, &object.namespace, &object.name, &how).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Touched { kind: kind.kind, key: key_of(object), revision: None }),
    }
}

fn written<T: View>(answer: Meta) -> Touched {
    Touched { kind: T::KIND.kind, key: key_of(&answer), revision: Some(revision(&answer)) }
}
