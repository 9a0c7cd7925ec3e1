//! The API over HTTP, as a tower Service: what kube-apiserver is to a cluster, for the kinds of `fairlead_api::kinds`.
//!
//! A request is routed (`route`), its answer's form is settled (`negotiate`), the client is known and allowed (`auth`), and
//! one of `read`, `watch`, `write`, `patch`, `delete` does the work on the store. Nothing here knows which store it is.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_api::kinds::{self, Verb};
use fairlead_api::{Failure, Kind, Settings};
use fairlead_store::Backend;
use futures_util::future::BoxFuture;
use http::header::{ALLOW, HeaderName, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use jiff::Timestamp;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

mod access;
mod admission;
mod allocate;
pub mod audit;
pub mod auth;
pub mod backup;
mod body;
mod bootstrap;
mod clock;
mod connect;
mod delete;
mod documents;
mod expiry;
mod health;
pub mod join;
mod large_requests;
mod live_servers;
mod local;
mod metrics;
mod negotiate;
mod nodes;
mod object;
mod options;
pub mod pages;
mod passage;
mod patch;
mod pods;
mod privileges;
mod proxy;
mod read;
pub mod repair;
mod reply;
mod review;
mod route;
mod scale;
pub mod serve;
mod shares;
mod table;
mod watch;
mod write;
mod writers;
mod yaml;

pub use access::Authorization;
pub use admission::{Admission, ExternalIps, LoadBalancer};
pub use local::Local;
pub use nodes::{NodeDialer, NodeStream};
pub use object::read_foreign;
pub use reply::Body;
pub use shares::WatchBounds;

use access::Sender;
use large_requests::{LargeRequests, beside_workers};
use negotiate::{Asked, Form};
use options::{ListOptions, Query, WriteKind, WriteOptions};
use reply::Reply;
use route::{Route, Target};
use shares::CountedBody;
use write::How;

/// What an administrator chose.
#[derive(Debug)]
pub struct Options {
    /// What the rules depend on.
    pub settings: Settings,
    /// Kinds served beside the usual ones.
    pub extra_kinds: Vec<&'static Kind>,
    /// What is forbidden beyond the rules.
    pub admission: Admission,
    /// Where clients reach this server: the endpoint of the `kubernetes` Service.
    pub advertise: std::net::SocketAddr,
    /// Who decides what is allowed.
    pub authorization: Authorization,
    /// How long a request may take; watches may take longer.
    pub request_timeout: Duration,
    /// How the store is copied, if it can be.
    pub backup: Option<backup::Backup>,
}

/// Why a server could not start.
#[derive(Debug, Error)]
pub enum Error {
    /// The store did not take the first objects.
    #[error("cannot prepare the store: {0}")]
    Bootstrap(String),
}

/// The API server. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

/// What all requests share.
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Backend>,
    pub(crate) options: Options,
    pub(crate) access: Arc<access::Access>,
    audit: Option<audit::Audit>,
    /// Ends watches when the program ends.
    pub(crate) stop: CancellationToken,
    pub(crate) kinds: Vec<&'static Kind>,
    pub(crate) documents: documents::Documents,
    pub(crate) metrics: metrics::Metrics,
    /// The cluster IPs in use.
    pub(crate) addresses: Arc<allocate::Addresses>,
    /// The ranges they come from.
    pub(crate) ranges: allocate::KnownRanges,
    /// Held while the node-port map is read and written, so that local writers do not defeat each other.
    pub(crate) node_ports: Arc<tokio::sync::Mutex<()>>,
    /// What looked leaked.
    pub(crate) repair: repair::Repair,
    /// Who made the newest revisions.
    pub(crate) writers: writers::Writers,
    /// How Nodes are reached, once that is known.
    pub(crate) nodes: OnceLock<NodeDialer>,
    /// How machines join, if they can.
    pub(crate) join: OnceLock<join::Join>,
    /// What is shown beside the API, if anything.
    pub(crate) pages: OnceLock<pages::Pages>,
    /// Events as watches send them.
    pub(crate) frames: watch::frames::Frames,
    /// Seats for requests, watches, streams and bodies.
    shares: OnceLock<shares::Shares>,
    /// Places of requests that are much work.
    large: LargeRequests,
}

