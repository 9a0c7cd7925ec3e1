//! Questions that are posted and answered, not stored: who am I, may I, is this token good; and tokens for ServiceAccounts.

use fairlead_api::field::{FieldError, FieldErrors};
use fairlead_api::status::Subject;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Look, Path, kinds, schema};
use jiff::Timestamp;

use crate::auth::rbac::{Attributes, Decision, Target as About};
use crate::auth::{Objects, User, nodes};
use crate::body::{self, Expected};
use crate::options::FieldValidation;
use crate::reply::Reply;
use crate::route::Target;
use crate::{Inner, clock};

/// Maximum number of groups in an access review. Each is compared with the subjects of all
/// bindings.
const MAX_GROUPS: usize = 1000;
/// Maximum number of bytes of the audiences in a review or request of a token, which stand in the
/// token or in the answer.
const MAX_AUDIENCES: usize = 4 << 10;

/// Answers a question.
pub(crate) async fn review(
    server: &Inner,
    user: &User,
    target: &Target,
    bytes: &[u8],
    media: &str,
) -> Result<Reply, Failure> {
    if target.subresource == "token" {
        return token(server, user, target, bytes, media).await;
    }
    let expected = Expected::object(target.kind);
    let mut object = body::decode(bytes, media, &expected, FieldValidation::Ignore, &server.options.settings)?.value;
    let spec = object.at("spec").clone();
    let status = match target.kind.kind {
        "SelfSubjectReview" => json!({"userInfo": user.info()}),
        "TokenReview" => {
            check_audiences(&spec, "TokenReview")?;
            server.access.authenticator.review(&spec, &*server.access, Timestamp::now()).await?
        }
        "SelfSubjectRulesReview" => server.access.rules_review(user, spec.text("namespace")),
        "SelfSubjectAccessReview" => may(server, user, &spec, "SelfSubjectAccessReview")?,
        "LocalSubjectAccessReview" => {
            same_namespace(&spec, target)?;
            may(server, &subject_of(&spec)?, &spec, "LocalSubjectAccessReview")?
        }
        _ => may(server, &subject_of(&spec)?, &spec, "SubjectAccessReview")?,
    };
    object.set("status", status);
    object.map_mut("metadata").insert("creationTimestamp", Value::Null);
    Ok(Reply::document(201, object))
}

/// Refuses more audiences than a token has room for.
fn check_audiences(spec: &Value, kind: &'static str) -> Result<(), Failure> {
    let size: usize = spec.texts("audiences").iter().map(|audience| audience.len() + 1).sum();
    if size <= MAX_AUDIENCES {
        return Ok(());
    }
    let error = FieldError::too_long(&Path::new("spec").child("audiences"), MAX_AUDIENCES);
    Err(Failure::invalid(Subject { group: "authentication.k8s.io", kind, name: "" }, &FieldErrors::from([error])))
}

