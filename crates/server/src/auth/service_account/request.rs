//! The `token` subresource of a ServiceAccount: a TokenRequest in, the same with a token out.

use fairlead_api::field::FieldErrors;
use fairlead_api::status::Subject;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, FieldError, Look, Path, kinds};
use jiff::{SignedDuration, Timestamp};

use super::{Claim, Tokens};
use crate::auth::Objects;

const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const DEFAULT: i64 = 3600;

/// The object a token ends with.
struct Bound {
    kind: &'static str,
    name: String,
    uid: String,
    node: Option<(String, String)>,
}

impl Tokens {
    /// Answers a TokenRequest for the ServiceAccount of the URL. `id` makes the token one of a kind.
    pub async fn answer(
        &self,
        objects: &dyn Objects,
        (namespace, name): (&str, &str),
        request: &Value,
        now: Timestamp,
        id: &str,
    ) -> Result<Value, Failure> {
        check_names(namespace, name, request)?;
        let account = objects.find(&kinds::SERVICE_ACCOUNT, namespace, name).await?;
        let account =
            account.ok_or_else(|| Failure::not_found(Subject { group: "", kind: "serviceaccounts", name }))?;
        let uid = account.at("metadata").text("uid");
        check_uid(request, name, uid)?;
        let spec = request.at("spec");
        let seconds = spec.int_opt("expirationSeconds").unwrap_or(DEFAULT);
        check_seconds(seconds)?;
        let audiences: Vec<String> = match spec.texts("audiences") {
            wanted if wanted.is_empty() => self.audiences.clone(),
            wanted => wanted.into_iter().map(str::to_owned).collect(),
        };
        let reference = spec.at("boundObjectRef");
        let bound = if reference.is_object() { Some(bind(objects, (namespace, name), reference).await?) } else { None };
        let claim = Claim {
            namespace,
            name,
            uid,
            audiences: &audiences,
            seconds,
            bound: bound.as_ref().map(|b| (b.kind, b.name.as_str(), b.uid.as_str())),
            node: bound.as_ref().and_then(|b| b.node.as_ref()).map(|(name, uid)| (name.as_str(), uid.as_str())),
        };
        let token = self.issue(&claim, now, id)?;
        Ok(json!({
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": metadata(request, &claim, now),
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {"token": token, "expirationTimestamp": text(now + SignedDuration::from_secs(seconds))},
        }))
    }
}

fn metadata(request: &Value, claim: &Claim<'_>, now: Timestamp) -> Value {
    let mut metadata = request.at("metadata").clone();
    metadata.set("name", claim.name);
    metadata.set("namespace", claim.namespace);
    metadata.set("uid", claim.uid);
    metadata.set("creationTimestamp", text(now));
    metadata
}

fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn invalid(name: &str, error: FieldError) -> Failure {
    let errors: FieldErrors = FieldErrors::from([error]);
    Failure::invalid(Subject { group: "authentication.k8s.io", kind: "TokenRequest", name }, &errors)
}

fn check_names(namespace: &str, name: &str, request: &Value) -> Result<(), Failure> {
    for (field, wanted) in [("name", name), ("namespace", namespace)] {
        let found = request.at("metadata").text(field);
        if !found.is_empty() && found != wanted {
            let why = format!("must match the service account {field} if specified");
            return Err(invalid(name, FieldError::invalid(&Path::new("metadata").child(field), found, why)));
        }
    }
    Ok(())
}

fn check_uid(request: &Value, name: &str, uid: &str) -> Result<(), Failure> {
    let wanted = request.at("metadata").text("uid");
    if wanted.is_empty() || wanted == uid {
        return Ok(());
    }
    let why = format!("the UID in the token request ({wanted}) does not match the UID of the service account ({uid})");
    Err(Failure::conflict(Subject { group: "authentication.k8s.io", kind: "TokenRequest", name }, &why))
}

fn check_seconds(seconds: i64) -> Result<(), Failure> {
    let why = match seconds {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Err(invalid("", FieldError::invalid(&Path::new("spec").child("expirationSeconds"), seconds, why)))
}

/// Finds the object a token shall end with.
async fn bind(objects: &dyn Objects, (namespace, account): (&str, &str), reference: &Value) -> Result<Bound, Failure> {
    let (version, kind, name) = (reference.text("apiVersion"), reference.text("kind"), reference.text("name"));
    let (short, found, namespace) = match (version, kind) {
        ("v1" | "", "Pod") => ("pod", &kinds::POD, namespace),
        ("v1" | "", "Secret") => ("secret", &kinds::SECRET, namespace),
        ("v1" | "", "Node") => ("node", &kinds::NODE, ""),
        _ => return Err(Failure::bad_request(format!("cannot bind token to object of type {}", typed(version, kind)))),
    };
    let resource = found.resource;
    let object = objects.find(found, namespace, name).await?;
    let object = object.ok_or_else(|| Failure::not_found(Subject { group: "", kind: resource, name }))?;
    // A Pod that names no account uses `default`.
    let used = |pod: &Value| Some(pod.at("spec").text("serviceAccountName").to_owned()).filter(|name| !name.is_empty());
    if short == "pod" && used(&object).as_deref().unwrap_or("default") != account {
        let why = format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        );
        return Err(Failure::bad_request(why));
    }
    let uid = object.at("metadata").text("uid").to_owned();
    let wanted = reference.text("uid");
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(Failure::conflict(Subject { group: "", kind, name }, &why));
    }
    let node = if short == "pod" { node_of(objects, &object).await? } else { None };
    Ok(Bound { kind: short, name: name.to_owned(), uid, node })
}

/// The node of a Pod; one that is not there has no uid.
async fn node_of(objects: &dyn Objects, pod: &Value) -> Result<Option<(String, String)>, Failure> {
    let name = pod.at("spec").text("nodeName");
    if name.is_empty() {
        return Ok(None);
    }
    let node = objects.find(&kinds::NODE, "", name).await?;
    let uid = node.as_ref().map(|node| node.at("metadata").text("uid")).unwrap_or_default();
    Ok(Some((name.to_owned(), uid.to_owned())))
}

fn typed(version: &str, kind: &str) -> String {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    format!("{group}/{version}, Kind={kind}")
}
