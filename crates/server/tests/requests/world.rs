//! A server in memory, with users that have roles.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::Settings;
use fairlead_server::auth::keys::SigningKey;
use fairlead_server::auth::service_account::Tokens;
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::{Admission, Authorization, Options, Server};
use fairlead_store::Memory;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::Service;

pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";

pub(crate) struct TestServer {
    pub(crate) server: Server,
    _stop: DropGuard,
}

/// An answer: code, the methods it allows, body, and the size of the body.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) allow: String,
    pub(crate) body: Value,
    pub(crate) size: usize,
}

pub(crate) fn admin() -> User {
    user("admin", &["system:masters"])
}

pub(crate) fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

impl TestServer {
    pub(crate) async fn new(admission: Admission, authorization: Authorization) -> TestServer {
        let stop = CancellationToken::new();
        let pem = rcgen::KeyPair::generate().expect("a key").serialize_pem();
        let key = SigningKey::from_pem(&pem).expect("a key we made");
        let accounts = Some(Tokens::new(vec!["https://issuer.example".to_owned()], key, Vec::new()));
        let authenticator = Authenticator { accounts, ..Authenticator::default() };
        let options = options(admission, authorization);
        let server = Server::new(Arc::new(Memory::new()), options, authenticator, None, stop.clone()).await;
        TestServer { server: server.expect("a server"), _stop: stop.drop_guard() }
    }

    pub(crate) async fn send(&self, user: User, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        self.send_as(user, method, path, "application/json", body).await
    }

    pub(crate) async fn send_as(
        &self,
        user: User,
        method: &str,
        path: &str,
        media: &str,
        body: impl Into<Bytes>,
    ) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let request = request.body(Full::new(body.into())).expect("a request");
        let answer = self.server.local(user).call(request).await.expect("an answer");
        let code = answer.status().as_u16();
        let allow = answer.headers().get("allow").map_or("", |value| value.to_str().expect("text")).to_owned();
        let bytes = answer.into_body().collect().await.expect("a body").to_bytes();
        Answer { code, allow, body: serde_json::from_slice(&bytes).unwrap_or_default(), size: bytes.len() }
    }

    /// Sends a request of an administrator that must succeed.
    pub(crate) async fn make(&self, path: &str, body: Value) -> Value {
        let answer = self.send(admin(), "POST", path, body.to_string()).await;
        assert!((200..300).contains(&answer.code), "{path}: {}", answer.body);
        answer.body
    }
}

fn options(admission: Admission, authorization: Authorization) -> Options {
    Options {
        settings: Settings {
            service_ranges: vec!["10.0.0.0/16".parse().expect("a range")],
            node_ports: 30000..=32767,
            service_topology: false,
        },
        extra_kinds: Vec::new(),
        admission,
        advertise: SocketAddr::from(([192, 0, 2, 1], 6443)),
        authorization,
        request_timeout: Duration::from_secs(60),
        backup: None,
    }
}

pub(crate) fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["ports"] = json!([{"port": 80}]);
    json!({"metadata": {"name": name}, "spec": spec})
}