impl Server {
    /// A server on a store. Makes what every cluster has (namespaces, the `kubernetes` Service, the ServiceCIDR).
    /// Knows its clients by `authenticator`, and writes to `audit` if there is one. Watches end with `stop`.
    pub async fn new(
        store: Arc<dyn Backend>,
        options: Options,
        authenticator: auth::Authenticator,
        audit: Option<audit::Audit>,
        stop: CancellationToken,
    ) -> Result<Server, Error> {
        let kinds: Vec<_> = kinds::KINDS.iter().copied().chain(options.extra_kinds.iter().copied()).collect();
        let addresses =
            allocate::Addresses::follow(store.clone()).await.map_err(|error| Error::Bootstrap(error.to_string()))?;
        let access = Arc::new(access::Access::new(authenticator, options.authorization, store.clone()));
        let inner = Inner {
            access,
            audit,
            stop,
            store,
            addresses,
            documents: documents::Documents::new(&kinds, &options.settings, options.advertise),
            large: LargeRequests::new(),
            options,
            kinds,
            metrics: metrics::Metrics::default(),
            ranges: allocate::KnownRanges::default(),
            node_ports: Arc::default(),
            repair: repair::Repair::default(),
            writers: writers::Writers::default(),
            nodes: OnceLock::new(),
            join: OnceLock::new(),
            pages: OnceLock::new(),
            frames: watch::frames::Frames::default(),
            shares: OnceLock::new(),
        };
        let failed = |failure: Failure| Error::Bootstrap(failure.message);
        bootstrap::run(&inner).await.map_err(failed)?;
        inner.access.follow().await.map_err(failed)?;
        Ok(Server { inner: Arc::new(inner) })
    }

    /// Says how Nodes are reached: logs, exec, attach and port-forward go there. The first word counts.
    pub fn reach_nodes_by(&self, dialer: NodeDialer) {
        if self.inner.nodes.set(dialer).is_err() {
            tracing::warn!("how nodes are reached was said before");
        }
    }

    /// Bounds requests and watches, in budgets of the process's account. The first call counts, if
    /// it comes before the first request; without it the defaults hold.
    pub fn bound(&self, requests: serve::in_flight::Bounds, watches: WatchBounds, account: &fairlead_runtime::Account) {
        if self.inner.shares.set(shares::Shares::new(requests, watches, account)).is_err() {
            tracing::warn!("requests were bounded before");
        }
    }

    /// Lets machines join. The first word counts.
    pub fn let_join(&self, join: join::Join) {
        if self.inner.join.set(join).is_err() {
            tracing::warn!("how machines join was said before");
        }
    }

    /// Answers one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (started, received) = (Instant::now(), Timestamp::now());
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let route = route::route(&route::percent_decode(parts.uri.path()), &self.inner.kinds);
        let labels = metrics::Labels::of(&parts.method, &route, &query);
        let mut call = Call {
            server: &self.inner,
            parts: &parts,
            query: &query,
            started,
            warnings: Vec::new(),
            sender: None,
            placed: false,
        };
        let mut body = std::pin::pin!(body);
        let answer = call.answer(&route, body.as_mut());
        let answer = match tokio::time::timeout(self.inner.options.request_timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(timed_out()),
        };
        discard(body).await;
        let failed = answer.as_ref().err().map(|failure| (failure.reason, failure.message.clone()));
        let mut response = answer.unwrap_or_else(|failure| {
            reply::failure(&failure, negotiate::fallback(&parts.headers, query.get("pretty")))
        });
        add_warnings(&mut response, &call.warnings);
        let code = response.status();
        if let (StatusCode::METHOD_NOT_ALLOWED, Route::Resource(target)) = (code, &route) {
            add_allowed_methods(&mut response, target);
        }
        self.inner.metrics.request(labels, code, started.elapsed());
        if let Some(audit) = &self.inner.audit {
            call.audit(audit, &route, code.as_u16(), failed, received);
        }
        if parts.method == Method::HEAD { reply::without_body(response) } else { response }
    }
}

