//! Who sends a request: a client certificate, a bearer token, or nobody in particular. What they may do is [`rbac`]'s question.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Kind};
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, header};
use jiff::Timestamp;
use thiserror::Error;

use crate::serve::Connection;

pub mod bootstrap_token;
pub mod certificate;
pub mod impersonation;
pub mod jws;
pub mod keys;
pub mod nodes;
pub mod rbac;
pub mod service_account;
#[cfg(test)]
mod tests;
pub mod token_file;
pub(crate) mod web_socket;

/// Everybody who said who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The user of requests that do not say who sends them.
pub const ANONYMOUS: &str = "system:anonymous";
/// What the user name of a ServiceAccount begins with; namespace, colon and name follow.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Who sends a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name that roles and messages use.
    pub name: String,
    /// Empty if unknown.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else is known, as which credential was used.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Nobody in particular.
    pub fn anonymous() -> User {
        User { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..User::default() }
    }

    /// Whether every request of theirs is allowed.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == rbac::MASTERS)
    }

    /// The user as `UserInfo` of reviews and audit events.
    pub fn info(&self) -> Value {
        let mut info = json!({"username": self.name});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.groups.is_empty() {
            info["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    /// The same user, in the group of those who said who they are.
    fn authenticated(mut self) -> User {
        if !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// Where requests that do not say who sends them are heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Anonymous {
    /// Nowhere (`--anonymous-auth=false`).
    Nowhere,
    /// At the paths that tell whether the server is well, and its version.
    #[default]
    Health,
    /// Everywhere (`--anonymous-auth=true`); roles then decide.
    Everywhere,
}

const HEALTH_PATHS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];

impl Anonymous {
    fn hears(self, path: &str) -> bool {
        match self {
            Anonymous::Nowhere => false,
            Anonymous::Health => HEALTH_PATHS.contains(&path),
            Anonymous::Everywhere => true,
        }
    }
}

/// Looks up stored objects: a token holds only as long as the objects it was made for.
pub trait Objects: Send + Sync {
    /// The object as it is now.
    fn find<'a>(
        &'a self,
        kind: &'static Kind,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Failure>>;
}

/// Why credentials are not accepted. Logs and token reviews say it; the sender only learns `Unauthorized`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Rejection {
    /// No known token.
    #[error("invalid bearer token")]
    Unknown,
    /// The Authorization header holds no bearer token.
    #[error("the Authorization header is not of the form \"Bearer TOKEN\"")]
    Scheme,
    /// Made for somebody else.
    #[error("token audiences {0} is invalid for the target audiences {1}")]
    Audience(String, String),
    /// Too old.
    #[error("service account token has expired")]
    Expired,
    /// Too new.
    #[error("service account token is not valid yet")]
    NotYet,
    /// The object it was made for is gone.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// The ServiceAccount is gone.
    #[error("serviceaccounts \"{0}\" not found")]
    NoAccount(String),
    /// The object of that name is another one now.
    #[error("{0} UID ({1}) does not match claim ({2})")]
    OtherUid(&'static str, String, String),
    /// The client certificate does not hold.
    #[error("verifying certificate failed: {0}")]
    Certificate(String),
    /// Nobody could be asked.
    #[error("{0}")]
    Store(String),
}

/// Tells who sends a request.
#[derive(Debug, Default)]
pub struct Authenticator {
    /// Whose client certificates are accepted; `None`: nobody's.
    pub certificates: Option<certificate::Authorities>,
    /// Tokens of `--token-auth-file`.
    pub tokens: token_file::TokenFile,
    /// Tokens of ServiceAccounts.
    pub accounts: Option<service_account::Tokens>,
    /// Where nobody in particular is heard.
    pub anonymous: Anonymous,
}

/// The longest token that is looked at.
const TOKEN_LIMIT: usize = 16 << 10;

impl Authenticator {
    /// Who sends a request, or the 401 it gets. A [`Connection`] among the request's extensions brings the client certificate.
    pub async fn authenticate(&self, request: &Parts, objects: &dyn Objects, now: Timestamp) -> Result<User, Failure> {
        match self.credentials(request, objects, now).await {
            Ok(Some(user)) => Ok(user.authenticated()),
            Ok(None) if self.anonymous.hears(request.uri.path()) => Ok(User::anonymous()),
            Ok(None) => Err(unauthorized()),
            Err(rejection) => {
                tracing::debug!(%rejection, path = request.uri.path(), "unable to authenticate the request");
                Err(unauthorized())
            }
        }
    }

    /// A certificate that holds goes before a token; a bad one does not keep a good token from being accepted.
    async fn credentials(
        &self,
        request: &Parts,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<Option<User>, Rejection> {
        let connection = request.extensions.get::<Connection>();
        let certificate = match (&self.certificates, connection) {
            (Some(authorities), Some(connection)) => authorities.identify(connection, now),
            _ => Ok(None),
        };
        if let Ok(Some(user)) = certificate {
            return Ok(Some(user));
        }
        let token = match bearer(&request.headers)? {
            Some(token) => Some(Cow::Borrowed(token)),
            None => web_socket::token(&request.headers)?.map(Cow::Owned),
        };
        match token {
            Some(token) => self.token(&token, None, objects, now).await.map(|(user, _)| Some(user)),
            None => certificate,
        }
    }

    /// Whose token it is, and for which of the wanted audiences (`None`: ours) it was made.
    pub async fn token(
        &self,
        token: &str,
        audiences: Option<&[String]>,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<(User, Vec<String>), Rejection> {
        if token.len() > TOKEN_LIMIT {
            return Err(Rejection::Unknown);
        }
        if let Some(user) = self.tokens.user(token) {
            let ours = self.accounts.as_ref().map(|a| a.audiences.clone()).unwrap_or_default();
            return Ok((user.clone(), ours));
        }
        if let Some(found) = bootstrap_token::identify(token, objects, now).await {
            let ours = self.accounts.as_ref().map(|a| a.audiences.clone()).unwrap_or_default();
            return found.map(|user| (user, ours));
        }
        let accounts = self.accounts.as_ref().ok_or(Rejection::Unknown)?;
        accounts.identify(token, audiences, objects, now).await
    }

    /// The `status` of a TokenReview.
    pub async fn review(&self, spec: &Value, objects: &dyn Objects, now: Timestamp) -> Result<Value, Failure> {
        use fairlead_api::Look;
        let token = spec.text("token");
        if token.is_empty() {
            return Err(Failure::bad_request("token is required for TokenReview in authentication"));
        }
        let wanted: Vec<String> = spec.texts("audiences").into_iter().map(str::to_owned).collect();
        let wanted = (!wanted.is_empty()).then_some(wanted.as_slice());
        Ok(match self.token(token, wanted, objects, now).await {
            Ok((user, audiences)) => {
                json!({"authenticated": true, "user": user.authenticated().info(), "audiences": audiences})
            }
            Err(rejection) => json!({"user": {}, "error": rejection.to_string()}),
        })
    }
}

/// The 401 of a request whose sender is not known.
pub fn unauthorized() -> Failure {
    Failure::new(401, "Unauthorized", "Unauthorized")
}

/// Returns the bearer token, or `None` if there is no Authorization header or an empty one. Any
/// other scheme, an empty token and a second header are refused: a client that shows credentials is
/// not to be answered as if it had shown none.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Rejection> {
    let mut values = headers.get_all(header::AUTHORIZATION).into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Rejection::Scheme);
    }
    let text = value.to_str().map_err(|_| Rejection::Scheme)?.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let mut words = text.splitn(3, ' ');
    match (words.next(), words.next()) {
        (Some(scheme), Some(token)) if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() => Ok(Some(token)),
        _ => Err(Rejection::Scheme),
    }
}
