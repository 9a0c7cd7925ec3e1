//! Who sends a request and whether they may: joins authentication, impersonation and roles, and follows the roles in the store.

use std::sync::{Arc, RwLock, Weak};
use std::time::Duration;

use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, kinds};
use fairlead_store::{Backend, Entry, Event, Range, Revision};
use futures_util::future::BoxFuture;
use http::request::Parts;
use jiff::Timestamp;

use crate::auth::nodes::{self, Right};
use crate::auth::rbac::{self, Attributes, Decision, Policy, Target as About};
use crate::auth::{Authenticator, Objects, User, impersonation};
use crate::options::Query;
use crate::pages::cookie;
use crate::pages::sessions::{Session, Sessions};
use crate::read::unavailable;
use crate::route::{Route, Target};
use crate::{local, object};

/// How long a broken watch of roles waits before it begins again.
const RETRY: Duration = Duration::from_millis(200);

/// The kinds that say who may do what.
const ROLE_KINDS: [&Kind; 4] = [&kinds::ROLE, &kinds::ROLE_BINDING, &kinds::CLUSTER_ROLE, &kinds::CLUSTER_ROLE_BINDING];

/// Who decides what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authorization {
    /// Nobody: everything is allowed to everybody who is known.
    AlwaysAllow,
    /// Roles and bindings.
    #[default]
    Rbac,
}

/// Knows senders and their rights.
pub(crate) struct Access {
    pub(crate) authenticator: Authenticator,
    authorization: Authorization,
    /// Who is signed in with a browser.
    pub(crate) sessions: Sessions,
    policy: RwLock<Policy>,
    store: Arc<dyn Backend>,
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    /// Whose credentials came with it.
    pub(crate) real: User,
    /// Whom they act as, if somebody else.
    pub(crate) impersonated: Option<User>,
    /// It is a browser's session.
    pub(crate) by_cookie: bool,
}

impl Sender {
    /// Whose rights count.
    pub(crate) fn user(&self) -> &User {
        self.impersonated.as_ref().unwrap_or(&self.real)
    }
}

impl Access {
    pub(crate) fn new(authenticator: Authenticator, authorization: Authorization, store: Arc<dyn Backend>) -> Access {
        Access { authenticator, authorization, sessions: Sessions::default(), policy: RwLock::default(), store }
    }

    /// Reads the roles, and follows them for as long as the server is there.
    pub(crate) async fn follow(self: &Arc<Access>) -> Result<(), Failure> {
        if self.authorization == Authorization::AlwaysAllow {
            return Ok(());
        }
        for kind in ROLE_KINDS {
            let revision = self.load(kind).await?;
            tokio::spawn(keep(Arc::downgrade(self), kind, revision));
        }
        Ok(())
    }

    /// Who sends a request, and whether they may act as whom they say.
    pub(crate) async fn sender(&self, parts: &Parts) -> Result<Sender, Failure> {
        let session = self.session(parts)?;
        let by_cookie = session.is_some();
        let real = match (parts.extensions.get::<local::Trusted>(), session) {
            (Some(local::Trusted(user)), _) => User::clone(user),
            (None, Some(session)) => session.user(),
            (None, None) => {
                let known = self.authenticator.authenticate(parts, self, Timestamp::now()).await;
                known.map_err(|failure| cookie::explained(failure, &parts.headers))?
            }
        };
        let authorize = |user: &User, attributes: &Attributes<'_>| self.decide(user, attributes);
        let impersonated = impersonation::impersonate(&parts.headers, &real, authorize)?;
        Ok(Sender { real, impersonated, by_cookie })
    }

    /// The session a browser's cookie names, if what it wants is to be heard. A cookie that names none counts for nothing, and so
    /// does one that comes without its proof.
    fn session(&self, parts: &Parts) -> Result<Option<Session>, Failure> {
        let named = cookie::find(&parts.headers).and_then(|id| self.sessions.find(id, Timestamp::now()));
        if named.is_some() && cookie::is_foreign(parts) {
            return Err(cookie::foreign());
        }
        let session = named.filter(|session| cookie::is_proved(&parts.headers, session));
        if let Some(session) = &session {
            cookie::check(parts, session)?;
        }
        Ok(session)
    }

