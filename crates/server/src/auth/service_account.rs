//! Tokens of ServiceAccounts: what they claim, whether the claims still hold, and the `token` subresource that issues them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Look, golang, kinds};
use jiff::Timestamp;
use ring::digest;

use super::keys::{SigningKey, VerifyingKey};
use super::{Objects, Rejection, SERVICE_ACCOUNT_PREFIX, User, jws};

mod request;
#[cfg(test)]
mod tests;

/// The group of all ServiceAccounts.
pub const ALL_ACCOUNTS: &str = "system:serviceaccounts";
/// Clocks may differ by so many seconds, as Kubernetes has it.
const LEEWAY: i64 = 60;
/// So many tokens are remembered to be well signed; when there are more, all are forgotten.
const REMEMBERED: usize = 4096;
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// Issues and checks tokens.
#[derive(Debug)]
pub struct Tokens {
    /// Who issues: `iss` of the tokens we make.
    pub issuer: String,
    /// What a token must be for to be accepted here.
    pub audiences: Vec<String>,
    /// Issuers whose tokens are accepted; ours among them.
    accepted: Vec<String>,
    /// URL of the public keys, if it is not below the issuer.
    jwks_uri: Option<String>,
    signing: SigningKey,
    keys: Vec<VerifyingKey>,
    checked: Mutex<HashMap<[u8; 32], Arc<Value>>>,
}

/// Whom a token is made for.
#[derive(Debug, Clone, Default)]
pub struct Claim<'a> {
    /// The ServiceAccount's namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// Who may accept the token.
    pub audiences: &'a [String],
    /// How long it lasts.
    pub seconds: i64,
    /// The Pod, Secret or Node it ends with: kind in lower case, name, uid.
    pub bound: Option<(&'a str, &'a str, &'a str)>,
    /// The node of a bound Pod: name and uid.
    pub node: Option<(&'a str, &'a str)>,
}

impl Tokens {
    /// Signs with one key and accepts what this one and others signed. The first issuer is ours; its name is also the audience.
    pub fn new(issuers: Vec<String>, signing: SigningKey, others: Vec<VerifyingKey>) -> Tokens {
        let mut keys = vec![signing.public.clone()];
        keys.extend(others.into_iter().filter(|key| key.id != signing.public.id));
        let issuer = issuers.first().cloned().unwrap_or_default();
        Tokens {
            audiences: vec![issuer.clone()],
            issuer,
            accepted: issuers,
            jwks_uri: None,
            signing,
            keys,
            checked: Mutex::default(),
        }
    }

    /// Tells clients of the discovery document to look for the public keys at this URL.
    pub fn with_jwks_uri(self, uri: Option<String>) -> Tokens {
        Tokens { jwks_uri: uri, ..self }
    }

    /// Returns the URL of the public keys.
    pub(crate) fn jwks_uri(&self) -> String {
        let below = || format!("{}/openid/v1/jwks", self.issuer.trim_end_matches('/'));
        self.jwks_uri.clone().unwrap_or_else(below)
    }

    /// Returns the names of the algorithms of all keys, sorted.
    pub(crate) fn algorithms(&self) -> Vec<&'static str> {
        let names: BTreeSet<_> = self.keys.iter().map(|key| key.algorithm.name()).collect();
        names.into_iter().collect()
    }

    /// A new token. `id` makes it one of a kind.
    pub fn issue(&self, claim: &Claim<'_>, now: Timestamp, id: &str) -> Result<String, Failure> {
        let (now, named) = (now.as_second(), |(name, uid): (&str, &str)| json!({"name": name, "uid": uid}));
        let mut about = json!({"namespace": claim.namespace});
        if let Some(node) = claim.node {
            about["node"] = named(node);
        }
        if let Some((kind, name, uid)) = claim.bound {
            about.set(kind.to_owned(), named((name, uid)));
        }
        about["serviceaccount"] = named((claim.name, claim.uid));
        let claims = json!({
            "aud": claim.audiences, "exp": now.saturating_add(claim.seconds), "iat": now, "iss": self.issuer, "jti": id,
            "kubernetes.io": about, "nbf": now, "sub": user_name(claim.namespace, claim.name),
        });
        jws::sign(&self.signing, &claims)
            .map_err(|error| Failure::internal(format!("failed to generate token: {error}")))
    }

    /// Whose token it is, and for which of the wanted audiences (`None`: ours).
    pub async fn identify(
        &self,
        token: &str,
        audiences: Option<&[String]>,
        objects: &dyn Objects,
        now: Timestamp,
    ) -> Result<(User, Vec<String>), Rejection> {
        let claims = self.claims(token).ok_or(Rejection::Unknown)?;
        let audiences = check_audience(&claims, audiences.unwrap_or(&self.audiences))?;
        check_time(&claims, now)?;
        check_objects(&claims, objects, now).await?;
        Ok((user(&claims), audiences))
    }

    /// The public keys, as `/openid/v1/jwks` shows them.
    pub fn jwks(&self) -> Value {
        json!({"keys": self.keys.iter().map(VerifyingKey::jwk).collect::<Vec<_>>()})
    }

    /// The claims of a token that one of our keys signed for one of our issuers.
    fn claims(&self, token: &str) -> Option<Arc<Value>> {
        let name = digest::digest(&digest::SHA256, token.as_bytes());
        let name: [u8; 32] = name.as_ref().try_into().expect("SHA-256 has 32 bytes");
        let checked = || self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = checked().get(&name) {
            return Some(claims.clone());
        }
        let claims = Arc::new(jws::verify(&self.keys, token)?);
        if !self.accepted.iter().any(|issuer| issuer == claims.text("iss")) {
            return None;
        }
        let mut checked = checked();
        if checked.len() >= REMEMBERED {
            checked.clear();
        }
        checked.insert(name, claims.clone());
        Some(claims)
    }
}