/// The status of an access review.
fn may(server: &Inner, user: &User, spec: &Value, kind: &'static str) -> Result<Value, Failure> {
    let (resource, path) = (spec.at("resourceAttributes"), spec.at("nonResourceAttributes"));
    let target = match (resource.is_object(), path.is_object()) {
        (true, false) => About::Resource {
            group: resource.text("group"),
            resource: resource.text("resource"),
            subresource: resource.text("subresource"),
            namespace: resource.text("namespace"),
            name: resource.text("name"),
        },
        (false, true) => About::Path(path.text("path")),
        (both, _) => {
            let at = Path::new("spec").child("resourceAttributes");
            let why = if both {
                "cannot be specified in combination with resourceAttributes"
            } else {
                "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            };
            let error = FieldError::invalid(&at, resource, why);
            return Err(Failure::invalid(
                Subject { group: "authorization.k8s.io", kind, name: "" },
                &FieldErrors::from([error]),
            ));
        }
    };
    let verb = if resource.is_object() { resource.text("verb") } else { path.text("verb") };
    let mut status = json!({"allowed": false});
    match server.access.decide(user, &Attributes { verb, target }) {
        Decision::Allow { reason } => {
            status.set("allowed", true);
            set_reason(&mut status, reason);
        }
        Decision::Deny { reason } => set_reason(&mut status, reason),
    }
    Ok(status)
}

fn set_reason(status: &mut Value, reason: String) {
    if !reason.is_empty() {
        status.set("reason", reason);
    }
}

/// The user an access review asks about.
fn subject_of(spec: &Value) -> Result<User, Failure> {
    let groups: Vec<String> = spec.texts("groups").into_iter().map(str::to_owned).collect();
    if groups.len() > MAX_GROUPS {
        let error = FieldError::too_many(&Path::new("spec").child("groups"), groups.len(), MAX_GROUPS);
        let subject = Subject { group: "authorization.k8s.io", kind: "SubjectAccessReview", name: "" };
        return Err(Failure::invalid(subject, &FieldErrors::from([error])));
    }
    if spec.text("user").is_empty() && groups.is_empty() {
        let error = FieldError::invalid(
            &Path::new("spec").child("user"),
            "",
            "at least one of user or group must be specified",
        );
        let subject = Subject { group: "authorization.k8s.io", kind: "SubjectAccessReview", name: "" };
        return Err(Failure::invalid(subject, &FieldErrors::from([error])));
    }
    Ok(User { name: spec.text("user").to_owned(), uid: spec.text("uid").to_owned(), groups, ..User::default() })
}

fn same_namespace(spec: &Value, target: &Target) -> Result<(), Failure> {
    let asked = spec.at("resourceAttributes").text("namespace");
    if asked == target.namespace {
        return Ok(());
    }
    Err(Failure::bad_request(format!(
        "spec.resourceAttributes.namespace must match namespace: {asked} does not match {}",
        target.namespace
    )))
}

/// Checks a Node's request for a token: the token must be bound to a Pod that runs on the Node and
/// uses the ServiceAccount, so that it ends with the Pod, and be for an audience that the Pod asks
/// for. The rules and their words are those of kube-apiserver
/// (plugin/pkg/admission/noderestriction, admitServiceAccount).
async fn check_node_token(server: &Inner, node: &str, target: &Target, request: &Value) -> Result<(), Failure> {
    let about = Subject { group: "", kind: "serviceaccounts", name: &target.name };
    let refuse = |why: String| Err(Failure::forbidden(about, &why));
    let bound = request.at("spec").at("boundObjectRef");
    let (version, kind, name) = (bound.text("apiVersion"), bound.text("kind"), bound.text("name"));
    if (version, kind) != ("v1", "Pod") || name.is_empty() {
        return refuse("node requested token not bound to a pod".to_owned());
    }
    let uid = bound.text("uid");
    if uid.is_empty() {
        return refuse("node requested token with a pod binding without a uid".to_owned());
    }
    let pod = server.access.find(&kinds::POD, &target.namespace, name).await?;
    let pod = pod.ok_or_else(|| Failure::not_found(Subject { group: "", kind: "pods", name }))?;
    if pod.at("metadata").text("uid") != uid {
        return refuse(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted \
             and then recreated"
        ));
    }
    if pod.at("spec").text("nodeName") != node {
        return refuse("node requested token bound to a pod scheduled on a different node".to_owned());
    }
    if !nodes::names(&pod, "serviceaccounts", &target.name) {
        return refuse("node requested token bound to a pod that uses another service account".to_owned());
    }
    let known = nodes::token_audiences(&pod);
    match request.at("spec").texts("audiences").into_iter().find(|audience| !known.contains(audience)) {
        Some(audience) => refuse(format!("audience {audience:?} not found in pod spec volume")),
        None => Ok(()),
    }
}

/// A token for a ServiceAccount.
async fn token(server: &Inner, user: &User, target: &Target, bytes: &[u8], media: &str) -> Result<Reply, Failure> {
    let expected =
        Expected::message("TokenRequest", "authentication.k8s.io/v1", &schema::authentication::TOKEN_REQUEST);
    let request = body::decode(bytes, media, &expected, FieldValidation::Ignore, &server.options.settings)?.value;
    if let Some(node) = nodes::node_of(user) {
        check_node_token(server, node, target, &request).await?;
    }
    check_audiences(request.at("spec"), "TokenRequest")?;
    let Some(tokens) = &server.access.authenticator.accounts else {
        return Err(Failure::new(503, "ServiceUnavailable", "this server issues no tokens"));
    };
    let id = uuid::Uuid::new_v4().to_string();
    let account = (target.namespace.as_str(), target.name.as_str());
    let mut answer = tokens.answer(&*server.access, account, &request, Timestamp::now(), &id).await?;
    let created = answer.map_mut("metadata");
    created.entry("creationTimestamp").or_insert_with(|| clock::now().into());
    Ok(Reply::document(201, answer))
}