    /// Returns the mode of authorization.
    pub(crate) fn authorization(&self) -> Authorization {
        self.authorization
    }

    /// 403 unless the user may.
    pub(crate) fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Failure> {
        match self.decide(user, attributes) {
            Decision::Allow { .. } => Ok(()),
            Decision::Deny { reason } => Err(rbac::forbidden(user, attributes, &reason)),
        }
    }

    /// The same for a request that has come: what a Node may do depends on its Pods, too.
    pub(crate) async fn authorize_request(&self, user: &User, attributes: &Attributes<'_>) -> Result<(), Failure> {
        let refused = match self.authorize(user, attributes) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        match nodes::node_of(user) {
            Some(node) if self.concerns_pods_of(node, attributes).await? => Ok(()),
            _ => Err(refused),
        }
    }

    pub(crate) fn decide(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if self.authorization == Authorization::AlwaysAllow {
            return Decision::Allow { reason: String::new() };
        }
        match (self.with_policy(|policy| policy.authorize(user, attributes)), nodes::node_of(user)) {
            (Decision::Deny { .. }, Some(node)) if nodes::right(node, attributes) == Right::Yes => {
                Decision::Allow { reason: String::new() }
            }
            (decision, _) => decision,
        }
    }

    /// Whether something that only Pods of a Node make its business is its business.
    async fn concerns_pods_of(&self, node: &str, attributes: &Attributes<'_>) -> Result<bool, Failure> {
        let About::Resource { resource, namespace, name, .. } = attributes.target else { return Ok(false) };
        let right = nodes::right(node, attributes);
        if namespace.is_empty() || name.is_empty() {
            return Ok(false);
        }
        match right {
            Right::Yes => Ok(true),
            Right::No => Ok(false),
            Right::OwnPod => {
                let pod = self.find(&kinds::POD, namespace, name).await?;
                // Whoever may write it learns from the write itself that it is not there.
                Ok(pod.is_none_or(|pod| pod.at("spec").text("nodeName") == node))
            }
            Right::NamedByPod => {
                let range = Range { prefix: object::prefix(&kinds::POD, namespace).into(), ..Range::default() };
                let page = self.store.range(range).await.map_err(unavailable)?;
                let own = page.entries.iter().filter(|entry| is_on(entry, node));
                let by_pod = own
                    .filter_map(|entry| object::load(&kinds::POD, entry).ok())
                    .any(|pod| nodes::names(&pod, resource, name));
                Ok(by_pod || (resource == "secrets" && self.is_certificate(namespace, name).await?))
            }
        }
    }

    /// Whether a load balancer shows a Secret's certificate: any Node may have to.
    async fn is_certificate(&self, namespace: &str, secret: &str) -> Result<bool, Failure> {
        let range = Range { prefix: object::prefix(&kinds::SERVICE, namespace).into(), ..Range::default() };
        let page = self.store.range(range).await.map_err(unavailable)?;
        let balanced = page.entries.iter().filter(|entry| is_balanced(entry));
        Ok(balanced
            .filter_map(|entry| object::load(&kinds::SERVICE, entry).ok())
            .any(|service| nodes::shows(&service, secret)))
    }

    /// 403 for a role or binding that gives more than its writer has.
    pub(crate) fn check_escalation(
        &self,
        user: &User,
        target: &Target,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Failure> {
        if self.authorization == Authorization::AlwaysAllow || target.kind.group != rbac::GROUP {
            return Ok(());
        }
        self.with_policy(|policy| {
            let write = rbac::escalation::Write { kind: target.kind, namespace: &target.namespace, object, old };
            rbac::escalation::check(policy, user, &write)
        })
    }

    /// The status of a SelfSubjectRulesReview.
    pub(crate) fn rules_review(&self, user: &User, namespace: &str) -> Value {
        if self.authorization == Authorization::AlwaysAllow {
            return fairlead_api::json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            });
        }
        self.with_policy(|policy| policy.rules_review(user, namespace))
    }

    fn with_policy<T>(&self, look: impl FnOnce(&Policy) -> T) -> T {
        look(&self.policy.read().expect("no panic while it is held"))
    }

    async fn load(&self, kind: &'static Kind) -> Result<Revision, Failure> {
        let range = Range { prefix: object::prefix(kind, "").into(), ..Range::default() };
        let page = self.store.range(range).await.map_err(unavailable)?;
        let mut policy = self.policy.write().expect("no panic while it is held");
        for entry in &page.entries {
            policy.apply(kind, &object::load(kind, entry)?);
        }
        Ok(page.revision)
    }

    fn note(&self, kind: &'static Kind, event: &Event) {
        let Ok(object) = object::load(kind, &event.entry) else { return };
        let mut policy = self.policy.write().expect("no panic while it is held");
        if event.deleted {
            let metadata = object.at("metadata");
            policy.remove(kind, metadata.text("namespace"), metadata.text("name"));
        } else {
            policy.apply(kind, &object);
        }
    }
}

