//! Writes of one controller for one Service, one after another.

use fairlead_api::view::Meta;
use fairlead_api::{Kind, Look};
use fairlead_cluster::{Cluster, Delete, Error, Key};
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::Work;
use super::concern::Touched;

/// One write.
#[derive(Debug)]
pub(super) enum Write {
    Create(&'static Kind, Value),
    Update(&'static Kind, Value),
    Delete(&'static Kind, Meta),
}

/// What came of the writes.
#[derive(Debug)]
pub(super) struct Landed {
    pub(super) work: Work,
    /// What is there now, in the order of writing.
    pub(super) written: Vec<Touched>,
    /// Why not all was written.
    pub(super) error: Option<Error>,
}

/// Writes on their way.
pub(super) type Writing = BoxFuture<'static, Landed>;

/// Writes until one is refused.
pub(super) fn write(cluster: Cluster, work: Work, writes: Vec<Write>) -> Writing {
    Box::pin(async move {
        let mut written = Vec::with_capacity(writes.len());
        for write in writes {
            match write.send(&cluster).await {
                Ok(touched) => written.push(touched),
                Err(error) => return Landed { work, written, error: Some(error) },
            }
        }
        Landed { work, written, error: None }
    })
}

impl Write {
    async fn send(&self, cluster: &Cluster) -> Result<Touched, Error> {
        match self {
            Write::Create(kind, object) => Ok(touched(kind, &cluster.create(kind, object).await?)),
            Write::Update(kind, object) => Ok(touched(kind, &cluster.update(kind, object).await?)),
            Write::Delete(kind, object) => {
                // Only the very object that was looked at: another one of that name is not ours to judge yet.
                let how = Delete { uid: Some(object.uid.clone()), ..Delete::default() };
                match cluster.delete(kind, &object.namespace, &object.name, &how).await {
                    Err(error) if !error.is_not_found() => return Err(error),
                    _ => {}
                }
                let key = Key::new(object.namespace.as_str(), object.name.as_str());
                Ok(Touched { kind: kind.kind, key, revision: None })
            }
        }
    }
}

fn touched(kind: &'static Kind, answer: &Value) -> Touched {
    let metadata = answer.at("metadata");
    let key = Key::new(metadata.text("namespace"), metadata.text("name"));
    Touched { kind: kind.kind, key, revision: Some(metadata.text("resourceVersion").parse().unwrap_or_default()) }
}
