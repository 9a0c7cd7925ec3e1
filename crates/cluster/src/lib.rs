//! The one door to the API: every component sees the cluster through this crate alone.
//!
//! A [`Cluster`] sends requests and reads objects, and hides who answers: the API server of this process, a real kube-apiserver
//! named by a kubeconfig, or files. A [`Mirror`] follows some kinds and keeps typed views of them. A [`Recorder`] writes Events,
//! and [`leader`] lets one of several processes act at a time.

mod backoff;
pub mod browse;
mod connect;
pub mod controller;
mod discovery;
mod error;
mod follow;
pub mod leader;
mod manifests;
mod mirror;
pub mod programmed;
mod recorder;
mod remote;
mod request;
mod servers;
pub mod streams;
mod watched;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt};

pub use backoff::{Backoff, retry};
pub use discovery::{Discovery, Head, Heads, Resource};
pub use error::Error;
pub use fairlead_api::source::{Event, Key, List, Object, Selection, Source};
pub use follow::Step;
pub use http::Method;
pub use manifests::Skipped;
pub use mirror::{Builder, Change, Changes, Health, Mirror, Problem};
pub use recorder::{Recorder, Reference, Severity};
pub use request::{Delete, Patch, Propagation, encode};
pub use watched::{Seen, Watched};

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// Why there is no door.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kubeconfig is missing, or makes no sense.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[source] Box<kube::config::KubeconfigError>),
    /// There is none, and we do not run in a Pod.
    #[error("no kubeconfig is found: {0}")]
    Nowhere(#[source] Box<kube::config::InferConfigError>),
    /// Its certificates or credentials cannot be used.
    #[error("no client can be made from the kubeconfig: {0}")]
    Client(#[source] Box<kube::Error>),
    /// The API server's URL is none.
    #[error("{0:?} is no URL of an API server, such as https://192.0.2.1:6443")]
    Url(String),
    /// A file of manifests cannot be read.
    #[error("{file}: {why}")]
    Manifest {
        /// The file, and which document in it.
        file: String,
        /// What is wrong.
        why: String,
    },
}

/// The cluster. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
    manager: Arc<str>,
}

struct Shared {
    requests: Requests,
    source: Arc<dyn Source>,
    views: mirror::Views,
    /// What the kubeconfig says.
    namespace: String,
    /// Where the API server is, if it is elsewhere.
    url: Option<String>,
    /// Certificates by which the kubeconfig knows the API server, in PEM.
    authorities: Option<String>,
    urls: Option<watch::Receiver<Vec<String>>>,
    /// The tasks that look after the API servers. They end with this value.
    _tasks: JoinSet<()>,
}

/// Who answers requests.
pub(crate) type Requests = BoxCloneSyncService<Request<Full<Bytes>>, Response<AnswerBody>, BoxError>;
/// The body of an answer.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