impl Inner {
    pub(crate) fn shares(&self) -> &shares::Shares {
        let usual = || shares::Shares::new(Default::default(), Default::default(), &Default::default());
        self.shares.get_or_init(usual)
    }
}

impl<B> tower::Service<Request<B>> for Server
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut std::task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

/// One request on its way.
struct Call<'a> {
    server: &'a Arc<Inner>,
    parts: &'a Parts,
    query: &'a Query,
    started: Instant,
    warnings: Vec<String>,
    /// Known once authentication went well.
    sender: Option<Sender>,
    /// True while the request has a place for large requests.
    placed: bool,
}

impl Call<'_> {
    async fn answer<B>(&mut self, route: &Route, body: B) -> Result<Response<Body>, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if matches!(route, Route::Path(path) if path == join::AUTHORITIES) {
            return join::authorities(self.server, self.parts);
        }
        if let (Some(path), Some(_)) = (pages::is_public(route), self.server.pages.get()) {
            let said = match pages::login_body(path, self.parts) {
                Some(most) => self.server.shares().body(body, most, None).await.map(|body| body.bytes),
                None => Ok(Bytes::new()),
            };
            return pages::public(self.server, path, self.parts, said);
        }
        route::check_length(&self.parts.uri)?;
        let sender = self.server.access.sender(self.parts).await?;
        self.sender = Some(sender.clone());
        if sender.real.name != auth::ANONYMOUS
            && let Some(connection) = self.parts.extensions.get::<serve::Connection>()
        {
            connection.vouch(&sender.real);
        }
        let wish = access::Wish::of(self.parts, route, self.query);
        self.server.access.authorize_request(sender.user(), &wish.attributes()).await?;
        if sender.by_cookie {
            pages::cookie::check_route(route)?;
        }
        if let Some(path) = pages::data(route) {
            let bytes = match pages::takes_body(self.parts) {
                true => self.collect(body, SMALL_BODY).await?.bytes,
                false => Bytes::new(),
            };
            let _seat = self.seat().await?;
            return pages::answer(self.server, path, sender.user(), self.parts, self.query, &bytes).await;
        }
        match route {
            Route::Path(path) if path == join::PATH => {
                let bytes = self.collect(body, SMALL_BODY).await?.bytes;
                let _seat = self.seat().await?;
                join::answer(self.server, sender.user(), self.parts, &bytes).await
            }
            Route::Path(path) if path == backup::PATH => {
                self.server.access.authorize(sender.user(), &backup::EVERYTHING)?;
                backup::answer(self.server, self.parts).await
            }
            Route::Path(path) if path.trim_end_matches('/') == metrics::PATH => {
                let _seat = self.seat().await?;
                metrics::answer(self.server, self.parts).await
            }
            Route::Path(path) => match health::answer(self.server, path, self.parts, self.query).await {
                // Health is answered without a seat: probes must not fail because the server is
                // busy.
                Some(answer) => answer,
                None => {
                    let _seat = self.seat().await?;
                    documents::answer(self.server, path, self.parts)
                }
            },
            Route::Discovery(wanted) => {
                let _seat = self.seat().await?;
                documents::discovery(self.server, wanted, self.parts, self.query)
            }
            Route::UnknownResource => Err(unknown_resource()),
            Route::Resource(target) => {
                self.warnings.extend(target.kind.traits.deprecation.map(str::to_owned));
                self.resource(target, sender.user(), body).await
            }
        }
    }

    fn audit(
        &self,
        audit: &audit::Audit,
        route: &Route,
        code: u16,
        failed: Option<(&'static str, String)>,
        received: Timestamp,
    ) {
        let anonymous = Sender { real: auth::User::anonymous(), impersonated: None, by_cookie: false };
        let sender = self.sender.as_ref().unwrap_or(&anonymous);
        let wish = access::Wish::of(self.parts, route, self.query);
        let uri = self.parts.uri.to_string();
        let connection = self.parts.extensions.get::<serve::Connection>();
        audit.log(&audit::Event {
            id: &uuid::Uuid::new_v4().to_string(),
            uri: &uri,
            verb: wish.verb(),
            user: &sender.real,
            impersonated: sender.impersonated.as_ref(),
            source: connection.map(|connection| connection.peer.ip()),
            user_agent: self.user_agent(),
            object: audit_object(route),
            code,
            failure: failed.as_ref().map(|(reason, message)| (*reason, message.as_str())),
            annotations: &[("authorization.k8s.io/decision", if code == 403 { "forbid" } else { "allow" })],
            received,
            answered: Timestamp::now(),
        });
    }

    async fn resource<B>(&mut self, target: &Target, user: &auth::User, body: B) -> Result<Response<Body>, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let operation = Operation::of(&self.parts.method, target)?;
        match operation {
            Operation::List => return self.list(target, user).await,
            Operation::Proxy if *target.kind == kinds::NODE => {
                return connect::node(self.server, user, target, self.parts).await;
            }
            Operation::Proxy => {
                let body = self.collect(body, body::MAX_BODY).await?;
                let _seat = self.seat().await?;
                return proxy::proxy(self.server, user, target, self.parts, body.bytes.clone()).await;
            }
            Operation::Log => return connect::log(self.server, user, target, self.parts, self.query).await,
            Operation::Stream => return connect::stream(self.server, user, target, self.parts, self.query).await,
            _ => {}
        }
        let form = negotiate::negotiate(&self.parts.headers, self.query.get("pretty"), operation.asked())?;
        let include = self.include()?;
        let body = match operation {
            Operation::Get => CountedBody::default(),
            _ => self.collect(body, body::MAX_BODY).await?,
        };
        // The seat is free again once the answer is made, as in kube-apiserver: how fast the client
        // takes the answer does not matter to others.
        let _seat = self.seat().await?;
        // A place is held only while there is work, and so taken last: a request that waited for its
        // seat with one would keep large requests of administrators and the control loop waiting.
        let place = self.server.large.enter(&user.name, body.bytes.len()).await;
        self.placed = place.is_some();
        let reply = match operation {
            Operation::Get => {
                let found = read::get(&*self.server.store, target, self.query.text("resourceVersion")).await?;
                if scale::is_scale(target) { scale::reply(found)? } else { found }
            }
            _ => {
                let manager = options::manager_name(self.query.text("fieldManager"), self.user_agent());
                let who = format!("{manager} ({})", user.name);
                let written = writers::on_behalf_of(who, self.write(operation, target, user, &body.bytes));
                beside_workers(place.as_ref(), written).await?
            }
        };
        reply::render(reply, form, include, clock::seconds())
    }

    async fn list(&mut self, target: &Target, user: &auth::User) -> Result<Response<Body>, Failure> {
        let mut options = ListOptions::parse(self.query)?;
        options.watch |= target.watch;
        let asked = if options.watch { Asked::Watch } else { Asked::List };
        let form = negotiate::negotiate(&self.parts.headers, self.query.get("pretty"), asked)?;
        let include = self.include()?;
        if options.watch {
            // Acting as others gives nobody more watches.
            let user = self.sender.as_ref().map_or(user, |sender| &sender.real);
            let permit = self.server.shares().watch(user)?;
            return watch::watch(self.server, target, &options, form, include, permit).await;
        }
        let _seat = self.seat().await?;
        let reply = read::list(&*self.server.store, target, &options).await?;
        reply::render(reply, form, include, clock::seconds())
    }

    /// Takes a seat for this request, if its sender needs one. Requests of this process need none:
    /// the control loop must go on whatever clients do.
    async fn seat(&self) -> Result<Option<serve::in_flight::Seat>, Failure> {
        let Some(sender) = self.sender.as_ref().filter(|_| !self.is_local()) else { return Ok(None) };
        let connection = self.parts.extensions.get::<serve::Connection>();
        let source = connection.map(|connection| fairlead_runtime::Sender::from_address(connection.peer.ip()));
        let reads = matches!(self.parts.method, Method::GET | Method::HEAD);
        self.server.shares().seat(&sender.real, source.as_ref(), reads).await
    }

    fn is_local(&self) -> bool {
        self.parts.extensions.get::<local::Trusted>().is_some()
    }

    /// Reads the body whole, up to a limit. Its bytes are charged to the user as long as the result
    /// lives; those of this process's own components are not, since the control loop must go on
    /// whatever clients do.
    async fn collect<B>(&self, body: B, most: usize) -> Result<CountedBody, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let user = self.sender.as_ref().filter(|_| !self.is_local()).map(|sender| &sender.real);
        self.server.shares().body(body, most, user).await
    }

    async fn write(
        &mut self,
        operation: Operation,
        target: &Target,
        user: &auth::User,
        bytes: &[u8],
    ) -> Result<Reply, Failure> {
        let media = negotiate::content_type(&self.parts.headers);
        match operation {
            Operation::Create => self.create(target, user, bytes, media).await,
            Operation::Update => self.update(target, user, bytes, media).await,
            Operation::Patch => {
                let kind = patch::PatchType::parse(media)?;
                let options = kind.options(self.query, self.user_agent())?;
                let mut request = self.request(target, user, options, kind.how());
                let reply = patch::patch(&mut request, kind, bytes).await;
                let warnings = request.warnings;
                self.warnings.extend(warnings);
                reply
            }
            Operation::Delete => {
                let options = delete::DeleteOptions::parse(bytes, media, self.query, &self.server.options.settings)?;
                delete::delete(self.server, target, &options).await
            }
            Operation::DeleteCollection => {
                let options = delete::DeleteOptions::parse(bytes, media, self.query, &self.server.options.settings)?;
                let list = ListOptions::parse(self.query)?;
                delete::delete_collection(self.server, target, &list, &options).await
            }
            Operation::Bind => pods::bind(self.server, target, bytes, media, self.query).await,
            Operation::Evict => pods::evict(self.server, target, bytes, media, self.query).await,
            Operation::Review => review::review(self.server, user, target, bytes, media).await,
            Operation::Get | Operation::List | Operation::Proxy | Operation::Log | Operation::Stream => {
                Err(not_allowed())
            }
        }
    }

    async fn create(
        &mut self,
        target: &Target,
        user: &auth::User,
        bytes: &[u8],
        media: &str,
    ) -> Result<Reply, Failure> {
        let options = WriteOptions::parse(self.query, WriteKind::Create, self.user_agent())?;
        let expected = body::Expected::object(target.kind);
        let decoded = body::decode(bytes, media, &expected, options.field_validation, &self.server.options.settings)?;
        self.warnings.extend(decoded.warnings);
        let mut request = self.request(target, user, options, How::Replace);
        let reply = request.create(decoded.value).await;
        let warnings = request.warnings;
        self.warnings.extend(warnings);
        reply
    }

    async fn update(
        &mut self,
        target: &Target,
        user: &auth::User,
        bytes: &[u8],
        media: &str,
    ) -> Result<Reply, Failure> {
        let options = WriteOptions::parse(self.query, WriteKind::Update, self.user_agent())?;
        let expected = body::Expected::object(scale::kind_of(target));
        let decoded = body::decode(bytes, media, &expected, options.field_validation, &self.server.options.settings)?;
        self.warnings.extend(decoded.warnings);
        patch::check_name(&decoded.value, &target.name)?;
        let mut request = self.request(target, user, options, How::Replace);
        let reply = match scale::is_scale(target) {
            true => request.replace_scale(decoded.value).await,
            false => request.replace(decoded.value).await,
        };
        let warnings = request.warnings;
        self.warnings.extend(warnings);
        reply
    }

    fn request<'b>(
        &'b self,
        target: &'b Target,
        user: &'b auth::User,
        options: WriteOptions,
        how: How,
    ) -> write::Request<'b> {
        write::Request {
            server: self.server,
            target,
            user: Some(user),
            options,
            warnings: Vec::new(),
            how,
            started: self.started,
            placed: self.placed,
        }
    }

    fn include(&self) -> Result<table::Include, Failure> {
        let text = self.query.text("includeObject");
        table::Include::parse(text)
            .ok_or_else(|| Failure::bad_request(format!("unrecognized includeObject value: \"{text}\"")))
    }

    fn user_agent(&self) -> &str {
        negotiate::text(&self.parts.headers, USER_AGENT)
    }
}

