//! Objects with revisions and a watchable past. A [`Backend`] keeps them: in memory, in a directory, or in etcd.
//!
//! Keys are laid out as kube-apiserver lays them out (`/registry/services/specs/default/web`). Values are JSON objects; the
//! revision at which a key was last written is the object's `metadata.resourceVersion`, and the store puts it into
//! the JSON it hands out.

mod embedded;
mod entry;
mod error;
mod etcd;
mod memory;
mod page;
mod state;
mod txn;
mod window;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

pub use embedded::{Embedded, restore};
pub use entry::{Draft, Entry, Index, Revision};
pub use error::Error;
pub use etcd::{Decode, Etcd, EtcdOptions, EtcdTls};
pub use memory::Memory;
pub use page::{Page, Range};
pub use txn::{Guard, Outcome, Txn, Write};
pub use window::{Event, Watch};

/// A store that several servers can use at the same time.
pub trait SharedStore: Send + Sync {
    /// Writes one key without conditions. The store deletes the key when `ttl`, in whole seconds,
    /// has passed since the last write of this kind.
    fn put_for<'a>(&'a self, key: &'a str, draft: Draft, ttl: Duration) -> BoxFuture<'a, Result<(), Error>>;
}

/// Keeps objects. Implementations behave alike: the contract suite holds them to it.
pub trait Backend: Send + Sync + 'static {
    /// One object as it is now.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, Error>>;
    /// Many objects.
    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>>;
    /// Writes; returns when the writes are durable and visible. A transaction that changes nothing takes no revision.
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>>;
    /// Every change of keys under a prefix after a revision, in order, none left out. The prefix names one resource
    /// (`/registry/pods/`) or a part of it (`/registry/pods/default/`). A revision in the future is no mistake: the
    /// watch begins after it.
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Watch, Error>>;
    /// Operations for servers that share this store. `None`: one server alone can use the store.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }
    /// The newest revision.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>>;
    /// Whether it can be read and written, or what is the matter.
    fn health(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { self.revision().await.map(drop) })
    }
}