/// Whether a Pod is bound to a Node.
fn is_on(entry: &Arc<Entry>, node: &str) -> bool {
    object::with_index(&kinds::POD, entry, |index| {
        index.fields.iter().any(|(field, value)| *field == "spec.nodeName" && **value == *node)
    })
}

/// Whether a Service is of type LoadBalancer.
pub(crate) fn is_balanced(entry: &Arc<Entry>) -> bool {
    object::with_index(&kinds::SERVICE, entry, |index| {
        index.fields.iter().any(|(field, value)| *field == "spec.type" && **value == *"LoadBalancer")
    })
}

/// Follows the objects of one kind of role until the server is gone.
async fn keep(access: Weak<Access>, kind: &'static Kind, mut from: Revision) {
    let prefix = object::prefix(kind, "");
    loop {
        let Some(strong) = access.upgrade() else { return };
        let store = strong.store.clone();
        drop(strong);
        if let Ok(mut watch) = store.watch(&prefix, from).await {
            while let Ok(events) = watch.next().await {
                let Some(access) = access.upgrade() else { return };
                for event in &events {
                    access.note(kind, event);
                    from = event.revision;
                }
            }
        }
        let Some(strong) = access.upgrade() else { return };
        from = strong.load(kind).await.unwrap_or(from);
        drop(strong);
        tokio::time::sleep(RETRY).await;
    }
}

impl Objects for Access {
    fn find<'a>(
        &'a self,
        kind: &'static Kind,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Failure>> {
        Box::pin(async move {
            let entry = self.store.get(&object::key(kind, namespace, name)).await.map_err(unavailable)?;
            entry.map(|entry| object::load(kind, &entry)).transpose()
        })
    }
}

/// What a request wants to do, in the words of roles.
pub(crate) struct Wish<'a> {
    verb: String,
    path: &'a str,
    target: Option<&'a Target>,
}

impl<'a> Wish<'a> {
    pub(crate) fn of(parts: &'a Parts, route: &'a Route, query: &Query) -> Wish<'a> {
        let method = parts.method.as_str();
        let path = parts.uri.path();
        let Route::Resource(target) = route else {
            return Wish { verb: method.to_lowercase(), path, target: None };
        };
        let (all, watch) = (target.name.is_empty(), target.watch || query.flag("watch").unwrap_or_default());
        let verb = match method {
            "GET" | "HEAD" if target.watch || (all && watch) => "watch",
            "GET" | "HEAD" if all => "list",
            "GET" | "HEAD" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if all => "deletecollection",
            "DELETE" => "delete",
            other => return Wish { verb: other.to_lowercase(), path, target: Some(target) },
        };
        Wish { verb: verb.to_owned(), path, target: Some(target) }
    }

    pub(crate) fn verb(&self) -> &str {
        &self.verb
    }

    pub(crate) fn attributes(&self) -> Attributes<'_> {
        let about = match self.target {
            None => About::Path(self.path),
            Some(target) => About::Resource {
                group: target.kind.group,
                resource: target.kind.resource,
                subresource: &target.subresource,
                // A Namespace is asked about in itself.
                namespace: if target.kind.resource == "namespaces" { &target.name } else { &target.namespace },
                name: &target.name,
            },
        };
        Attributes { verb: &self.verb, target: about }
    }
}