/// The object of an audit event.
fn audit_object(route: &Route) -> fairlead_api::value::Value {
    let Route::Resource(target) = route else { return fairlead_api::value::Value::Null };
    let fields = [
        ("resource", target.kind.resource),
        ("namespace", target.namespace.as_str()),
        ("name", target.name.as_str()),
        ("apiGroup", target.kind.group),
        ("apiVersion", target.kind.version),
        ("subresource", target.subresource.as_str()),
    ];
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| (name.to_owned(), value.into())).collect::<fairlead_api::value::Map>().into()
}

/// What a request does with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    /// Also a watch.
    List,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// `pods/binding`
    Bind,
    /// A question that is posted and answered, not stored.
    Review,
    /// `services/proxy`, `pods/proxy`, `nodes/proxy`
    Proxy,
    /// `pods/eviction`
    Evict,
    /// `pods/log`
    Log,
    /// `pods/exec`, `attach`, `portforward`
    Stream,
}

impl Operation {
    fn of(method: &Method, target: &Target) -> Result<Operation, Failure> {
        let kind = target.kind;
        let all = target.name.is_empty();
        if !target.subresource.is_empty() {
            return Operation::of_subresource(method, target);
        }
        let (operation, verb) = match method.as_str() {
            "GET" if all || target.watch => (Operation::List, Verb::List),
            "GET" => (Operation::Get, Verb::Get),
            "POST" if all && kind.store_prefix.is_empty() => (Operation::Review, Verb::Create),
            // A namespaced object is only made through its namespace.
            "POST" if all && (!kind.namespaced || !target.namespace.is_empty()) => (Operation::Create, Verb::Create),
            "PUT" if !all => (Operation::Update, Verb::Update),
            "PATCH" if !all => (Operation::Patch, Verb::Patch),
            // One request cannot empty all namespaces: kube-apiserver installs this route below
            // `namespaces/NAME` only.
            "DELETE" if all && (!kind.namespaced || !target.namespace.is_empty()) => {
                (Operation::DeleteCollection, Verb::DeleteCollection)
            }
            "DELETE" if all => return Err(not_allowed()),
            "DELETE" => (Operation::Delete, Verb::Delete),
            _ => return Err(not_allowed()),
        };
        if kind.offers(verb) { Ok(operation) } else { Err(not_allowed()) }
    }