/// The user name of a ServiceAccount.
pub fn user_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The groups of a ServiceAccount.
pub fn groups(namespace: &str) -> Vec<String> {
    vec![ALL_ACCOUNTS.to_owned(), format!("{ALL_ACCOUNTS}:{namespace}")]
}

fn check_audience(claims: &Value, wanted: &[String]) -> Result<Vec<String>, Rejection> {
    let found: Vec<String> = match claims.at("aud") {
        Value::String(one) => vec![one.clone()],
        _ => claims.texts("aud").into_iter().map(str::to_owned).collect(),
    };
    let common: Vec<String> = found.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
    if common.is_empty() {
        let quoted = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| golang::quote(text)).collect();
            format!("[{}]", texts.join(" "))
        };
        return Err(Rejection::Audience(quoted(&found), quoted(wanted)));
    }
    Ok(common)
}

fn check_time(claims: &Value, now: Timestamp) -> Result<(), Rejection> {
    let now = now.as_second();
    // A token without an end would hold for ever: we never issue one.
    if claims.int_opt("exp").is_none_or(|end| now.saturating_sub(LEEWAY) > end) {
        return Err(Rejection::Expired);
    }
    let begins = claims.int("nbf").max(claims.int("iat"));
    if now.saturating_add(LEEWAY) < begins { Err(Rejection::NotYet) } else { Ok(()) }
}

/// Whether the ServiceAccount and the object the token is bound to are still there.
async fn check_objects(claims: &Value, objects: &dyn Objects, now: Timestamp) -> Result<(), Rejection> {
    let about = claims.at("kubernetes.io");
    let namespace = about.text("namespace");
    let account = about.at("serviceaccount");
    let found = find(objects, &kinds::SERVICE_ACCOUNT, namespace, account.text("name")).await?;
    let found = found.ok_or_else(|| Rejection::NoAccount(account.text("name").to_owned()))?;
    same_uid("service account", &found, account)?;
    let pod = about.get("pod");
    let bound = [
        ("pod", "pod", &kinds::POD, namespace),
        ("secret", "secret", &kinds::SECRET, namespace),
        // A Pod's token names the node for information only.
        (if pod.is_some() { "" } else { "node" }, "node", &kinds::NODE, ""),
    ];
    for (claim, what, kind, namespace) in bound {
        let Some(claim) = about.get(claim) else { continue };
        let found = find(objects, kind, namespace, claim.text("name")).await?.ok_or(Rejection::Invalidated)?;
        if deleted_long_ago(&found, now) {
            return Err(Rejection::Invalidated);
        }
        same_uid(what, &found, claim)?;
    }
    Ok(())
}

async fn find(
    objects: &dyn Objects,
    kind: &'static kinds::Kind,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, Rejection> {
    objects.find(kind, namespace, name).await.map_err(|failure| Rejection::Store(failure.message))
}

fn same_uid(what: &'static str, found: &Value, claim: &Value) -> Result<(), Rejection> {
    let (is, was) = (found.at("metadata").text("uid"), claim.text("uid"));
    if is == was { Ok(()) } else { Err(Rejection::OtherUid(what, is.to_owned(), was.to_owned())) }
}

fn deleted_long_ago(object: &Value, now: Timestamp) -> bool {
    let at = object.at("metadata").text_opt("deletionTimestamp").and_then(|text| text.parse::<Timestamp>().ok());
    at.is_some_and(|at| at.as_second() < now.as_second() - LEEWAY)
}

fn user(claims: &Value) -> User {
    let about = claims.at("kubernetes.io");
    let (namespace, account) = (about.text("namespace"), about.at("serviceaccount"));
    let mut user = User {
        name: user_name(namespace, account.text("name")),
        uid: account.text("uid").to_owned(),
        groups: groups(namespace),
        ..User::default()
    };
    let mut note = |key: &str, value: &str| {
        if !value.is_empty() {
            user.extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if let Some(id) = claims.text_opt("jti") {
        note("authentication.kubernetes.io/credential-id", &format!("JTI={id}"));
    }
    note(NODE_NAME, about.at("node").text("name"));
    note(NODE_UID, about.at("node").text("uid"));
    note("authentication.kubernetes.io/pod-name", about.at("pod").text("name"));
    note("authentication.kubernetes.io/pod-uid", about.at("pod").text("uid"));
    user
}
