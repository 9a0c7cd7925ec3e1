//! What only Pods have: binding to a node, and eviction.

use std::time::Instant;

use fairlead_api::status::Subject;
use fairlead_api::value::json;
use fairlead_api::view::Meta;
use fairlead_api::{Failure, Look, head, kinds, schema};

use crate::body::{self, Expected};
use crate::delete::{self, DeleteOptions};
use crate::options::{Query, WriteKind, WriteOptions};
use crate::reply::{Payload, Reply};
use crate::route::Target;
use crate::{Inner, object, read, write};

/// POST `pods/NAME/binding`: puts a Pod on a node, once.
pub(crate) async fn bind(
    server: &Inner,
    target: &Target,
    bytes: &[u8],
    media: &str,
    query: &Query,
) -> Result<Reply, Failure> {
    let options = WriteOptions::parse(query, WriteKind::Create, "")?;
    let expected = Expected::message("Binding", "v1", &schema::core::BINDING);
    let binding = body::decode(bytes, media, &expected, options.field_validation, &server.options.settings)?.value;
    let named = binding.at("metadata").text("name");
    let name = if target.name.is_empty() { named } else { &target.name };
    if !named.is_empty() && named != name {
        return Err(Failure::bad_request("name in URL does not match name in Binding object"));
    }
    let pod = Target { name: name.to_owned(), ..target.clone() };
    let mut request = write::Request {
        server,
        target: &pod,
        user: None,
        options,
        warnings: Vec::new(),
        how: write::How::Patch,
        started: Instant::now(),
        placed: false,
    };
    request
        .update(|live, _| {
            let Some(live) = live else { return Err(Failure::not_found(read::subject(&pod))) };
            let (wanted, uid) = (binding.at("metadata").text("uid"), live.at("metadata").text("uid"));
            if !wanted.is_empty() && wanted != uid {
                let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
                return Err(Failure::conflict(Subject { group: "", kind: "pods/binding", name: &pod.name }, &why));
            }
            let mut new = live.clone();
            kinds::pod::bind(&mut new, &binding, &crate::clock::now())?;
            Ok(new)
        })
        .await?;
    Ok(created())
}

/// POST `pods/NAME/eviction`: deletes a Pod for a reason that is not its own, and notes that on it.
/// PodDisruptionBudgets, which could forbid it, are not served.
pub(crate) async fn evict(
    server: &Inner,
    target: &Target,
    bytes: &[u8],
    media: &str,
    query: &Query,
) -> Result<Reply, Failure> {
    let options = WriteOptions::parse(query, WriteKind::Create, "")?;
    let expected = Expected::message("Eviction", "policy/v1", &schema::policy::EVICTION);
    let eviction = body::decode(bytes, media, &expected, options.field_validation, &server.options.settings)?.value;
    if eviction.at("metadata").text("name") != target.name {
        return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut how = DeleteOptions::read(eviction.at("deleteOptions"))?;
    how.dry_run |= options.dry_run;
    let pod = Target { subresource: String::new(), ..target.clone() };
    let entry = read::find(&*server.store, &pod).await?;
    let mut disrupted = object::load(&kinds::POD, &entry)?;
    if !how.dry_run && kinds::pod::disrupt(&mut disrupted, "") {
        let status = Target { subresource: "status".to_owned(), ..target.clone() };
        let mut request = write::Request {
            server,
            target: &status,
            user: None,
            options,
            warnings: Vec::new(),
            how: write::How::Patch,
            started: Instant::now(),
            placed: false,
        };
        let marked = request.update(|live, _| {
            let Some(live) = live else { return Err(Failure::not_found(read::subject(&pod))) };
            delete::check_preconditions(&kinds::POD, live, &how)?;
            let mut new = live.clone();
            kinds::pod::disrupt(&mut new, &crate::clock::now());
            Ok(new)
        });
        let marked = marked.await?;
        // The Pod has changed since it was compared, by this request.
        if let (Some(version), Payload::Object(_, text)) = (&mut how.resource_version, marked.payload)
            && let Some(meta) = head::read::<Meta>(&text)
        {
            *version = meta.resource_version;
        }
    }
    delete::delete(server, &pod, &how).await?;
    Ok(created())
}

/// Returns the answer to a request that makes no object that could be shown.
fn created() -> Reply {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Reply::document(201, status)
}