    fn of_subresource(method: &Method, target: &Target) -> Result<Operation, Failure> {
        use kinds::Subresource as Sub;
        let has = |sub: Sub| target.kind.subresources.contains(&sub);
        match (target.subresource.as_str(), method.as_str()) {
            ("proxy", _) if has(Sub::Proxy) => Ok(Operation::Proxy),
            ("status", "GET") if has(Sub::Status) => Ok(Operation::Get),
            ("status", "PUT") if has(Sub::Status) => Ok(Operation::Update),
            ("status", "PATCH") if has(Sub::Status) => Ok(Operation::Patch),
            ("scale", "GET") if has(Sub::Scale) => Ok(Operation::Get),
            ("scale", "PUT") if has(Sub::Scale) => Ok(Operation::Update),
            ("scale", "PATCH") if has(Sub::Scale) => Ok(Operation::Patch),
            ("finalize", "PUT") if has(Sub::Finalize) => Ok(Operation::Update),
            ("binding", "POST") if has(Sub::Binding) => Ok(Operation::Bind),
            ("eviction", "POST") if has(Sub::Eviction) => Ok(Operation::Evict),
            ("token", "POST") if has(Sub::Token) => Ok(Operation::Review),
            ("log", "GET") if has(Sub::Log) => Ok(Operation::Log),
            ("exec", "GET" | "POST") if has(Sub::Exec) => Ok(Operation::Stream),
            ("attach", "GET" | "POST") if has(Sub::Attach) => Ok(Operation::Stream),
            ("portforward", "GET" | "POST") if has(Sub::PortForward) => Ok(Operation::Stream),
            ("status", _) if has(Sub::Status) => Err(not_allowed()),
            ("scale", _) if has(Sub::Scale) => Err(not_allowed()),
            ("finalize", _) if has(Sub::Finalize) => Err(not_allowed()),
            ("binding", _) if has(Sub::Binding) => Err(not_allowed()),
            ("eviction", _) if has(Sub::Eviction) => Err(not_allowed()),
            ("token", _) if has(Sub::Token) => Err(not_allowed()),
            ("log" | "exec" | "attach" | "portforward", _) if has(Sub::Exec) => Err(not_allowed()),
            _ => Err(unknown_resource()),
        }
    }

