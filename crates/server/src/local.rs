//! The server seen from inside its own process: requests without a socket, by a user the program vouches for, and reads that
//! share what the store holds instead of encoding it.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fairlead_api::source::{self, Key, Later, List, Object, Selection, Source};
use fairlead_api::{Failure, Kind};
use fairlead_store::{Entry, Error as StoreError, Event, Range, Revision, Watch};
use futures_util::future::BoxFuture;
use http::{Request, Response};

use crate::auth::User;
use crate::auth::rbac::{Attributes, Target as About};
use crate::options::{ListOptions, Query};
use crate::read::{Filter, too_old_or_unavailable, unavailable};
use crate::reply::Body;
use crate::route::Target;
use crate::{Server, object};

/// Says who sends a request, among the request's extensions. Nothing that comes over a connection can carry one, and only this
/// file makes them.
#[derive(Debug, Clone)]
pub(crate) struct Trusted(pub(crate) Arc<User>);

/// The server as one user in this process sees it: a tower Service for requests, a [`Source`] for reads. Roles hold as for
/// everybody. Cheap to clone.
#[derive(Clone)]
pub struct Local {
    server: Server,
    user: Arc<User>,
}

impl Server {
    /// A way in for a part of this program. No credentials are asked for: the caller says who the user is.
    pub fn local(&self, user: User) -> Local {
        Local { server: self.clone(), user: Arc::new(user) }
    }
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("user", &self.user.name).finish_non_exhaustive()
    }
}

impl<B> tower::Service<Request<B>> for Local
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        request.extensions_mut().insert(Trusted(self.user.clone()));
        let server = self.server.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

impl Source for Local {
    /// One page always: it only shares what is there.
    fn list<'a>(&'a self, selection: &'a Selection, _: Option<&'a str>) -> Later<'a, Result<List, Failure>> {
        Box::pin(async move {
            let reader = self.reader("list", selection)?;
            let range = Range { prefix: reader.prefix.as_str().into(), ..Range::default() };
            let page = self.server.inner.store.range(range).await.map_err(too_old_or_unavailable)?;
            let selected = page.entries.iter().filter(|entry| reader.filter.matches(entry));
            let objects = selected.map(|entry| reader.object(entry)).collect::<Result<_, _>>()?;
            Ok(List { objects, revision: page.revision.0, more: None })
        })
    }

    fn watch<'a>(&'a self, selection: &'a Selection, after: u64) -> Later<'a, Result<Box<dyn source::Watch>, Failure>> {
        Box::pin(async move {
            let reader = self.reader("watch", selection)?;
            let opened = self.server.inner.store.watch(&reader.prefix, Revision(after)).await;
            let watch = opened.map_err(expired_or_unavailable)?;
            Ok(Box::new(Following { reader, watch }) as Box<dyn source::Watch>)
        })
    }
}

impl Local {
    fn reader(&self, verb: &str, selection: &Selection) -> Result<Reader, Failure> {
        let about = About::Resource {
            group: selection.kind.group,
            resource: selection.kind.resource,
            subresource: "",
            namespace: &selection.namespace,
            name: "",
        };
        self.server.inner.access.authorize(&self.user, &Attributes { verb, target: about })?;
        Reader::new(selection)
    }
}

/// Reads entries as objects of one selection.
struct Reader {
    kind: &'static Kind,
    prefix: String,
    filter: Filter,
}

impl Reader {
    fn new(selection: &Selection) -> Result<Reader, Failure> {
        let Selection { kind, namespace, labels, fields } = selection.clone();
        let prefix = object::prefix(kind, &namespace);
        let (name, subresource, rest) = Default::default();
        let target = Target { kind, namespace, name, subresource, rest, watch: false };
        let any = ListOptions::parse(&Query::parse(""))?;
        let options = ListOptions { label_selector: labels, field_selector: fields, ..any };
        Ok(Reader { kind, prefix, filter: Filter::new(&target, &options)? })
    }

    /// What an event means for the selection, if anything.
    fn change(&self, event: &Event) -> Option<Result<source::Event, Failure>> {
        if !event.deleted && self.filter.matches(&event.entry) {
            return Some(self.object(&event.entry).map(source::Event::Put));
        }
        let was_selected = event.previous.as_ref().is_some_and(|previous| self.filter.matches(previous));
        was_selected.then(|| Ok(source::Event::Delete(self.key(&event.entry), event.revision.0)))
    }

    fn object(&self, entry: &Entry) -> Result<Object, Failure> {
        Ok(Object { key: self.key(entry), revision: entry.revision.0, json: object::text(self.kind, entry)? })
    }

    fn key(&self, entry: &Entry) -> Key {
        let mut parts = entry.key.rsplit('/');
        let name = parts.next().unwrap_or_default();
        Key::new(if self.kind.namespaced { parts.next().unwrap_or_default() } else { "" }, name)
    }
}

/// A watch of one selection.
struct Following {
    reader: Reader,
    watch: Watch,
}

impl source::Watch for Following {
    fn next(&mut self) -> Later<'_, Result<Vec<source::Event>, Failure>> {
        Box::pin(async move {
            loop {
                let events = self.watch.next().await.map_err(expired_or_unavailable)?;
                let changes = events.iter().filter_map(|event| self.reader.change(event));
                let changes = changes.collect::<Result<Vec<_>, _>>()?;
                if !changes.is_empty() {
                    return Ok(changes);
                }
            }
        })
    }

    fn progress(&self) -> u64 {
        self.watch.progress().0
    }
}

/// 410 for changes that are no longer kept, in the words of a watch.
fn expired_or_unavailable(error: StoreError) -> Failure {
    match error {
        StoreError::Compacted { requested, oldest } => {
            Failure::new(410, "Expired", format!("too old resource version: {requested} ({oldest})"))
        }
        other => unavailable(other),
    }
}
