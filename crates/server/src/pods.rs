//! What only Pods have: binding to a node.

use std::time::Instant;

use fairlead_api::status::Subject;
use fairlead_api::value::json;
use fairlead_api::{Failure, Look, kinds, schema};

use crate::body::{self, Expected};
use crate::options::{Query, WriteKind, WriteOptions};
use crate::reply::Reply;
use crate::route::Target;
use crate::{Inner, write};

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
            let Some(live) = live else { return Err(Failure::not_found(crate::read::subject(&pod))) };
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
    Ok(Reply::document(
        201,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}