    fn asked(self) -> Asked {
        match self {
            Operation::List | Operation::DeleteCollection => Asked::List,
            Operation::Review | Operation::Bind | Operation::Evict => Asked::Review,
            _ => Asked::Object,
        }
    }
}

/// Maximum size of bodies that are no objects: a request for a certificate has about 1 KiB.
const SMALL_BODY: usize = large_requests::LARGE;

/// How much of an unwanted body is read, and for how long.
const DISCARDED: usize = 8 * body::MAX_BODY;
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// Reads what nobody wanted of a body: a connection that is closed while its client still sends is reset, and the client never
/// learns why it was refused.
async fn discard<B: http_body::Body<Data = Bytes>>(mut body: std::pin::Pin<&mut B>) {
    if body.is_end_stream() {
        return;
    }
    let rest = async {
        let mut left = DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME, rest).await;
}

/// 404 for a resource we do not know.
pub(crate) fn unknown_resource() -> Failure {
    Failure {
        details: Some(fairlead_api::json!({})),
        ..Failure::new(404, "NotFound", "the server could not find the requested resource")
    }
}

/// 504 for a request that took too long; whether it was carried out is not known.
fn timed_out() -> Failure {
    let message = "Timeout: request did not complete within the allotted timeout";
    Failure { details: Some(fairlead_api::json!({})), ..Failure::new(504, "Timeout", message) }
}