impl Cluster {
    /// A cluster whose API server is in this process: `service` answers requests, `source` reads.
    pub fn new<S, B>(service: S, source: Arc<dyn Source>) -> Cluster
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Cluster::with(boxed(service), source)
    }

    /// A cluster whose API server is reached over the network. `None` looks for a kubeconfig where kubectl
    /// does, then for the account of the Pod we run in.
    pub async fn connect(kubeconfig: Option<&Path>) -> Result<Cluster, OpenError> {
        Cluster::connect_at(kubeconfig, None).await
    }

    /// The same, but the API server is at this URL, whatever the kubeconfig says of it. Without a kubeconfig there are no
    /// credentials.
    pub async fn connect_at(kubeconfig: Option<&Path>, url: Option<&str>) -> Result<Cluster, OpenError> {
        let urls: Vec<String> = url.map(str::to_owned).into_iter().collect();
        Ok(Cluster::opened(connect::connect(kubeconfig, &urls).await?, false))
    }

    /// Connects a component that goes on when an API server does not: with several URLs, and with
    /// the servers that the Service `kubernetes` leads to, requests and watches go to another one.
    /// Without URLs it begins at the one of the kubeconfig. To be called within a tokio runtime.
    pub async fn connect_to_all(kubeconfig: Option<&Path>, urls: &[String]) -> Result<Cluster, OpenError> {
        Ok(Cluster::opened(connect::connect(kubeconfig, urls).await?, true))
    }

    fn opened(connected: connect::Connected, all: bool) -> Cluster {
        let source = Arc::new(remote::Remote::new(connected.requests.clone()));
        let mut tasks = JoinSet::new();
        let servers = connected.servers;
        if all {
            tasks.spawn(servers.clone().monitor());
            tasks.spawn(servers.clone().learn(source.clone()));
        }
        let shared = Shared {
            requests: connected.requests,
            source,
            views: mirror::Views::default(),
            namespace: connected.namespace,
            url: Some(connected.url),
            authorities: connected.authorities,
            urls: Some(servers.urls()),
            _tasks: tasks,
        };
        Cluster { shared: Arc::new(shared), manager: "fairlead".into() }
    }

    /// The URLs of the API servers, if they are elsewhere, as they become known.
    pub fn server_urls(&self) -> Option<watch::Receiver<Vec<String>>> {
        self.shared.urls.clone()
    }

    /// A cluster whose reads are requests too, as those of a real one are: lists in pages, and watches.
    pub fn over<S, B>(service: S) -> Cluster
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let requests = boxed(service);
        let source = Arc::new(remote::Remote::new(requests.clone()));
        Cluster::with(requests, source)
    }

    /// A cluster that is a file or a directory of manifests. It never changes, and every write is refused. What is in the
    /// files but of no kind we know comes back beside it.
    pub fn from_manifests(path: &Path) -> Result<(Cluster, Vec<Skipped>), OpenError> {
        let (manifests, skipped) = manifests::Manifests::read(path)?;
        let manifests = Arc::new(manifests);
        Ok((Cluster::with(manifests::requests(manifests.clone()), manifests), skipped))
    }

    fn with(requests: Requests, source: Arc<dyn Source>) -> Cluster {
        let (views, namespace) = (mirror::Views::default(), "default".to_owned());
        let shared = Shared {
            requests,
            source,
            views,
            namespace,
            url: None,
            authorities: None,
            urls: None,
            _tasks: JoinSet::new(),
        };
        Cluster { shared: Arc::new(shared), manager: "fairlead".into() }
    }

    /// The namespace that is meant where none is said: the kubeconfig's, else `default`.
    pub fn namespace(&self) -> &str {
        &self.shared.namespace
    }

    /// Where its API server is; `None`: in this process, or nowhere.
    pub fn url(&self) -> Option<&str> {
        self.shared.url.as_deref()
    }

    /// Returns the certificates by which the kubeconfig, or the account of the Pod we run in, knows
    /// the API server, in PEM. `None`: it names none, or the API server is in this process.
    pub fn authorities(&self) -> Option<&str> {
        self.shared.authorities.as_deref()
    }

    /// The same cluster, written to under another name: the field manager and user agent of requests.
    pub fn managed_by(&self, manager: &str) -> Cluster {
        Cluster { shared: self.shared.clone(), manager: manager.into() }
    }

    /// What is there now. Who wants to follow it takes a [`Mirror`].
    pub async fn list(&self, selection: &Selection) -> Result<List, Error> {
        let mut list = self.shared.source.list(selection, None).await?;
        while let Some(more) = list.more.take() {
            let page = self.shared.source.list(selection, Some(&more)).await?;
            list.objects.extend(page.objects);
            list.more = page.more;
        }
        Ok(list)
    }

    /// Follows some objects for ever, as bytes: for who remembers less of them than a [`Mirror`] does. It moves only while it
    /// is polled.
    pub fn follow(&self, selection: Selection) -> BoxStream<'static, Step> {
        self.follow_after(selection, None)
    }

    /// The same for who knows already what was there at a revision: there is a list only if what followed is no longer kept.
    pub fn follow_after(&self, selection: Selection, revision: Option<u64>) -> BoxStream<'static, Step> {
        follow::follow(self.shared.source.clone(), selection, revision)
    }

    /// Who reads.
    pub fn source(&self) -> &Arc<dyn Source> {
        &self.shared.source
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("manager", &self.manager).finish_non_exhaustive()
    }
}

fn boxed<S, B>(service: S) -> Requests
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let answer = |response: Response<B>| response.map(|body| body.map_err(Into::into).boxed_unsync());
    BoxCloneSyncService::new(service.map_response(answer).map_err(Into::into))
}
