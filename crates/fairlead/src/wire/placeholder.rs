//! Stands in for the API until the server and the stores are wired in: knows who asks and what they may do, and how it is
//! itself, and nothing more.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fairlead_api::{Failure, Kind, Settings};
use fairlead_server::audit::Audit;
use fairlead_server::auth::rbac::{self, Attributes, Decision, Policy, Target, builtin};
use fairlead_server::auth::{Authenticator, Objects, impersonation};
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use jiff::Timestamp;
use serde_json::Value;
use tower::Service;

use crate::config::{Authorization, Config};

/// Opens the store.
pub(super) fn store(_config: &Config) -> anyhow::Result<()> {
    anyhow::bail!("no store is wired in yet")
}

#[derive(Clone)]
pub(super) struct Server(Arc<Shared>);

struct Shared {
    authenticator: Authenticator,
    authorization: Authorization,
    policy: Policy,
    _audit: Option<Audit>,
}

impl Server {
    pub(super) fn new(
        config: &Config,
        _settings: Settings,
        authenticator: Authenticator,
        audit: Option<Audit>,
    ) -> Server {
        let objects = builtin::objects();
        let policy = Policy::build(objects.iter().map(|(kind, object)| (*kind, object)));
        Server(Arc::new(Shared { authenticator, authorization: config.authorization, policy, _audit: audit }))
    }
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Result<&'static str, Failure> {
        let (parts, _body) = request.into_parts();
        let user = self.authenticator.authenticate(&parts, &Nothing, Timestamp::now()).await?;
        let authorize = |user: &_, attributes: &Attributes<'_>| match self.authorization {
            Authorization::AlwaysAllow => Decision::Allow { reason: String::new() },
            Authorization::Rbac => self.policy.authorize(user, attributes),
        };
        let user = impersonation::impersonate(&parts.headers, &user, authorize)?.unwrap_or(user);
        let verb = parts.method.as_str().to_lowercase();
        let attributes = Attributes { verb: &verb, target: Target::Path(parts.uri.path()) };
        if let Decision::Deny { reason } = authorize(&user, &attributes) {
            return Err(rbac::forbidden(&user, &attributes, &reason));
        }
        match parts.uri.path() {
            "/healthz" | "/livez" | "/readyz" => Ok("ok"),
            _ => Err(Failure::new(404, "NotFound", "the server could not find the requested resource")),
        }
    }
}

impl Service<Request<Incoming>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let shared = self.0.clone();
        Box::pin(async move {
            Ok(match shared.answer(request).await {
                Ok(text) => Response::new(Full::new(Bytes::from_static(text.as_bytes()))),
                Err(failure) => {
                    let mut answer = Response::new(Full::new(Bytes::from(failure.status().to_string())));
                    *answer.status_mut() =
                        StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    let json = http::HeaderValue::from_static("application/json");
                    answer.headers_mut().insert(header::CONTENT_TYPE, json);
                    answer
                }
            })
        })
    }
}

/// No objects are stored.
struct Nothing;

impl Objects for Nothing {
    fn find<'a>(
        &'a self,
        _kind: &'static Kind,
        _namespace: &'a str,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Failure>> {
        Box::pin(async { Ok(None) })
    }
}