/// 405.
pub(crate) fn not_allowed() -> Failure {
    Failure {
        details: Some(fairlead_api::json!({})),
        ..Failure::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }
}

/// Together no longer than the reference server lets them be.
const MAX_WARNINGS: usize = 4096;

fn add_warnings(response: &mut Response<Body>, warnings: &[String]) {
    let mut left = MAX_WARNINGS;
    let mut sent: Vec<&String> = Vec::new();
    for warning in warnings {
        if sent.contains(&warning) || warning.len() > left {
            continue;
        }
        left -= warning.len();
        sent.push(warning);
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(HeaderName::from_static("warning"), value);
        }
    }
}

/// Names the methods that a resource offers. RFC 9110, 15.5.6 requires the field in answers with
/// status 405.
fn add_allowed_methods(response: &mut Response<Body>, target: &Target) {
    let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let offered = methods.iter().filter(|method| Operation::of(method, target).is_ok()).map(Method::as_str);
    if let Ok(value) = HeaderValue::from_str(&offered.collect::<Vec<_>>().join(", ")) {
        response.headers_mut().insert(ALLOW, value);
    }
}

/// The form of an answer for documents that are only ever JSON.
pub(crate) fn plain_form(parts: &Parts, query: &Query) -> Form {
    negotiate::fallback(&parts.headers, query.get("pretty"))
}
