//! `/fairlead/join`: how a machine becomes a Node. It shows a token, or the certificate it has, and a request for a certificate;
//! it gets one that is good for a year, and what Nodes of this cluster have in common. `/fairlead/ca` says by whose certificates
//! this server is known, so that a machine can compare it with what it was told.

use std::collections::BTreeSet;

use fairlead_api::status::Subject as About;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Look, kinds, names};
use http::request::Parts;
use http::{Method, Response};
use jiff::Timestamp;

use crate::auth::{Objects, User, nodes};
use crate::reply::{self, Body};
use crate::serve::certificates::{Authority, Subject, sign};
use crate::{Inner, not_allowed, plain_form, unknown_resource};

/// Where a certificate is asked for.
pub const PATH: &str = "/fairlead/join";
/// Where the authorities of this server are.
pub const AUTHORITIES: &str = "/fairlead/ca";

/// What a server needs to let machines join.
#[derive(Debug)]
pub struct Join {
    /// Signs certificates.
    pub authority: Authority,
    /// The certificates by which clients know this server, as PEM.
    pub authorities: String,
    /// Names no Node may have: those of the server.
    pub taken: BTreeSet<String>,
    /// What Nodes of this cluster have in common, for them to read.
    pub cluster: Value,
}

/// Says by whose certificates the server is known. Anybody may ask: it is no secret, and whoever wants to know knows nobody yet.
pub(crate) fn authorities(server: &Inner, parts: &Parts) -> Result<Response<Body>, Failure> {
    let join = server.join.get().ok_or_else(unknown_resource)?;
    if parts.method != Method::GET {
        return Err(not_allowed());
    }
    Ok(reply::plain(200, join.authorities.clone()))
}

/// Answers a machine that wants to join, or a Node whose certificate is old.
pub(crate) async fn answer(
    server: &Inner,
    user: &User,
    parts: &Parts,
    bytes: &[u8],
) -> Result<Response<Body>, Failure> {
    let join = server.join.get().ok_or_else(unknown_resource)?;
    if parts.method != Method::POST {
        return Err(not_allowed());
    }
    let wanted: Value =
        serde_json::from_slice(bytes).map_err(|error| Failure::bad_request(format!("not a request: {error}")))?;
    let node = wanted.text("node");
    admit(server, join, user, node).await?;
    let signed = sign(&Subject::node(node), wanted.text("request"), &join.authority, Timestamp::now());
    let certificate =
        signed.map_err(|error| Failure::bad_request(format!("request: no certificate can be made of it: {error}")))?;
    tracing::info!(node, user = user.name, "a certificate was given to a Node");
    let answer = json!({"certificate": certificate, "authorities": join.authorities, "cluster": join.cluster});
    let form = plain_form(parts, &crate::options::Query::parse(""));
    Ok(reply::encode(201, &answer, form))
}

/// A Node renews its own certificate. Whoever is none yet gets one of a name that nobody has.
async fn admit(server: &Inner, join: &Join, user: &User, node: &str) -> Result<(), Failure> {
    let about = About { group: "", kind: "nodes", name: node };
    if let Some(own) = nodes::node_of(user) {
        return match own == node {
            true => Ok(()),
            false => Err(Failure::forbidden(about, &format!("node {own:?} gets no certificate of another"))),
        };
    }
    if let Some(why) = names::subdomain(node).into_iter().next() {
        return Err(Failure::bad_request(format!("{node:?} cannot be the name of a Node: {why}")));
    }
    if join.taken.contains(node) {
        return Err(Failure::conflict(about, "the API server has this name; choose another with --hostname-override"));
    }
    if server.access.find(&kinds::NODE, "", node).await?.is_some() {
        let why = format!(
            "a Node of this name is there; choose another with --hostname-override, or, if that machine is gone, \
             kubectl delete node {node}"
        );
        return Err(Failure::conflict(about, &why));
    }
    Ok(())
}

/// What a machine compares the authorities of a server with, before it believes them.
pub fn pin(authorities: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, authorities.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
